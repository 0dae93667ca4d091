//! Wrappers, around an environment with known numbers.

use crate::run::{Steps, close, initial, ints, keys, run, steps};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space, TimeStep};

/// Counts from a start drawn from the key up to `end`, where it terminates. Pays the action.
#[derive(Clone)]
struct Counter {
    end: usize,
    starts: i32,
}

#[derive(Tree, Clone, Copy)]
struct Count {
    count: Tensor,
}

impl Environment for Counter {
    type State = Count;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Count {
        Count { count: key.randint([], 0..self.starts) }
    }
    fn step(&self, state: Count, action: Tensor, _key: Key) -> (Count, TimeStep) {
        let state = Count { count: state.count + 1 };
        let terminated = state.count.ge(self.end);
        (
            state,
            TimeStep {
                observation: self.observe(state),
                reward: action.astype(F32),
                terminated,
                truncated: constant(false),
            },
        )
    }
    fn observe(&self, state: Count) -> Tensor {
        state.count.astype(F32).reshape([1])
    }
    fn observation_space(&self) -> Space {
        Space::bounded([1], 0.0, self.end as f64)
    }
    fn action_space(&self) -> Space {
        Space::discrete(100)
    }
    fn legal_actions(&self, state: &Count) -> Option<Tensor> {
        Some(arange(100).lt(state.count))
    }
    fn truncates(&self) -> bool {
        false
    }
}

fn follow<E: Environment<Observation = Tensor>>(env: &E, actions: &[i32]) -> Steps {
    let first = initial(env, &Array::ints(DType::U32, [2], &[0, 3]));
    steps(env, &first, &ints(actions), &keys(actions.len()))
}

fn from_zero(end: usize) -> Counter {
    Counter { end, starts: 1 }
}

#[test]
fn a_time_limit_truncates() {
    let env = from_zero(9).time_limit(3);
    assert!(env.truncates());
    let steps = follow(&env, &[1; 3]);
    assert_eq!(steps.truncated.to_f64(), [0.0, 0.0, 1.0]);
    assert_eq!(steps.terminated.to_f64(), [0.0; 3]);
}

#[test]
fn an_end_at_the_time_limit_is_terminated_and_not_truncated() {
    let steps = follow(&from_zero(3).time_limit(3), &[1; 3]);
    assert_eq!(steps.terminated.to_f64(), [0.0, 0.0, 1.0]);
    assert_eq!(steps.truncated.to_f64(), [0.0; 3]);
}

