//! Agents' views: they show the values that determine the agent's action.

use crate::golden::run;
use crate::muzero::{input, small};
use podracer_dsl::prelude::*;
use podracer_envs::boards::TicTacToe;
use podracer_envs::{AnyEnvironment, Environment};
use podracer_rl::agents::{
    A2cSettings, AlphaZeroSettings, BootstrappedSettings, DqnSettings, ImpalaSettings,
    MuZeroSettings, OnlineSettings, PpoSettings, PqnSettings, R2d2Settings, SacSettings,
};
use podracer_rl::learn::{
    Act, Agent, AgentSettings, Input, LaneId, Learn, Mode, Task, View, checked_view,
};
use podracer_rl::search::{MuZeroOptions, RecurrentFnOutput, RootFnOutput, muzero_policy};
use serde_json::{Value, json};

/// Values that a view has; empty for those that it does not.
#[derive(Debug, Default)]
struct Seen {
    action: usize,
    legal: Vec<f64>,
    value: Vec<f64>,
    probabilities: Vec<f64>,
    action_values: Vec<f64>,
    picture: Option<Array>,
}

/// Settings with small networks and with these.
fn settings<S: AgentSettings>(more: Value) -> S {
    let small = json!({ "hidden": [8], "evaluation_epsilon": 0.0 });
    let mut table = serde_json::to_value(S::default()).expect("settings");
    for settings in [small, more] {
        let settings = settings.as_object().cloned().expect("a table");
        table.as_object_mut().expect("a table").extend(settings);
    }
    serde_json::from_value(table).expect("settings")
}

/// The greedy action of a new agent after two moves of a game, and its view.
fn seen<S: AgentSettings>(settings: &S) -> Seen {
    let game = TicTacToe::default();
    let task = Task {
        observation: game.observation_space(),
        action: game.action_space(),
        iterations: 1,
        model: Some(AnyEnvironment::new(game)),
    };
    let agent = settings.agent(&task).expect("settings that fit");
    let mut has = [false; 4];
    let results = run((), &[], |()| {
        let [init, first, step, act] = Key::new(3).split_into();
        let params = agent.params(&agent.init(init));
        let mut state = game.initial_state(first);
        for (stone, key) in [4, 0].into_iter().zip(step.split_into::<2>()) {
            (state, _) = game.step(state, scalar(stone), key);
        }
        let legal = game.legal_actions(&state).expect("a mask");
        let input = input(game.observe(state), Some(legal));
        let lane = LaneId { index: scalar(0), lanes: 1 };
        let memory = agent.begin_episode(agent.init_memory(lane));
        let view = agent.view(&params, memory.clone(), input.clone(), Mode::Greedy, act.again());
        let acted = agent.act(&params, memory, input, Mode::Greedy, act);
        has = [
            view.value.is_some(),
            view.probabilities.is_some(),
            view.action_values.is_some(),
            view.picture.is_some(),
        ];
        (acted.action, legal, view)
    });
    let mut rest = results.into_iter();
    let mut next = || rest.next().expect("a result");
    let action = next().to_f64()[0] as usize;
    let legal = next().to_f64();
    let mut numbers = |has: bool| if has { next().to_f64() } else { Vec::new() };
    let (value, probabilities, action_values) = (numbers(has[0]), numbers(has[1]), numbers(has[2]));
    let picture = has[3].then(next);
    Seen { action, legal, value, probabilities, action_values, picture }
}

/// The view belongs to the acting agent: its greedy action has the greatest probability, or value,
/// among the legal actions.
#[track_caller]
fn check<S: AgentSettings>(settings: &S) -> Seen {
    let seen = seen(settings);
    let weights =
        if seen.probabilities.is_empty() { &seen.action_values } else { &seen.probabilities };
    assert_eq!(weights.len(), 9, "{seen:?}");
    let legal = (0..9).filter(|&action| seen.legal[action] > 0.0);
    let greatest = legal.map(|action| weights[action]).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(weights[seen.action], greatest, "{seen:?}");
    if !seen.probabilities.is_empty() {
        let illegal = seen.probabilities[4] + seen.probabilities[0];
        let sum: f64 = seen.probabilities.iter().sum();
        assert!(illegal == 0.0 && (sum - 1.0).abs() < 1e-5, "{seen:?}");
    }
    seen
}

#[test]
fn policies_are_seen_with_their_values() {
    let all = [
        check::<A2cSettings>(&settings(json!({}))),
        check::<PpoSettings>(&settings(json!({ "lstm": 4 }))),
        check::<PpoSettings>(&settings(json!({ "normalize_observations": true }))),
        check::<ImpalaSettings>(&settings(json!({}))),
        check::<OnlineSettings>(&settings(json!({}))),
    ];
    for seen in all {
        assert!(seen.value.len() == 1 && seen.action_values.is_empty(), "{seen:?}");
    }
    // Its actor is all that acting has.
    assert!(check::<SacSettings>(&settings(json!({}))).value.is_empty());
}

