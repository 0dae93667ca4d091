//! Generated programs as text: the IR and the StableHLO of an environment's step, a loss and a training loop.
//!
//! These say how programs are put together, never that they are right. After a change of the compiler, the language or the
//! agents: `INSTA_UPDATE=always cargo test -p podracer-tests snapshots`, and read the difference.

use crate::loops::{self, Size};
use insta::assert_snapshot;
use podracer_compiler::simplify::{Options, simplify};
use podracer_dsl::prelude::*;
use podracer_envs::{Catch, Environment, Space, TimeStep};
use podracer_rl::distributions::{Categorical, Distribution};
use podracer_rl::losses::clipped_surrogate_pg_loss;
use podracer_rl::nn::{Activation, Initializer, Mlp};
use podracer_rl::optim::sgd;
use podracer_runtime::{AnakinLoop, lower};

const CATCH: Catch = Catch { rows: 4, columns: 3 };

/// The StableHLO module of one replica, without locations.
fn stablehlo<A: Tree, R: Tree>(name: &str, traced: &Traced<A, R>) -> String {
    let lowered = lower(name, traced, 1).expect("it lowers");
    lowered.module.key().to_owned()
}

type State = <Catch as Environment>::State;

fn catch_step() -> Traced<(State, Tensor, Key), (State, TimeStep)> {
    let state = eval_shape(key(), |key| CATCH.initial_state(key)).expect("it traces");
    let step =
        trace((state, i32([]), key()), |(state, action, key)| CATCH.step(state, action, key));
    step.expect("it traces")
}

#[test]
fn a_step_of_catch() {
    assert_snapshot!("catch_step_ir", catch_step());
    assert_snapshot!("catch_step_stablehlo", stablehlo("catch_step", &catch_step()));
}

#[test]
fn a_step_of_eight_catches() {
    let step = catch_step().vmap(8);
    assert_snapshot!("catch_step_vmapped_ir", step);
    assert_snapshot!("catch_step_vmapped_stablehlo", stablehlo("catch_step", &step));
}

/// The first observation: random numbers are unrolled in place.
#[test]
fn a_beginning_of_catch() {
    let start = trace(key(), |key| CATCH.observe(CATCH.initial_state(key))).expect("it traces");
    assert_snapshot!("catch_start_ir", start);
}

type Batch = (Tensor, Tensor, Tensor, Tensor);

/// PPO's surrogate for a policy with one hidden layer, on a batch of observations, actions, their old log-probabilities
/// and advantages.
fn surrogate(nets: &Mlp, (observation, action, log_prob_old, advantage): Batch) -> Tensor {
    let log_prob = vmap((observation, action), |(observation, action)| {
        Categorical::new(nets.apply(observation)).log_prob(action)
    });
    clipped_surrogate_pg_loss((log_prob - log_prob_old).exp(), advantage, 0.2)
}

fn loss_spec() -> (Spec<Mlp>, Spec<Batch>) {
    let nets = eval_shape(key(), |key| {
        let weight = Initializer::lecun_normal();
        Mlp::init(key, &[3, 4, 2], Activation::Tanh, weight, weight)
    });
    let batch = (f32([8, 3]), i32([8]), f32([8]), f32([8]));
    (nets.expect("it traces"), batch.into_spec())
}

#[test]
fn a_loss() {
    let loss = trace(loss_spec(), |(nets, batch)| surrogate(&nets, batch)).expect("it traces");
    assert_snapshot!("loss_ir", loss);
    assert_snapshot!("loss_stablehlo", stablehlo("loss", &loss));
}

#[test]
fn a_gradient() {
    let grad =
        trace(loss_spec(), |(nets, batch)| value_and_grad(nets, |nets| surrogate(&nets, batch)));
    let grad = grad.expect("it traces");
    assert_snapshot!("loss_grad_ir", grad);
    assert_snapshot!("loss_grad_stablehlo", stablehlo("loss_grad", &grad));
}

