//! MuZero and AlphaZero: targets, losses and gradients against rlax and optax, and gradient steps on a split batch.

use crate::golden::{Named, Of, Record, floats, records_in, run};
use podracer_dsl::prelude::*;
use podracer_envs::boards::TicTacToe;
use podracer_envs::{AnyEnvironment, Catch, Environment, Space};
use podracer_rl::agents::{
    AlphaZero, AlphaZeroSettings, LearnFrom, MuZero, MuZeroNetwork, MuZeroSettings, PlanExtras,
    PlannedStep, PlanningSettings, SearchKind, SearchSettings,
};
use podracer_rl::learn::{
    Agent, AgentSettings, Axes, Cx, Input, LearnFromReplay, Mode, RolloutShape, Split, Task,
    Windows,
};
use podracer_rl::net::{Networks, TorsoNet};
use podracer_rl::nn::{Activation, Linear, Mlp};

fn network(x: &Named) -> MuZeroNetwork {
    let mlp = |name: &str| Mlp {
        layers: [0, 1]
            .map(|i| Linear {
                weight: x.get(&format!("{name}.{i}.weight")),
                bias: x.get(&format!("{name}.{i}.bias")),
            })
            .to_vec(),
        norms: Vec::new(),
        activation: Activation::Relu,
    };
    MuZeroNetwork::Dense {
        torso: TorsoNet::Flat,
        representation: mlp("representation"),
        dynamics: mlp("dynamics"),
        reward: mlp("reward"),
        policy: mlp("policy"),
        value: mlp("value"),
        chance: None,
    }
}

fn settings(record: &Record) -> MuZeroSettings {
    let count = |name: &str| record.count(name).expect("a count");
    let number = |name: &str| record.number(name).expect("a number").into();
    MuZeroSettings {
        model_unroll: count("unroll"),
        n_step: count("n"),
        planning: PlanningSettings {
            learn_from: match record.flag("replay").expect("a switch") {
                true => LearnFrom::Replay,
                false => LearnFrom::Rollouts,
            },
            ..PlanningSettings::default()
        },
        discount: number("discount"),
        value_cost: number("value_cost"),
        value_support: count("value_support"),
        reward_support: count("reward_support"),
        ..MuZeroSettings::default()
    }
}

fn agent(settings: MuZeroSettings) -> MuZero {
    MuZero { observation: Space::unbounded([2]), actions: 3, players: 1, iterations: 1, settings }
}

/// Names of the gradients of a record.
const GRADIENTS: [&str; 20] = [
    "grad.representation.0.weight",
    "grad.representation.0.bias",
    "grad.representation.1.weight",
    "grad.representation.1.bias",
    "grad.dynamics.0.weight",
    "grad.dynamics.0.bias",
    "grad.dynamics.1.weight",
    "grad.dynamics.1.bias",
    "grad.reward.0.weight",
    "grad.reward.0.bias",
    "grad.reward.1.weight",
    "grad.reward.1.bias",
    "grad.policy.0.weight",
    "grad.policy.0.bias",
    "grad.policy.1.weight",
    "grad.policy.1.bias",
    "grad.value.0.weight",
    "grad.value.0.bias",
    "grad.value.1.weight",
    "grad.value.1.bias",
];