#[test]
fn values_of_actions_are_seen() {
    let all = [
        check::<DqnSettings>(&settings(json!({}))),
        check::<PqnSettings>(&settings(json!({}))),
        check::<R2d2Settings>(&settings(json!({ "lstm": 8 }))),
    ];
    for seen in all {
        assert_eq!(seen.value, [seen.action_values[seen.action]]);
    }
    // Its greedy action is the action of most networks, not of their mean.
    let seen = seen::<BootstrappedSettings>(&settings(json!({})));
    assert_eq!((seen.value.len(), seen.action_values.len()), (1, 9));
}

#[test]
fn searches_are_seen_with_their_trees() {
    let muzero = small();
    let nodes = muzero.planning.search.simulations + 1;
    let alphazero: AlphaZeroSettings = settings(json!({ "simulations": nodes - 1 }));
    for seen in [check::<MuZeroSettings>(&muzero), check(&alphazero)] {
        assert_eq!((seen.value.len(), seen.action_values.len()), (1, 9));
        let picture = seen.picture.expect("a picture");
        assert_eq!(picture.ty().shape[..], [16, nodes, 3]);
        // The root is as wide as the picture.
        let bytes = picture.bytes();
        assert!(bytes[..3 * nodes].chunks(3).all(|pixel| pixel == &bytes[..3]), "{bytes:?}");
    }
}

/// A search of two actions with a picture of its tree; the first action is always better.
#[test]
fn a_tree_is_drawn_with_a_level_for_each_depth() {
    let results = run((), &[], |()| {
        let root = RootFnOutput {
            prior_logits: zeros(F32, [1, 2]),
            value: zeros(F32, [1]),
            embedding: zeros(F32, [1]),
        };
        let model = |_: Key, action: Tensor, embedding: Tensor| {
            let output = RecurrentFnOutput {
                reward: 1.0 - action.astype(F32),
                discount: full([1], 1.0),
                prior_logits: zeros(F32, [1, 2]),
                value: zeros(F32, [1]),
            };
            (output, embedding)
        };
        let options = MuZeroOptions { dirichlet_fraction: 0.0.into(), ..MuZeroOptions::default() };
        let tree = muzero_policy(Key::new(0), root, model, 11, None, &options).search_tree;
        (tree.picture(4), tree.parents, tree.action_from_parent, tree.node_visits)
    });
    let numbers = |i: usize| results[i].to_f64();
    let (parents, actions, visits) = (numbers(1), numbers(2), numbers(3));
    let (nodes, picture) = (parents.len(), &results[0]);
    assert_eq!(picture.ty().shape[..], [1, 4, nodes, 3]);
    // Depth and left end of each node, from the root on.
    let mut places = vec![(0, 0.0)];
    for node in 1..nodes {
        let parent = parents[node] as usize;
        let left =
            |other: &usize| parents[*other] == parents[node] && actions[*other] < actions[node];
        let before: f64 = (1..nodes).filter(left).map(|other| visits[other]).sum();
        let (depth, of_parent): (usize, f64) = places[parent];
        places.push((depth + 1, of_parent + before));
    }
    let pixel = |row: usize, column: usize| &picture.bytes()[3 * (row * nodes + column)..][..3];
    let black = [16, 16, 24];
    for row in 0..4 {
        for column in 0..nodes {
            let middle = column as f64 + 0.5;
            let covers = |node: &usize| {
                let (depth, left) = places[*node];
                depth == row && left <= middle && middle < left + visits[*node]
            };
            let node = (0..nodes).find(covers);
            assert_eq!(node.is_none(), pixel(row, column) == black, "{row}, {column}: {node:?}");
        }
    }
    // The root's two children have different colours.
    assert_ne!(pixel(1, 0), pixel(1, nodes - 2));
}

/// An agent with these parts in its view.
#[derive(Clone)]
struct Shows {
    value: DType,
    channels: usize,
}

idle_agent!(Shows {
    fn view(&self, (): &(), (): (), _: Input, _: Mode, _: Key) -> View {
        View {
            value: Some(zeros(self.value, [])),
            picture: Some(zeros(U8, [2, 2, self.channels])),
            ..View::default()
        }
    }
});

#[test]
fn views_of_other_types_are_refused() {
    let told = |value, channels| {
        let traced = eval_shape(key(), |key| {
            let input = input(zeros(F32, [1]), None);
            checked_view(&Shows { value, channels }, &(), (), input, Mode::Greedy, key)
        });
        traced.map(drop).map_err(|errors| {
            let messages = errors.errors.iter().map(|error| error.message.clone());
            messages.collect::<Vec<_>>().join("; ")
        })
    };
    assert_eq!(told(F32, 3), Ok(()));
    assert_eq!(told(I32, 3), Err("`view(..).value` must be f32[], got i32[]".to_owned()));
    let picture = "`view(..).picture` must be u8[_,_,3], got u8[2,2,1]";
    assert_eq!(told(F32, 1), Err(picture.to_owned()));
}
