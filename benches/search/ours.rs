//! Ours: searches of a batch of roots, with a network of two layers of 64 units as the model.

use std::time::Instant;

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_rl::search::*;
use podracer_runtime::{
    Array, Client, Device, ExecutableCache, HloModule, OptionValue, Placement, Program,
    ProgramOptions,
};

use crate::support::bytes;

const UNITS: usize = 64;

/// The sizes of a search.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub gumbel: bool,
    pub batch: usize,
    pub simulations: usize,
    pub actions: usize,
    /// Searches of the batch in a run.
    pub rounds: usize,
    /// Each root is searched by itself, and `vmap` makes the batch.
    pub by_vmap: bool,
    /// The network alone, as often as a search calls it.
    pub network_alone: bool,
}

/// The settings `program.whole_loops` and `program.launches`.
#[derive(Clone, Copy, Debug)]
pub struct Ways {
    pub whole_loops: bool,
    pub launches: bool,
}

#[derive(Tree, Clone)]
pub struct Network {
    action: Tensor,
    first: Tensor,
    second: Tensor,
    policy: Tensor,
    value: Tensor,
}

impl Network {
    /// Weights drawn from a normal distribution of standard deviation 1/8, equal to the peer's.
    fn new(key: Key, actions: usize) -> Network {
        let [action, first, second, policy, value] = key.split_into();
        let draw = |key: Key, shape: [usize; 2]| key.normal(shape) / 8.0;
        Network {
            action: draw(action, [actions, UNITS]),
            first: draw(first, [UNITS, UNITS]),
            second: draw(second, [UNITS, UNITS]),
            policy: draw(policy, [UNITS, actions]),
            value: draw(value, [UNITS, 2]),
        }
    }

    /// Logits, values, rewards.
    fn heads(&self, embedding: Tensor) -> [Tensor; 3] {
        let values = matmul(embedding, self.value);
        [matmul(embedding, self.policy), values.index_axis(1, 0), values.index_axis(1, 1)]
    }

    fn root(&self, embedding: Tensor) -> RootFnOutput {
        let [prior_logits, value, _] = self.heads(embedding);
        RootFnOutput { prior_logits, value, embedding }
    }

    fn step(&self, action: Tensor, embedding: Tensor) -> (RecurrentFnOutput, Tensor) {
        let x = embedding + self.action.take(action, 0);
        let embedding = matmul(matmul(x, self.first).relu(), self.second).tanh();
        let [prior_logits, value, reward] = self.heads(embedding);
        let discount = value.full_like(0.997);
        (RecurrentFnOutput { reward, discount, prior_logits, value }, embedding)
    }
}

/// The compiled program.
pub struct Searches {
    program: Program<(Network, Key), Tensor>,
    params: Device<Network>,
    case: Case,
    /// From the trace to the executable.
    pub compile_seconds: f64,
}

impl Case {
    /// Bytes of a node's row: 11 numbers, and for each action 4, or 5 with Gumbel.
    pub fn row_bytes(&self) -> usize {
        4 * (11 + (4 + usize::from(self.gumbel)) * self.actions)
    }

    fn search(&self, params: &Network, key: Key, embedding: Tensor) -> Tensor {
        let root = params.root(embedding);
        if self.network_alone {
            let begin = (root.embedding, root.value);
            return fori_loop(0..self.simulations, begin, |_, (embedding, total)| {
                let action = total.astype(I32).clamp(0, self.actions as i32 - 1);
                let (output, embedding) = params.step(action, embedding);
                let logits = output.prior_logits.max_axis(-1);
                (embedding, total + output.value + output.reward + logits)
            })
            .1;
        }
        let model = |_: Key, action, embedding| params.step(action, embedding);
        let output = match self.gumbel {
            true => {
                let options = GumbelMuZeroOptions::default();
                gumbel_muzero_policy(key, root, model, self.simulations, None, &options)
            }
            false => {
                let options = MuZeroOptions::default();
                muzero_policy(key, root, model, self.simulations, None, &options)
            }
        };
        let value = output.search_tree.summary().value;
        value + output.action.astype(F32) + output.action_weights.index_axis(1, 0)
    }

    fn run(&self, params: &Network, key: Key) -> Tensor {
        fori_loop(0..self.rounds, zeros(F32, [self.batch]), |number, total| {
            let [root_key, search_key] = key.fold_in(number).split_into();
            let embedding = root_key.normal([self.batch, UNITS]).tanh();
            if !self.by_vmap {
                return total + self.search(params, search_key, embedding);
            }
            let keys = search_key.split_n(self.batch);
            total
                + vmap((keys, embedding), |(key, embedding)| {
                    self.search(params, key, embedding.expand_dims(0)).index(0)
                })
        })
    }

    /// Traces and compiles the program.
    pub fn compile(
        &self,
        client: &Client,
        xla: &[(String, OptionValue)],
        ways: Ways,
    ) -> Result<Searches> {
        let mut options =
            ProgramOptions { cache: ExecutableCache::disabled(), ..ProgramOptions::default() };
        options.simplify.whole_loops = ways.whole_loops;
        options.simplify.launches = ways.launches;
        options.compile.xla.extend(xla.iter().cloned());
        let placements = |count| vec![Placement::Replicated; count];
        let init = trace((key(),), |(key,)| Network::new(key, self.actions))?;
        let init = Program::compile(client, "init", &init, placements(5), &options)?;
        let params = init.run((init.upload(Array::key(0))?,))?;
        let start = Instant::now();
        let spec = eval_shape(key(), |key| Network::new(key, self.actions))?;
        let traced = trace((spec, key()), |(params, key)| self.run(&params, key))?;
        let program = Program::compile(client, "searches", &traced, placements(1), &options)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        Ok(Searches { program, params, case: *self, compile_seconds })
    }
}

impl Searches {
    /// Runs all searches: searches per second, and the mean of their results.
    pub fn run(&self) -> Result<(f64, f64)> {
        let key = self.program.upload(Array::key(1))?;
        let start = Instant::now();
        let total = self.program.run((&self.params, key))?.to_host()?;
        let seconds = start.elapsed().as_secs_f64();
        let total = total.to_vec::<f32>()?;
        let Case { batch, rounds, .. } = self.case;
        let mean = total.iter().copied().map(f64::from).sum::<f64>() / (batch * rounds) as f64;
        Ok(((batch * rounds) as f64 / seconds, mean))
    }

    /// Bytes of the program as the peer counts them.
    pub fn bytes(&self) -> Result<i64> {
        bytes(self.program.executable().compiled())
    }

    /// The optimized program.
    pub fn hlo(&self) -> Result<HloModule> {
        Ok(self.program.executable().compiled().optimized()?)
    }
}