#[test]
fn the_inner_of_two_time_limits_holds() {
    let steps = follow(&from_zero(9).time_limit(2).time_limit(4).auto_reset(), &[1; 6]);
    assert_eq!(steps.truncated.to_f64(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn auto_reset_keeps_the_final_observation_and_shows_the_next_episode() {
    let steps = follow(&from_zero(3).auto_reset(), &[1; 7]);
    assert_eq!(steps.observations.to_f64(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
    assert_eq!(steps.shown.to_f64(), [1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0]);
    assert_eq!(steps.terminated.to_f64(), [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn auto_reset_follows_truncation_as_well() {
    let env = from_zero(9).time_limit(2).auto_reset();
    let steps = follow(&env, &[1; 5]);
    assert_eq!(steps.observations.to_f64(), [1.0, 2.0, 1.0, 2.0, 1.0]);
    assert_eq!(steps.shown.to_f64(), [1.0, 0.0, 1.0, 0.0, 1.0]);
    // The limit's own counter begins again too.
    assert_eq!(steps.states[1].to_f64(), [1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(steps.truncated.to_f64(), [0.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(steps.terminated.to_f64(), [0.0; 5]);
}

#[test]
fn the_next_episode_begins_from_the_second_half_of_the_steps_key() {
    let env = Counter { end: 1000, starts: 900 }.time_limit(1);
    let words = Array::ints(DType::U32, [2], &[11, 22]);
    let spec = (crate::run::state_spec(&env), i32([]), key());
    let state = initial(&env, &Array::ints(DType::U32, [2], &[5, 6]));
    let arguments: Vec<Array> = state
        .into_iter()
        .chain([Array::ints(DType::I32, Vec::new(), &[1]), words.clone()])
        .collect();
    let stepped = run(spec, &arguments, |(state, action, key)| {
        env.clone().auto_reset().step(state, action, key).0
    });
    let expected = run(key(), &[words], |key| env.initial_state(key.split().1));
    assert_eq!(stepped, expected);
}

#[test]
fn statistics_sum_each_episode_on_its_own() {
    let env = from_zero(3).with_statistics().auto_reset();
    let steps = follow(&env, &[1, 2, 4, 8, 16, 32, 64]);
    let [_, running_return, running_length, last_return, last_length, finished] = &steps.states[..]
    else {
        panic!("a count and five statistics");
    };
    close("running return", running_return, &[1.0, 3.0, 0.0, 8.0, 24.0, 0.0, 64.0], 0.0);
    assert_eq!(running_length.to_f64(), [1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0]);
    close("last return", last_return, &[0.0, 0.0, 7.0, 7.0, 7.0, 56.0, 56.0], 0.0);
    assert_eq!(last_length.to_f64(), [0.0, 0.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
    assert_eq!(finished.to_f64(), [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]);
}

#[test]
fn without_a_reset_the_finished_episode_stays_readable() {
    let steps = follow(&from_zero(3).with_statistics(), &[1, 2, 4]);
    close("running return", &steps.states[1], &[1.0, 3.0, 7.0], 0.0);
    close("last return", &steps.states[3], &[0.0, 0.0, 7.0], 0.0);
}

#[test]
fn statistics_count_truncated_episodes() {
    let steps = follow(&from_zero(9).time_limit(2).with_statistics().auto_reset(), &[1, 2, 4, 8]);
    // Leaves: count, time, then the statistics.
    close("last return", &steps.states[4], &[0.0, 3.0, 3.0, 12.0], 0.0);
    assert_eq!(steps.states[6].to_f64(), [0.0, 1.0, 1.0, 2.0]);
}

#[test]
fn environments_of_a_batch_end_on_their_own() {
    let env = Counter { end: 5, starts: 5 }.with_statistics().auto_reset();
    let spec = (crate::run::state_spec(&env).stacked(3), key());
    // Counts 0, 2 and 4: ends after 5, 3 and 1 steps.
    let mut state: Vec<Array> =
        spec.0.types().into_iter().map(|ty| Array::zeros(ty.clone())).collect();
    state[0] = ints(&[0, 2, 4]);
    state.push(Array::ints(DType::U32, [2], &[1, 2]));
    let results = run(spec, &state, |(states, key)| {
        let (states, shown) = scan(states, key.split_n(2), |states, key| {
            let keys = key.split_n(3);
            let (states, timestep) =
                vmap((states, keys), |(state, key)| env.step(state, scalar(1), key));
            (states, (timestep.observation, timestep.terminated))
        });
        (shown, states.finished, states.last.length, states.running.length)
    });
    let observations = results[0].to_f64();
    assert_eq!(observations[..3], [1.0, 3.0, 5.0]);
    assert_eq!(observations[3..5], [2.0, 4.0]);
    assert_eq!(results[1].to_f64()[..3], [0.0, 0.0, 1.0]);
    let finished = results[2].to_f64();
    assert_eq!(finished[..2], [0.0, 0.0]);
    assert!(finished[2] >= 1.0);
    assert_eq!(results[3].to_f64()[..2], [0.0, 0.0]);
    assert_eq!(results[3].to_f64()[2], 1.0);
    assert_eq!(results[4].to_f64()[..2], [2.0, 2.0]);
}

#[test]
fn the_discount_is_zero_only_where_terminated() {
    let discounts = |end: usize, limit: usize| {
        let env = from_zero(end).time_limit(limit);
        let results = run(key(), &[Array::ints(DType::U32, [2], &[0, 0])], |key| {
            let (first, second) = key.split();
            let timestep = env.step(env.initial_state(first), scalar(0), second).1;
            (timestep.discount(0.9), timestep.done())
        });
        (results[0].to_f64()[0] as f32, results[1].to_f64()[0])
    };
    assert_eq!(discounts(1, 5), (0.0, 1.0));
    assert_eq!(discounts(5, 1), (0.9, 1.0));
    assert_eq!(discounts(5, 5), (0.9, 0.0));
}

#[test]
fn wrappers_forward_the_legal_actions() {
    let env = from_zero(9).time_limit(5).with_statistics().auto_reset();
    let mask = |state: Vec<Array>| {
        let spec = crate::run::state_spec(&env);
        run(spec, &state, |state| env.legal_actions(&state).expect("a mask")).remove(0).to_f64()
    };
    let mut state = initial(&env, &Array::ints(DType::U32, [2], &[0, 3]));
    assert_eq!(mask(state.clone()), [0.0; 100]);
    state[0] = Array::ints(DType::I32, [], &[2]);
    assert_eq!(mask(state)[..4], [1.0, 1.0, 0.0, 0.0]);
    let without = podracer_envs::Catch::default().auto_reset();
    eval_shape(key(), |key| {
        assert!(without.legal_actions(&without.initial_state(key)).is_none());
    })
    .expect("it traces");
}

#[test]
fn a_frame_stack_begins_with_copies_and_shows_the_newest_last() {
    let env = from_zero(3).frame_stack(2).auto_reset();
    let steps = follow(&env, &[1; 4]);
    assert_eq!(steps.observations.to_f64(), [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 0.0, 1.0]);
    // The next episode begins with copies of its own first observation.
    assert_eq!(steps.shown.to_f64(), [0.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
    let space = Space::bounded([2, 1], 0.0, 3.0);
    assert_eq!(env.observation_space(), space);
    assert!(!env.truncates());
}

/// An image of one row with two channels: the steps so far, and 9.
#[derive(Clone)]
struct Screen(Counter);

impl Environment for Screen {
    type State = Count;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Count {
        self.0.initial_state(key)
    }
    fn step(&self, state: Count, action: Tensor, key: Key) -> (Count, TimeStep) {
        let (state, timestep) = self.0.step(state, action, key);
        (state, TimeStep { observation: self.observe(state), ..timestep })
    }
    fn observe(&self, state: Count) -> Tensor {
        stack(&[state.count.astype(U8), constant(9u8)], 0).reshape([1, 1, 2])
    }
    fn observation_space(&self) -> Space {
        Space::Pixels { shape: vec![1, 1, 2] }
    }
    fn action_space(&self) -> Space {
        self.0.action_space()
    }
}

#[test]
fn frames_of_images_are_joined_in_their_channels() {
    let env = Screen(from_zero(9)).frame_stack(2);
    assert_eq!(env.observation_space(), Space::Pixels { shape: vec![1, 1, 4] });
    let steps = follow(&env, &[1; 2]);
    assert_eq!(steps.observations.to_f64(), [0.0, 9.0, 1.0, 9.0, 1.0, 9.0, 2.0, 9.0]);
}

#[test]
fn sticky_actions_repeat_the_last_action_except_at_an_episodes_start() {
    let always_new = follow(&from_zero(99).sticky_actions(0.0), &[1, 2, 3]);
    assert_eq!(always_new.rewards.to_f64(), [1.0, 2.0, 3.0]);
    // Nearly always the action of the step before, and so the first of each episode.
    let env = from_zero(3).sticky_actions(0.999_999).auto_reset();
    let steps = follow(&env, &[1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(steps.rewards.to_f64(), [1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 7.0]);
}

#[test]
fn sticky_actions_repeat_with_their_probability() {
    let actions: Vec<i32> = (0..90).collect();
    let taken = follow(&from_zero(99).sticky_actions(0.25), &actions).rewards.to_f64();
    let repeated = taken.windows(2).filter(|pair| pair[0] == pair[1]).count();
    // Of 89: 22 expected, with a deviation of 4.
    assert!((10..35).contains(&repeated), "{repeated} of 89 were repeated");
    // The action that was not repeated is the given action.
    let given = |(i, pair): (usize, &[f64])| pair[1] == pair[0] || pair[1] == i as f64 + 1.0;
    assert!(taken.windows(2).enumerate().all(given), "{taken:?}");
}

#[test]
fn rewards_are_scaled_and_clipped() {
    let env = from_zero(9).with_statistics().scale_reward(0.5).clip_reward(f64::NEG_INFINITY, 2.0);
    let steps = follow(&env, &[1, 4, 8]);
    assert_eq!(steps.rewards.to_f64(), [0.5, 2.0, 2.0]);
    // Statistics inside see the environment's own rewards.
    close("running return", &steps.states[1], &[1.0, 5.0, 13.0], 0.0);
}

#[test]
fn wrappers_say_which_of_their_numbers_are_wrong() {
    let said = |errors: Option<TraceErrors>| errors.map(|errors| errors.errors[0].message.clone());
    let begin = |env: &dyn Fn(Key) -> Vec<Tensor>| said(trace(key(), env).err());
    let message = begin(&|key| from_zero(3).frame_stack(0).initial_state(key).leaves());
    assert_eq!(message.as_deref(), Some("expected at least one frame, got 0"));
    let message = begin(&|key| from_zero(3).sticky_actions(1.0).initial_state(key).leaves());
    assert_eq!(message.as_deref(), Some("expected a probability in [0, 1), got 1"));
    let message = begin(&|key| from_zero(3).clip_reward(1.0, -1.0).initial_state(key).leaves());
    assert_eq!(message.as_deref(), Some("no reward lies between low 1 and high -1"));
    let message = begin(&|key| from_zero(3).scale_reward(f64::NAN).initial_state(key).leaves());
    assert_eq!(message.as_deref(), Some("expected a finite scale, got NaN"));
}
