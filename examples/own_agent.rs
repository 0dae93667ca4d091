//! An agent of one's own: REINFORCE (Williams 1992) with the mean return as baseline, in Catch.
//! `cargo run --release --example own_agent`
#![allow(clippy::print_stdout)]

use podracer::envs::Catch;
use podracer::prelude::*;
use podracer::stdlib::distributions::{Categorical, Distribution};
use podracer::stdlib::nn::{Activation, Initializer, Mlp};
use podracer::stdlib::optim::{Adam, AdamState, Optimizer, adam};
use podracer::stdlib::returns::discounted_returns;

/// The agent and its hyper-parameters.
#[derive(Clone)]
struct Reinforce {
    observation: Space,
    action: Space,
    optimizer: Adam,
    discount: f64,
}

/// f32 `[T, N]`, both.
#[derive(Tree, Clone, Copy)]
struct Batch {
    log_prob: Tensor,
    advantage: Tensor,
}

#[derive(Tree, Clone, Copy)]
struct Metrics {
    loss: Tensor,
}

impl Agent for Reinforce {
    type Observation = Tensor;
    /// Nothing is remembered from step to step.
    type Actor = ();
    type Nets = Mlp;
    type Opt = AdamState<Mlp>;
    /// Nothing outlives a cycle.
    type Experience = ();
    /// The log-probability of the action.
    type Output = Tensor;
    type Batch = Batch;
    type Metrics = Metrics;

    fn init_nets(&self, key: Key) -> Mlp {
        let actions = match self.action {
            Space::Discrete { n } => n,
            Space::Box { .. } | Space::Pixels { .. } => self.action.elements(),
        };
        let sizes = [self.observation.elements(), 64, actions];
        let (hidden, last) = (Initializer::lecun_normal(), Initializer::orthogonal(0.01));
        Mlp::init(key, &sizes, Activation::Tanh, hidden, last)
    }

    fn init_opt(&self, nets: &Mlp) -> AdamState<Mlp> {
        self.optimizer.init(nets)
    }

    fn init_actor(&self) {}

    fn init_experience(&self, _environments: usize) {}

    fn act(&self, nets: &Mlp, (): (), observation: Tensor, key: Key) -> (Tensor, (), Tensor) {
        let policy = Categorical::new(nets.apply(observation));
        let action = policy.sample(key);
        (action, (), policy.log_prob(action))
    }

    fn act_greedily(&self, nets: &Mlp, (): (), observation: Tensor) -> (Tensor, ()) {
        (Categorical::new(nets.apply(observation)).mode(), ())
    }

    /// Returns of one trajectory, batched over the environments: `axis(1)` of `[T, N]`.
    fn update_experience(
        &self,
        _nets: &Mlp,
        (): (),
        (): (),
        trajectory: Trajectory<Tensor, Tensor>,
        _key: Key,
    ) -> ((), Batch) {
        let ended = trajectory.terminated | trajectory.truncated;
        let discount = select(ended, 0.0, self.discount);
        let returns = vmap((trajectory.reward.axis(1), discount.axis(1)), |(r_t, discount_t)| {
            discounted_returns(r_t, discount_t, 0.0)
        });
        let returns = returns.swap_axes(0, 1);
        let baseline = pmean(returns.mean(), Replicas);
        let advantage = stop_gradient(returns - baseline);
        let log_prob = trajectory.output;
        ((), Batch { log_prob, advantage })
    }

    fn loss(&self, _nets: Mlp, batch: &Batch, _update: Tensor) -> (Tensor, Metrics) {
        let loss = -(batch.log_prob * batch.advantage).mean();
        (loss, Metrics { loss })
    }

    fn optimize_from_grads(
        &self,
        nets: Mlp,
        opt: AdamState<Mlp>,
        grads: Mlp,
    ) -> (Mlp, AdamState<Mlp>) {
        self.optimizer.step(nets, opt, grads)
    }

    /// The gradient flows through the log-probabilities of the loop itself: acting is the forward pass.
    fn learning(&self) -> Learning {
        Learning::ThroughLoop
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environment = Catch::default();
    let agent = Reinforce {
        observation: environment.observation_space(),
        action: environment.action_space(),
        optimizer: adam(3e-3),
        discount: 0.99,
    };
    // Episodes of Catch have nine steps: a cycle is four of them.
    let reinforce = Anakin::new(environment, agent).unroll(36).updates_per_call(20);
    let reinforce = reinforce.compile(&Client::cpu(ClientOptions::default())?)?;
    let mut state = reinforce.init(0)?;
    for call in 1..=10 {
        let metrics;
        (state, metrics) = reinforce.run(state)?;
        println!("call {call}: mean return {:.2}", metrics.episode_return);
    }
    Ok(())
}
