//! Stochastic MuZero learns the outcomes of a coin from its observations alone.

use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::agents::{Encoded, LearnFrom, MuZero, MuZeroSettings, PlanExtras, PlannedStep};
use podracer_rl::learn::{Axes, Cx, LearnFromReplay, Windows};
use podracer_rl::net::Networks;
use podracer_rl::returns::TxPair;
use podracer_tests::xla;

/// Probability of heads.
const HEADS: f64 = 0.25;
/// Steps of a window, and windows of a batch.
const STEPS: usize = 4;
const WINDOWS: usize = 64;

fn agent() -> MuZero {
    let mut settings = MuZeroSettings {
        model_unroll: 2,
        n_step: 1,
        chance_outcomes: Some(4),
        value_support: 2,
        reward_support: 2,
        rescaling: TxPair::Identity,
        embedding: 8,
        head_hidden: vec![16],
        networks: Networks { hidden: vec![16], ..Networks::default() },
        ..MuZeroSettings::default()
    };
    let planning = &mut settings.planning;
    planning.optimizer.learning_rate = 3e-3.into();
    (planning.weight_decay, planning.learn_from) = (0.0.into(), LearnFrom::Replay);
    MuZero { observation: Space::unbounded([2]), actions: 2, players: 1, iterations: 1, settings }
}

/// Flips of a coin, `[T, B]`: a step shows the last flip, and pays 1 if the next flip is heads.
/// There are no other rewards.
fn flips(key: Key) -> PlannedStep {
    let [flip, act] = key.split_into();
    let heads = flip.bernoulli([STEPS + 1, WINDOWS], HEADS).astype(F32);
    let seen = heads.slice_axis(0, ..STEPS);
    let none = zeros(BOOL, [STEPS, WINDOWS]);
    PlannedStep {
        observation: stack(&[seen, 1.0 - seen], -1),
        action: act.randint([STEPS, WINDOWS], 0..2),
        reward: heads.slice_axis(0, 1..),
        terminated: none,
        truncated: none,
        skipped: None,
        plan: PlanExtras {
            policy: full([STEPS, WINDOWS, 2], 0.5),
            value: zeros(F32, [STEPS, WINDOWS]),
        },
    }
}

#[test]
fn outcomes_of_a_coin_are_learnt_with_their_probabilities_and_rewards() {
    let traced = trace(key(), |key| {
        let agent = agent();
        let [init, learn] = key.split_into();
        let state = agent.init(init);
        let (state, _) = scan(state, learn.split_n(600), |state, key| {
            let [flip, key] = key.split_into();
            let windows = Windows { steps: flips(flip), starts: (), weights: ones(F32, [WINDOWS]) };
            let cx = Cx { key, iteration: scalar(0), axes: Axes::none() };
            (agent.gradient_step(state, windows, &cx).0, ())
        });
        let network = agent.params(&state);
        let chance = network.chance().expect("a model of chance");
        let embedding = network.represent(constant([1.0, 0.0]));
        let after = chance.after(embedding, constant([1.0, 0.0]));
        let (outcomes, value) = chance.predict(after);
        let rewards = vmap(eye(F32, 4), |code| network.step(after, code).1);
        (
            outcomes.softmax(-1),
            agent.settings.reward_support().mean(rewards),
            agent.settings.value_support().mean(value),
        )
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let results = xla::run_quickly(traced.func(), &[Array::key(1)]).expect("it runs");
    let [probs, rewards, value] = [0, 1, 2].map(|i| results[i].to_f64());
    let said = format!("{probs:?} {rewards:?} {value:?}");
    let likely = |i: &usize| probs[*i] > 0.05;
    let near = |a: f64, b: f64, far: f64| (a - b).abs() < far;
    assert!((0..4).filter(likely).all(|i| near(rewards[i], rewards[i].round(), 0.1)), "{said}");
    let heads: f64 = (0..4).filter(|&i| rewards[i] > 0.5).map(|i| probs[i]).sum();
    assert!(near(heads, HEADS, 0.06), "{said}");
    // An afterstate is worth the mean reward of its flip.
    assert!(near(value[0], HEADS, 0.06), "{said}");
}

#[test]
fn an_outcome_is_one_hot_and_passes_its_gradient_on() {
    let traced = trace(f32([2, 3]), |numbers| {
        let encoded = Encoded::of(numbers);
        let weights = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let through = grad(numbers, |numbers| (Encoded::of(numbers).code * weights).sum());
        let to_code = grad(numbers, |numbers| Encoded::of(numbers).commitment.sum());
        (encoded.code, encoded.commitment, through, to_code)
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let numbers = Array::floats(DType::F32, [2, 3], &[0.5, 2.0, -1.0, 0.25, 0.0, -0.5]);
    let results = traced.eval(&[numbers]).expect("it runs");
    assert_eq!(results[0].to_f64(), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(results[1].to_f64(), [0.25 + 1.0 + 1.0, 0.5625 + 0.25]);
    assert_eq!(results[2].to_f64(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(results[3].to_f64(), [1.0, 2.0, -2.0, -1.5, 0.0, -1.0]);
}

/// The loss of one window with a first step that is terminal or not, with some numbers for the
/// observation of the second step.
#[test]
fn observations_of_the_next_episode_have_no_outcome() {
    let loss = |terminated: bool, second: [f64; 2]| {
        let traced = trace(key(), |key| {
            let agent = agent();
            let network = agent.params(&agent.init(key.again()));
            let steps = tree_map(&flips(key), |leaf| leaf.slice_axis(1, ..1));
            let row = iota(I32, [STEPS, 1, 2], 0);
            let observation = select(row.eq(0), steps.observation, constant(second));
            let first = iota(I32, [STEPS, 1], 0).eq(0);
            let steps = PlannedStep { observation, terminated: first & terminated, ..steps };
            let windows = Windows { steps, starts: (), weights: ones(F32, [1]) };
            agent.loss(&network, &windows, &Axes::none()).loss
        });
        let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
        traced.eval(&[Array::key(2)]).expect("it runs")[0].to_f64()[0]
    };
    let (here, there) = ([1.0, 0.0], [-3.0, 2.0]);
    assert_eq!(loss(true, here), loss(true, there));
    assert_ne!(loss(false, here), loss(false, there));
}
