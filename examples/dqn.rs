//! Deep Q-learning (Mnih et al. 2015) as an agent of one's own: a uniform replay, a target network, and an exploration
//! rate of each lane's own (as Horgan et al. 2018, "Distributed Prioritized Experience Replay", section 4). It learns
//! CartPole in one compiled program: `cargo run --release --example dqn [SEED]`.
#![allow(clippy::print_stdout)]

use std::sync::atomic::AtomicBool;

use podracer::envs::CartPole;
use podracer::evaluation::{Play, play};
use podracer::prelude::*;
use podracer::rl::losses::l2_loss;
use podracer::rl::nn::{Activation, Initializer, Mlp};
use podracer::rl::optim::{Adam, AdamState, Schedule, adam, periodic_update};
use podracer::rl::replay::{Replay, Stored};
use podracer::sebulba::compiled_environments;

const ITERATIONS: usize = 6_000;
const LANES: usize = 16;
const UNROLL: usize = 4;

#[derive(Clone)]
struct Dqn {
    observations: usize,
    actions: usize,
    optimizer: Adam,
    replay: Replay,
    /// Transitions of a gradient step.
    batch: usize,
    /// Gradient steps of an iteration.
    steps: usize,
    /// Transitions in the replay before learning begins.
    warm_up: usize,
    /// Gradient steps between two copies into the target network.
    period: usize,
    discount: f64,
}

/// One step of an environment.
#[derive(Tree, Clone)]
struct Transition {
    observation: Tensor,
    action: Tensor,
    reward: Tensor,
    terminated: Tensor,
    next_observation: Tensor,
}

impl Transition {
    /// The steps of a rollout. `[T, N, ..]`
    fn of(rollout: Rollout<Dqn>) -> Self {
        Transition {
            observation: rollout.input.observation,
            action: rollout.action,
            reward: rollout.reward,
            terminated: rollout.terminated,
            next_observation: rollout.observations_after(),
        }
    }
}

#[derive(Tree, Clone)]
struct DqnState {
    online: Optimized<Mlp, AdamState<Mlp>>,
    target: Mlp,
    /// Gradient steps done. i32 `[]`
    steps: Tensor,
}

impl Agent for Dqn {
    type Observation = Tensor;
    type Params = Mlp;
    type Memory = Tensor; // the lane's exploration rate
    type Extras = ();

    fn init_memory(&self, lane: LaneId) -> Tensor {
        let exponent = 1.0 + 7.0 * lane.index.astype(F32) / (lane.lanes.max(2) - 1) as f64;
        pow(scalar(0.7), exponent)
    }
    fn begin_episode(&self, epsilon: Tensor) -> Tensor {
        epsilon
    }
    fn act(&self, q: &Mlp, epsilon: Tensor, input: Input, mode: Mode, key: Key) -> Act<Tensor, ()> {
        let best = q.apply(input.observation).argmax(0);
        let action = match mode {
            Mode::Greedy => best,
            Mode::Explore => {
                let (explore, draw) = key.split();
                let any = draw.randint([], 0..self.actions as i32);
                select(explore.bernoulli([], epsilon), any, best)
            }
        };
        Act { action, memory: epsilon, extras: () }
    }
}

impl Learn for Dqn {
    type State = DqnState;
    type Store = Stored<Transition>;
    type Metrics = Tensor; // the mean loss

    fn init(&self, key: Key) -> DqnState {
        let (weights, last) = (Initializer::lecun_normal(), Initializer::lecun_normal());
        let sizes = [self.observations, 120, 84, self.actions];
        let net = Mlp::init(key, &sizes, Activation::Relu, weights, last);
        let online = Optimized::new(&self.optimizer, net.clone());
        DqnState { online, target: net, steps: scalar(0) }
    }
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, _: &Axes) -> Stored<Transition> {
        let step = Transition::of(rollout.zeros()).spec().unstacked().unstacked();
        self.replay.init(&step, &Spec(()), RolloutShape::of(rollout))
    }
    fn params(&self, state: &DqnState) -> Mlp {
        state.online.params.clone()
    }

    fn learn(
        &self,
        state: DqnState,
        store: Stored<Transition>,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (DqnState, Stored<Transition>, Tensor) {
        let store = self.replay.add(store, Transition::of(rollout), ());
        let keys = cx.key.again().split_n(self.steps);
        let warm = self.replay.windows(&store).ge(self.warm_up as i32);
        let learnt = || {
            let (state, losses) = scan(state.clone(), keys, |state, key| {
                let windows = self.replay.sample(&store, self.batch, key, &cx).steps;
                let batch = tree_map(&windows, |step| step.index(0));
                let DqnState { online, target, steps } = state;
                let (online, loss) = online.gradient_step(&self.optimizer, &cx, |net| {
                    let loss = vmap(batch, |step| self.loss(&net, &target, step)).mean();
                    (loss, loss)
                });
                let steps = steps + 1;
                let target = periodic_update(&online.params, &target, steps, self.period);
                (DqnState { online, target, steps }, loss)
            });
            (state, losses.mean())
        };
        let (state, loss) = cond(warm, learnt, || (state.clone(), scalar(0.0)));
        (state, store, loss)
    }
}

impl Dqn {
    /// The loss of one transition, f32 `[]`; the action that the target network is asked about is the online network's
    /// (van Hasselt et al. 2016). Squared errors: the few steps that end an episode have large errors, and must count.
    fn loss(&self, net: &Mlp, target: &Mlp, step: Transition) -> Tensor {
        let best = net.apply(step.next_observation).argmax(0);
        let bootstrap = target.apply(step.next_observation).at(best);
        let goal = step.reward + select(step.terminated, 0.0, self.discount) * bootstrap;
        l2_loss(net.apply(step.observation).at(step.action) - stop_gradient(goal))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed: u64 = std::env::args().nth(1).map_or(Ok(0), |seed| seed.parse())?;
    let environment = CartPole::default();
    let steps = 8;
    let agent = Dqn {
        observations: environment.observation_space().elements(),
        actions: 2,
        optimizer: adam(Schedule::linear(1e-3, 0.0, ITERATIONS * steps)),
        replay: Replay { capacity: 100_000, length: 1, period: 1, priorities: None },
        batch: 128,
        steps,
        warm_up: 2_000,
        period: 100,
        discount: 0.98,
    };
    let client = Client::cpu(ClientOptions::default())?;
    let anakin = Anakin::new(environment, agent.clone())
        .environments(LANES)
        .unroll(UNROLL)
        .iterations_per_call(ITERATIONS / 10)
        .compile(&client)?;
    let mut state = anakin.init(seed)?;
    for call in 1..=10 {
        let metrics;
        (state, metrics) = anakin.run(state)?;
        println!("call {call:2}: mean return {:.1} while exploring", metrics.episode_return);
    }
    let checkpoint = anakin.checkpoint(&state, ITERATIONS as u64)?;
    let mut environments = compiled_environments(&client, 0, environment, 100, 1)?;
    let order = Play { episodes: 100, seed, ..Play::default() };
    let never = AtomicBool::new(false);
    let played = play(&agent, &checkpoint, &mut environments, &order, (&client, 0), &never)?;
    let mean = played.iter().map(|one| one.episode_return).sum::<f32>() / played.len() as f32;
    println!("seed {seed}: mean return of {} greedy episodes: {mean:.1}", played.len());
    Ok(())
}