/// A reverse scan and its gradient, a scan too.
#[test]
fn a_scan_and_its_gradient() {
    let spec = (f32([5]), f32([5]));
    let grad = trace(spec, |(r_t, v_t)| {
        grad(v_t, |v_t| {
            let (_, returns) = scan_reverse(0.0, (r_t, v_t), |next, (r, v)| {
                let this = r + (0.9 * next * v).tanh();
                (this, this)
            });
            returns.square().sum()
        })
    });
    assert_snapshot!("scan_grad_ir", grad.expect("it traces"));
}

/// A corridor of three places, with a reward at its right end.
#[derive(Clone)]
struct Corridor;

impl Environment for Corridor {
    type State = Tensor;
    type Observation = Tensor;

    fn initial_state(&self, _: Key) -> Tensor {
        scalar(0)
    }
    fn step(&self, place: Tensor, action: Tensor, _: Key) -> (Tensor, TimeStep) {
        let place = (place + 2 * action - 1).clamp(0, 2);
        let terminated = place.eq(2);
        let reward = terminated.astype(F32);
        let observation = self.observe(place);
        (place, TimeStep { observation, reward, terminated, truncated: constant(false) })
    }
    fn observe(&self, place: Tensor) -> Tensor {
        one_hot(place, 3)
    }
    fn observation_space(&self) -> Space {
        Space::bounded([3], 0.0, 1.0)
    }
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }
    fn truncates(&self) -> bool {
        false
    }
}

/// The standard library's loop: the online agent, two environments on each of two devices.
#[test]
fn an_agent_loop() {
    let mut agent = loops::online(&Corridor, sgd(0.1));
    agent.settings.networks.hidden = vec![];
    let size = Size { replicas: 2, environments: 4, unroll: 3, iterations: 5 };
    let traced = loops::traced(&Corridor, &agent, size);
    assert_snapshot!("agent_loop_ir", simplify(traced.traced().func(), &Options::default()));
}

/// A training loop of one's own: REINFORCE with a table, two environments on each of two devices.
#[test]
fn a_training_loop() {
    let init =
        |key: Key| Placed { replicated: (zeros(F32, [3, 2]), key), sharded: zeros(I32, [2]) };
    let iteration = |state: Placed<(Tensor, Key), Tensor>| {
        let Placed { replicated: (policy, key), sharded: places } = state;
        let (key, cycle) = key.split();
        let ((loss, places), grads) = value_and_grad(policy, |policy| {
            let noise = cycle.gumbel([4, 2, 2]);
            let (places, (log_prob, reward)) = scan(places, noise, |places, noise| {
                let logits = policy.take(places, 0);
                let action = (logits + noise).argmax(-1);
                let log_prob = vmap((logits, action), |(logits, action)| {
                    Categorical::new(logits).log_prob(action)
                });
                let (places, timestep) = vmap((places, action), |(place, action)| {
                    Corridor.step(place, action, Key::new(0))
                });
                (places, (log_prob, timestep.reward))
            });
            let (_, returns) = scan_reverse(zeros(F32, [2]), reward, |next, reward| {
                let this = reward + 0.9 * next;
                (this, this)
            });
            (-(log_prob * returns).mean(), places)
        });
        let policy = policy - 0.1 * pmean(grads, Replicas);
        (
            Placed { replicated: (policy, key), sharded: places },
            Placed { replicated: loss, sharded: () },
        )
    };
    let traced = AnakinLoop::trace("loop", 2, 5, init, iteration).expect("it traces");
    assert_eq!(traced.traced().arguments().leaves().len(), 3);
    assert_snapshot!("loop_ir", simplify(traced.traced().func(), &Options::default()));
    let lowered = traced.lower().expect("it lowers");
    assert_snapshot!("loop_stablehlo", lowered.module.key());
}

/// The same text in every trace, so that a snapshot changes only with its content.
#[test]
fn texts_are_the_same_every_time() {
    assert_eq!(catch_step().to_string(), catch_step().to_string());
    let environment = CATCH;
    let text = || {
        let traced = loops::traced(&environment, &loops::ppo(&environment, sgd(0.1)), loops::TINY);
        traced.lower().expect("it lowers").module.text
    };
    assert_eq!(text(), text());
}