/// Episodes end and are cut off at any step, some steps are reset-only, and unrolls extend beyond
/// the windows' ends.
#[test]
fn targets_losses_priorities_and_gradients_are_those_of_rlax_and_optax() {
    let mut batches = 0;
    for record in records_in("muzero", "muzero_loss") {
        batches += record.input("weights").ty().shape[0];
        let agent = agent(settings(&record));
        let &MuZeroSettings { n_step, discount, .. } = &agent.settings;
        record.check_of(Of::Sum, 2e-5, |x| {
            let net = network(x);
            let steps = PlannedStep {
                observation: x.get("observation"),
                action: x.get("action"),
                reward: x.get("reward"),
                terminated: x.get("terminated"),
                truncated: x.get("truncated"),
                skipped: Some(x.get("skipped")),
                plan: PlanExtras { policy: x.get("policy"), value: x.get("search_value") },
            };
            let weights = x.get("weights");
            let (values, loss, priority, grads) = vmap((steps, weights), |(steps, weights)| {
                let values =
                    vmap(axis(steps.clone(), 1), |steps| steps.value_targets(n_step, discount));
                let windows = Windows { steps, starts: (), weights };
                let ((loss, priority), grads) = value_and_grad(net.clone(), |net| {
                    let loss = agent.loss(&net, &windows, &Axes::none());
                    (loss.loss, loss.priorities)
                });
                (values.swap_axes(0, 1), loss, priority, grads)
            });
            let mut outputs = vec![("values", values), ("loss", loss), ("priority", priority)];
            let MuZeroNetwork::Dense { representation, dynamics, reward, policy, value, .. } =
                &grads
            else {
                unreachable!("the network is dense");
            };
            let parts = [representation, dynamics, reward, policy, value];
            let leaves = parts.iter().flat_map(|mlp| &mlp.layers);
            let leaves = leaves.flat_map(|layer| [layer.weight, layer.bias]);
            outputs.extend(GRADIENTS.into_iter().zip(leaves));
            outputs
        });
    }
    assert_eq!(batches, 120);
}

/// Settings of small networks and short searches.
pub(crate) fn small() -> MuZeroSettings {
    MuZeroSettings {
        model_unroll: 2,
        n_step: 2,
        value_support: 2,
        reward_support: 2,
        embedding: 4,
        head_hidden: vec![3],
        planning: PlanningSettings {
            gradient_steps: 3,
            search: SearchSettings { simulations: 4, ..SearchSettings::default() },
            ..PlanningSettings::default()
        },
        networks: Networks { hidden: vec![5], ..MuZeroSettings::default().networks },
        ..MuZeroSettings::default()
    }
}

/// Random steps of `[T, N]` lanes with three actions and two features.
pub(crate) fn steps(key: Key, time: usize, lanes: usize) -> PlannedStep {
    let keys = key.split_n(6);
    let shape = [time, lanes];
    let none = zeros(BOOL, shape);
    PlannedStep {
        observation: keys.at(0).normal([time, lanes, 2]),
        action: keys.at(1).randint(shape, 0..3),
        reward: keys.at(2).normal(shape),
        terminated: keys.at(3).bernoulli(shape, 0.2),
        truncated: none,
        skipped: None,
        plan: PlanExtras {
            policy: keys.at(4).normal([time, lanes, 3]).softmax(-1),
            value: keys.at(5).normal(shape),
        },
    }
}

/// Three gradient steps on a batch that is split into three are bit-identical to three gradient
/// steps on its parts, one after the other.
#[test]
fn gradient_steps_on_a_split_batch_are_gradient_steps_on_its_parts() {
    let (time, lanes, groups) = (5, 6, 3);
    let agent = agent(small());
    let cx = |key: Key| Cx { key, iteration: scalar(0), axes: Axes::none() };
    let split = run((), &[], |()| {
        let [init, key] = Key::new(3).split_into();
        let state = LearnFromReplay::init(&agent, init);
        let split = Split { agent: agent.clone(), gradient_steps: groups };
        split.learn_from(state, (steps(key.again(), time, lanes), ()), &cx(key)).0
    });
    let one_by_one = run((), &[], |()| {
        let [init, key] = Key::new(3).split_into();
        let mut state = LearnFromReplay::init(&agent, init);
        let all = steps(key.again(), time, lanes);
        for group in 0..groups {
            let lanes = group * 2..(group + 1) * 2;
            let steps = tree_map(&all, |leaf| leaf.slice_axis(1, lanes.clone()));
            let windows = Windows { steps, starts: (), weights: ones(F32, [2]) };
            state = agent.gradient_step(state, windows, &cx(key.fold_in(group))).0;
        }
        state
    });
    assert_eq!(split, one_by_one);
    let begun = run((), &[], |()| {
        LearnFromReplay::init(
            &agent,
            Key::new(3).split_into::<2>().into_iter().next().expect("a key"),
        )
    });
    let moved = begun.iter().zip(&split).filter(|(before, after)| before != after).count();
    assert!(moved > 4, "{moved} leaves moved");
}

