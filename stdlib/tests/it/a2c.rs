//! A2C: its loss against rlax, and that learning goes through a trajectory as acting went.

use crate::agent_loop::{Iteration, Tape, input, linear, tape};
use crate::golden::{Of, records};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space};
use podracer_rl::agents::{A2c, A2cSettings, ActorCriticLoss, Impala, ImpalaSettings};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{Axes, RolloutOf};
use podracer_rl::net::{ActorCritic, TorsoNet};
use podracer_rl::nn::{Activation, Linear, Mlp};
use podracer_rl::optim::sgd;
use podracer_rl::returns::PgAdvantage;

/// 200 batches, each with networks of its own. Episodes end and are cut off within the trajectories.
#[test]
fn the_loss_and_its_gradient_are_those_of_rlax() {
    for record in records("a2c_loss") {
        let number = |name: &str| record.number(name).expect("a coefficient").into();
        let settings = A2cSettings {
            discount: number("discount"),
            lambda: number("lambda"),
            value_cost: number("value_cost"),
            entropy_cost: number("entropy_cost"),
            ..A2cSettings::default()
        };
        let agent = A2c::with(settings, Space::unbounded([2]), Space::discrete(3));
        record.check_of(Of::Sum, 1e-5, |x| {
            let weights = |head: &str| {
                ["hidden.weight", "hidden.bias", "last.weight", "last.bias"]
                    .map(|name| x.get(&format!("{head}.{name}")))
            };
            let seen = ["observation", "next_observation", "last_observation"];
            let steps = ["action", "reward", "terminated", "truncated"];
            let batches = ((weights("actor"), weights("critic")), x.all(seen), x.all(steps));
            let loss = vmap(batches, |((actor, critic), seen, steps)| {
                let mlp = |[hidden, hidden_bias, last, last_bias]: [Tensor; 4]| Mlp {
                    layers: vec![
                        Linear { weight: hidden, bias: hidden_bias },
                        Linear { weight: last, bias: last_bias },
                    ],
                    norms: Vec::new(),
                    activation: Activation::Tanh,
                };
                let params = ActorCritic {
                    torso: TorsoNet::Flat,
                    core: None,
                    feedback: false,
                    agents: None,
                    action: Space::discrete(2),
                    actor: mlp(actor),
                    critic: mlp(critic),
                    log_std: None,
                };
                let [observation, next_observation, last_observation] = seen;
                let [action, reward, terminated, truncated] = steps;
                let rollout = RolloutOf {
                    input: input(observation, 2),
                    action,
                    reward,
                    terminated,
                    truncated,
                    skipped: None,
                    next_observation: Some(next_observation),
                    next_input: input(last_observation, 1),
                    taken_over: None,
                    memory: None,
                    extras: (),
                };
                agent.settings.loss(params, &rollout, &Axes::none()).0
            });
            vec![("loss", loss)]
        });
    }
}

/// The parameters of A2C and of IMPALA after one step of gradient descent on the tape.
fn after_a_step(tape: &Tape, lambda: f64) -> [Vec<Vec<f64>>; 2] {
    let (observation, action) = (tape.observation_space(), tape.action_space());
    let a2c = A2c {
        observation: observation.clone(),
        action: action.clone(),
        optimizer: sgd(1.0),
        iterations: None,
        settings: A2cSettings {
            networks: linear(),
            lambda: lambda.into(),
            ..A2cSettings::default()
        },
    };
    let steps = tape.steps() as f64;
    let impala = Impala {
        observation,
        action,
        // Its loss is summed over the steps, and its value loss is half of the squared error.
        optimizer: sgd(1.0 / steps),
        iterations: None,
        settings: ImpalaSettings {
            networks: linear(),
            lambda: lambda.into(),
            advantage: PgAdvantage::Rlax,
            value_cost: 1.0.into(),
            ..ImpalaSettings::default()
        },
    };
    let leaves = |iteration: Iteration| {
        let parameters = iteration.paths.iter().zip(&iteration.after);
        let parameters = parameters.filter(|(path, _)| path.contains("params"));
        parameters.map(|(_, leaf)| leaf.to_f64()).collect()
    };
    [
        leaves(Iteration::run(&AgentLoop::new(tape.clone(), a2c, 1, tape.steps()))),
        leaves(Iteration::run(&AgentLoop::new(tape.clone(), impala, 1, tape.steps()))),
    ]
}

/// V-trace of the policy that acted is A2C's returns.
#[test]
fn on_its_own_trajectory_it_is_impala() {
    for lambda in [1.0, 0.7] {
        let [a2c, impala] = after_a_step(&tape(), lambda);
        assert!(a2c.len() >= 4);
        assert_eq!(a2c.len(), impala.len());
        for (got, expected) in a2c.iter().flatten().zip(impala.iter().flatten()) {
            assert!((got - expected).abs() < 3e-6, "{got} and {expected}");
        }
    }
}
