//! An agent of one's own: REINFORCE (Williams 1992) with the mean return as baseline, in Catch.
//! `cargo run --release --example own_agent`
#![allow(clippy::print_stdout)]

use podracer::envs::Catch;
use podracer::prelude::*;
use podracer::rl::distributions::{Categorical, Distribution};
use podracer::rl::nn::{Activation, Initializer, Mlp};
use podracer::rl::optim::{Adam, AdamState, adam};
use podracer::rl::returns::discounted_returns;

/// The agent and its hyper-parameters.
#[derive(Clone)]
struct Reinforce {
    observation: Space,
    action: Space,
    optimizer: Adam,
    discount: f64,
}

impl Agent for Reinforce {
    type Observation = Tensor;
    type Params = Mlp;
    type Memory = (); // nothing is remembered from step to step
    type Extras = (); // nothing of acting is left for learning

    fn init_memory(&self, _lane: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    fn act(&self, net: &Mlp, (): (), input: Input, mode: Mode, key: Key) -> Act<(), ()> {
        let policy = Categorical::new(net.apply(input.observation));
        let action = match mode {
            Mode::Explore => policy.sample(key),
            Mode::Greedy => policy.mode(),
        };
        Act { action, memory: (), extras: () }
    }
}

impl Learn for Reinforce {
    type State = Optimized<Mlp, AdamState<Mlp>>;
    type Store = (); // nothing outlives an iteration but the state
    type Metrics = Tensor; // the loss

    fn init(&self, key: Key) -> Self::State {
        let actions = match self.action {
            Space::Discrete { n, .. } => n,
            _ => self.action.elements(),
        };
        let sizes = [self.observation.elements(), 64, actions];
        let (hidden, last) = (Initializer::lecun_normal(), Initializer::orthogonal(0.01));
        let net = Mlp::init(key, &sizes, Activation::Tanh, hidden, last);
        Optimized::new(&self.optimizer, net)
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> Mlp {
        state.params.clone()
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), Tensor) {
        // Returns of one lane's rollout, batched over the lanes: `axis(1)` of `[T, N]`.
        let discount = select(rollout.done(), 0.0, self.discount);
        let returns = vmap((rollout.reward.axis(1), discount.axis(1)), |(r_t, discount_t)| {
            discounted_returns(r_t, discount_t, 0.0)
        })
        .swap_axes(0, 1);
        let advantage = returns - cx.mean(returns.mean());
        let steps = (rollout.input.observation, rollout.action);
        let (state, loss) = state.gradient_step(&self.optimizer, &cx, |net| {
            let log_prob = vmap(steps, |step| {
                vmap(step, |(seen, action)| Categorical::new(net.apply(seen)).log_prob(action))
            });
            let loss = -(log_prob * advantage).mean();
            (loss, loss)
        });
        (state, (), loss)
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
    // Episodes of Catch have nine steps: an iteration is four of them.
    let reinforce = Anakin::new(environment, agent)
        .unroll(36)
        .iterations_per_call(20)
        .compile(&Client::cpu(ClientOptions::default())?)?;
    let mut state = reinforce.init(0)?;
    for call in 1..=10 {
        let metrics;
        (state, metrics) = reinforce.run(state)?;
        println!("call {call}: mean return {:.2}", metrics.episode_return);
    }
    Ok(())
}
