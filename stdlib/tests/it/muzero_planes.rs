//! MuZero with planes as states: shapes, the planes of actions, checks of settings, and learning.

use crate::golden::run;
use crate::muzero::{small, steps};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::agents::{ActionPlanes, ModelKind, MuZero, MuZeroNetwork, MuZeroSettings};
use podracer_rl::learn::{Axes, Cx, LearnFromReplay, Task, Windows};
use podracer_rl::net::{Networks, Torso};

/// Small networks with planes behind a torso of one convolution, of windows of `side` by `side`, or of one section.
fn settings(torso: Torso, side: usize) -> MuZeroSettings {
    MuZeroSettings {
        model: ModelKind::Planes,
        planes: 4,
        blocks: 1,
        networks: Networks {
            torso,
            convs: vec![[5, side, 1]],
            sections: vec![3],
            ..small().networks
        },
        ..small()
    }
}

fn task(image: [usize; 3], actions: usize) -> Task {
    let observation = Space::unbounded(image);
    Task { observation, action: Space::discrete(actions), iterations: 1, model: None }
}

fn agent(settings: &MuZeroSettings, image: [usize; 3], actions: usize) -> MuZero {
    MuZero::for_task(settings, &task(image, actions)).expect("settings that fit")
}

/// States have the torso's resolution, before and behind the dynamics, and their elements are in [0, 1].
#[test]
fn states_of_muzero_are_planes_of_the_torso_s_resolution() {
    for (torso, side, image, wanted) in [
        (Torso::Conv, 1, [6, 7, 2], [6, 7, 4]),
        (Torso::Conv, 3, [10, 5, 1], [8, 3, 4]),
        (Torso::Residual, 0, [10, 5, 1], [5, 3, 4]),
    ] {
        let settings = settings(torso, side);
        let agent = agent(&settings, image, 7);
        let results = run((), &[], |()| {
            let net = agent.params(&LearnFromReplay::init(&agent, Key::new(0)));
            let state = net.represent(Key::new(1).normal(image));
            let actions = eye(F32, 7);
            let (next, rewards) = vmap(actions, |action| net.step(state, action));
            let (policy, value) = net.predict(state);
            let apart = (next.index(0) - next.index(1)).abs().max();
            let range = |x: Tensor| stack(&[x.min(), x.max()], 0);
            (state, next, rewards, policy, value, range(state), range(next), apart)
        });
        let shapes: Vec<&[usize]> =
            results[..5].iter().map(|array| &array.ty().shape[..]).collect();
        let next = [&[7], &wanted[..]].concat();
        assert_eq!(shapes, [&wanted[..], &next, &[7, 5], &[7], &[5]], "{torso:?} {side}");
        assert_eq!(results[5].to_f64(), [0.0, 1.0]);
        assert_eq!(results[6].to_f64(), [0.0, 1.0]);
        // Two actions lead to different states.
        assert!(results[7].to_f64()[0] > 1e-3, "{torso:?} {side}");
    }
}

#[test]
fn actions_of_muzero_are_cells_or_columns_of_a_board_or_planes_of_their_own() {
    let board = [2, 3];
    for (actions, state, form) in [
        (6, board, ActionPlanes::Cells),
        (7, board, ActionPlanes::Cells),
        (3, board, ActionPlanes::Columns),
        (4, board, ActionPlanes::Tiled),
        // Nothing is known of where the cells of the board are in a state of another resolution.
        (6, [3, 2], ActionPlanes::Tiled),
    ] {
        assert_eq!(ActionPlanes::of(actions, board, state), form, "{actions} {state:?}");
    }
    let planes = |form: ActionPlanes, actions: usize, action: i32| {
        let results = run((), &[], |()| form.planes(scalar(action).one_hot(actions), board));
        (results[0].ty().shape.to_vec(), results[0].to_f64())
    };
    let one = |at: usize| (0..6).map(|cell| f64::from(u8::from(cell == at))).collect::<Vec<_>>();
    assert_eq!(planes(ActionPlanes::Cells, 7, 4), (vec![2, 3, 1], one(4)));
    // The last action passes.
    assert_eq!(planes(ActionPlanes::Cells, 7, 6), (vec![2, 3, 1], one(6)));
    let column = vec![0.0, 1.0, 0.0, 0.0, 1.0, 0.0];
    assert_eq!(planes(ActionPlanes::Columns, 3, 1), (vec![2, 3, 1], column));
    let tiled = [0.0, 1.0].repeat(6);
    assert_eq!(planes(ActionPlanes::Tiled, 2, 1), (vec![2, 3, 2], tiled));
}

/// The loss of one batch of windows falls, and the dynamics are among the parameters that learn.
#[test]
fn muzero_learns_with_convolutions() {
    let mut settings = settings(Torso::Conv, 2);
    let planning = &mut settings.planning;
    planning.optimizer.learning_rate = 3e-3.into();
    (planning.weight_decay, planning.gradient_steps) = (0.0.into(), 1);
    let agent = agent(&settings, [3, 4, 1], 3);
    let results = run((), &[], |()| {
        let [init, key] = Key::new(3).split_into();
        let [pictures, data] = key.split_into();
        let mut steps = steps(data, 4, 3);
        steps.observation = pictures.normal([4, 3, 3, 4, 1]);
        let state = LearnFromReplay::init(&agent, init);
        let moved = |before: &MuZeroNetwork, after: &MuZeroNetwork| match (before, after) {
            (MuZeroNetwork::Planes { planes: before }, MuZeroNetwork::Planes { planes: after }) => {
                let kernel = before.dynamics.kernel - after.dynamics.kernel;
                kernel.abs().max()
            }
            _ => scalar(0.0),
        };
        let before = agent.params(&state);
        let (state, losses) = scan(state, arange(30), |state, iteration| {
            let windows = Windows { steps: steps.clone(), starts: (), weights: ones(F32, [3]) };
            let cx = Cx { key: Key::new(0), iteration, axes: Axes::none() };
            let (state, _, metrics) = agent.gradient_step(state, windows, &cx);
            (state, metrics.loss)
        });
        (losses, moved(&before, &agent.params(&state)))
    });
    let losses = results[0].to_f64();
    assert!(losses[29] < 0.9 * losses[0], "{losses:?}");
    assert!(results[1].to_f64()[0] > 1e-3);
}

#[test]
fn planes_without_convolutions_are_an_error() {
    let problem = |settings: MuZeroSettings, wanted: &str| {
        let problem = MuZero::for_task(&settings, &task([6, 7, 2], 7)).expect_err("an error");
        assert!(problem.contains(wanted), "{problem}");
    };
    let good = settings(Torso::Conv, 1);
    problem(settings(Torso::None, 1), "agent.torso = none");
    problem(settings(Torso::Conv, 9), "windows of 9 by 9");
    problem(
        MuZeroSettings { chance_outcomes: Some(2), ..good.clone() },
        "agent.chance_outcomes = 2",
    );
    let networks = Networks { layer_norm: true, ..good.networks.clone() };
    problem(MuZeroSettings { networks, ..good }, "agent.layer_norm = true");
}
