//! Normalised observations and rewards, with the numbers of Gymnasium's `RunningMeanStd` and of its
//! vector wrapper `NormalizeReward` (1.4) where environments reset within the step that ends an episode.

use crate::agent_loop::input;
use crate::golden::{close, floats, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::learn::{
    Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Moments, Normalized, Rollout, RolloutOf,
};

/// An agent with its rollout as its metrics.
#[derive(Clone)]
struct Seen;

idle_agent!(Seen);

impl Learn for Seen {
    type State = ();
    type Store = ();
    type Metrics = (Tensor, Tensor, Tensor);
    fn init(&self, _: Key) {}
    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}
    fn params(&self, (): &()) {}
    fn learn(
        &self,
        (): (),
        (): (),
        rollout: Rollout<Self>,
        _: Cx,
    ) -> ((), (), (Tensor, Tensor, Tensor)) {
        let seen = (rollout.input.observation, rollout.next_input.observation);
        ((), (), (rollout.reward, seen.0, seen.1))
    }
}

fn rollout(
    observation: Tensor,
    last: Tensor,
    reward: Tensor,
    ends: [Tensor; 2],
) -> Rollout<Normalized<Seen>> {
    let [terminated, truncated] = ends;
    RolloutOf {
        input: input(observation, 2),
        action: zeros(I32, reward.shape()),
        reward,
        terminated,
        truncated,
        skipped: None,
        next_observation: Some(observation),
        next_input: input(last, 1),
        taken_over: None,
        memory: (),
        extras: (),
    }
}

#[test]
fn moments_are_those_of_all_numbers() {
    let squares: Vec<f64> = (0..12).map(|i| f64::from(i * i) / 10.0).collect();
    let sines: Vec<f64> = (0..12).map(|i| f64::from(i).sin() * 100.0).collect();
    let given = [squares, sines].map(|values| floats(&[2, 3, 2], &values));
    let spec = (f32([2, 3, 2]), f32([2, 3, 2]));
    let results = run(spec, &given, |(squares, sines)| {
        let none = zeros(BOOL, [2, 3]);
        let steps = rollout(squares, squares.index(0), zeros(F32, [2, 3]), [none, none]);
        let axes = Axes::none();
        Moments::first(&[2]).with(squares, &steps, &axes).with(sines, &steps, &axes)
    });
    let expected = [
        ("count", floats(&[], &[12.0001])),
        ("mean", floats(&[2], &[4.48676735, 3.15648699])),
        ("variance", floats(&[2], &[2286.59766867, 2717.75344177])),
    ];
    assert_eq!(results.len(), expected.len());
    for (got, (what, expected)) in results.iter().zip(&expected) {
        close(what, got, expected, 5e-7);
    }
}

/// Five steps of two lanes: one episode is cut off, one ends.
#[test]
fn an_agent_sees_normalised_observations_and_rewards() {
    let rewards = [1.0, 2.0, 3.0, -1.0, 2.0, 2.0, 0.5, 1.0, 1.0, 4.0];
    let shown: Vec<f64> = (0..10).map(|i| f64::from(i) - 3.0).collect();
    let at = |at: usize| {
        let flags: Vec<bool> = (0..10).map(|i| i == at).collect();
        constant_of(&Array::bools([5, 2], &flags))
    };
    let space = Space::unbounded([1]);
    let agent = Normalized::new(Seen, space, 0.9);
    let given = |shape: &[usize], values: &[f64]| constant_of(&floats(shape, values));
    let results = run(key(), &[words(7)], |key| {
        let (init, key) = key.split();
        let state = agent.init(init);
        let observation = given(&[5, 2, 1], &shown);
        let last = given(&[2, 1], &[-20.0, 0.5]);
        let steps = rollout(observation, last, given(&[5, 2], &rewards), [at(3), at(4)]);
        let cx = Cx { key, iteration: scalar(0), axes: Axes::replicas(1) };
        let (state, store, (reward, seen, last)) =
            agent.learn(state, agent.init_store(&steps.spec(), &cx), steps, cx);
        ((reward, state.returns, store.returns), (seen, last), state.observations)
    });
    let [reward, count, mean, variance, carried, seen, last, rest @ ..] = &results[..] else {
        panic!("{} results", results.len());
    };
    let std = 4.736299546635437f64.sqrt();
    let check = |what: &str, got: &Array, shape: &[usize], expected: &[f64]| {
        close(what, got, &floats(shape, expected), 5e-7);
    };
    check("rewards", reward, &[5, 2], &rewards.map(|reward| reward / std));
    check("count", count, &[], &[10.0001]);
    check("mean", mean, &[], &[2.4679753202467976]);
    check("variance", variance, &[], &[4.736299546635437]);
    check("carried", carried, &[2], &[1.45, 6.52]);
    // With the statistics at the time of acting: none.
    check("seen", seen, &[5, 2, 1], &shown);
    check("last", last, &[2, 1], &[-10.0, 0.5]);
    // With the statistics now: nearly the mean of -3 to 6.
    check("mean seen", &rest[1], &[1], &[1.5 * 10.0 / 10.0001]);
}

/// Three steps of reward 1 in three lanes: the second step of one is cut off, of one terminates, of one is like any other.
#[test]
fn a_running_return_begins_at_zero_after_either_end_and_an_end_has_its_reward_alone() {
    let flags = |at: usize| {
        constant_of(&Array::bools([3, 3], &std::array::from_fn::<_, 9, _>(|i| i == at)))
    };
    let agent = Normalized::new(Seen, Space::unbounded([1]), 0.5);
    let results = run(key(), &[words(7)], |key| {
        let (init, key) = key.split();
        let state = agent.init(init);
        let (shown, last) = (zeros(F32, [3, 3, 1]), zeros(F32, [3, 1]));
        let ends = [flags(4), flags(3)];
        let steps = rollout(shown, last, ones(F32, [3, 3]), ends);
        let cx = Cx { key, iteration: scalar(0), axes: Axes::replicas(1) };
        let (state, store, _) = agent.learn(state, agent.init_store(&steps.spec(), &cx), steps, cx);
        (state.returns.map(|of| of.mean), store.returns)
    });
    // Cut off: 1, 1.5, 1. Terminated: 1, 1, 1. Neither: 1, 1.5, 1.75.
    close("mean", &results[0], &floats(&[], &[10.75 / 9.0001]), 5e-7);
    close("carried", &results[1], &floats(&[3], &[1.0, 1.0, 1.75]), 0.0);
}