pub(crate) fn input(observation: Tensor, legal_actions: Option<Tensor>) -> Input {
    Input {
        observation,
        legal_actions,
        last_action: scalar(0),
        last_reward: scalar(0.0),
        first: scalar(true),
    }
}

/// Evaluations have no noise: any key gives the same action. Exploring draws.
#[test]
fn greedy_actions_do_not_depend_on_the_key() {
    for search in [SearchKind::Muzero, SearchKind::Gumbel] {
        let mut settings = small();
        let searched = &mut settings.planning.search;
        (searched.search, searched.simulations) = (search, 8);
        let agent = agent(settings);
        let actions = |mode: Mode| {
            run((), &[], |()| {
                let mut net = agent.params(&LearnFromReplay::init(&agent, Key::new(0)));
                // Actions that are visited equally often are drawn from: one is liked best here.
                if let MuZeroNetwork::Dense { policy, .. } = &mut net {
                    policy.layers[1].bias = constant([0.0, 1.0, 3.0]);
                }
                vmap(Key::new(1).split_n(32), |key| {
                    agent.act(&net, None, input(constant([0.5, -1.0]), None), mode, key).action
                })
            })[0]
                .to_f64()
        };
        let greedy = actions(Mode::Greedy);
        assert!(greedy.iter().all(|action| *action == greedy[0]), "{search:?}: {greedy:?}");
        let explored = actions(Mode::Explore);
        assert!(explored.iter().any(|action| *action != explored[0]), "{search:?}: {explored:?}");
    }
}

/// With an untrained network, the search finds the move that wins at once, and the move that blocks
/// the other player's win.
#[test]
fn a_search_with_the_true_model_wins_and_blocks() {
    let search = SearchSettings { simulations: 64, ..SearchSettings::default() };
    let settings = AlphaZeroSettings {
        planning: PlanningSettings { search, ..PlanningSettings::default() },
        networks: Networks { hidden: vec![4], ..Networks::default() },
        ..AlphaZeroSettings::default()
    };
    let model = AnyEnvironment::new(TicTacToe::default());
    let agent = AlphaZero::new(model, 9, 1, settings).expect("a game whose state is told");
    // Cells of the player to move and of the other player, and the only good move.
    for (own, other, good) in [([0, 1], [4, 8], 2), ([0, 8], [4, 3], 5)] {
        let cell = |cell: usize, stones: [usize; 2]| f64::from(u8::from(stones.contains(&cell)));
        let planes: Vec<f64> = (0..9).flat_map(|at| [cell(at, own), cell(at, other)]).collect();
        let results = run((), &[], |()| {
            let net = agent.params(&LearnFromReplay::init(&agent, Key::new(0)));
            let seen = constant_of(&floats(&[3, 3, 2], &planes));
            let legal = seen.sum_axis(-1).flatten().eq(0.0);
            let act = agent.act(&net, (), input(seen, Some(legal)), Mode::Greedy, Key::new(1));
            (act.action, act.extras.policy)
        });
        assert_eq!(results[0].to_f64(), [f64::from(good)], "{own:?} {other:?}: {:?}", results[1]);
    }
}

#[test]
fn an_environment_without_state_of_is_an_error() {
    let environment = Catch::default();
    let task = Task {
        observation: environment.observation_space(),
        action: environment.action_space(),
        iterations: 1,
        model: Some(AnyEnvironment::new(environment)),
    };
    let problem = AlphaZeroSettings::default().agent(&task).err().expect("an error");
    assert!(problem.contains("`state_of`"), "{problem}");
    let problem = AlphaZeroSettings::default().agent(&Task { model: None, ..task }).err();
    assert!(problem.expect("an error").contains("steps on the host"));
}

#[test]
fn lanes_that_do_not_divide_into_gradient_steps_are_an_error() {
    let problem =
        small().check_rollout(RolloutShape { lanes: 8, unroll: 16 }, 1).expect_err("an error");
    assert!(problem.contains("8 environments") && problem.contains("gradient_steps = 3"));
}
