//! Environments on the host: batches, however they are spread and whatever goes wrong in one.

use podracer_dsl::prelude::*;
use podracer_envs::host::{
    HostEnvironment, HostError, HostSpec, NativeCartPole, NativeEnvironment, Outcome, Pool, Random,
    StepMemory,
};
use podracer_envs::{CartPole, Environment, Space};

/// Actions that follow from the time and the environment.
fn actions(time: usize, environments: usize) -> Vec<u8> {
    (0..environments).flat_map(|i| (((time + i) / 3 % 2) as i32).to_le_bytes()).collect()
}

/// All that some steps of a batch leave.
fn play(mut batch: impl HostEnvironment, first: usize, steps: usize) -> Vec<StepMemory> {
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(7, first, &mut memory.step()).unwrap();
    let mut all = vec![memory.clone()];
    let n = batch.spec().environments;
    for time in 0..steps {
        let actions: Vec<u8> = actions(time, first + n)[4 * first..].to_vec();
        batch.step(&actions, &mut memory.step()).unwrap();
        all.push(memory.clone());
    }
    all
}

fn cartpoles(environments: usize, parts: usize) -> Pool<NativeCartPole> {
    Pool::in_parts(&NativeCartPole::new(12), environments, parts)
}

#[test]
fn it_does_not_matter_how_a_batch_is_spread() {
    let whole = play(cartpoles(6, 1), 0, 40);
    let parts = play(cartpoles(6, 4), 0, 40);
    let (left, right) = (play(cartpoles(2, 2), 0, 40), play(cartpoles(4, 3), 2, 40));
    let mut ends = 0;
    for (time, whole) in whole.iter().enumerate() {
        assert_eq!(whole.observation(), parts[time].observation());
        assert_eq!(whole.next_observation(), parts[time].next_observation());
        assert_eq!(whole.reward(), parts[time].reward());
        let (left, right) = (&left[time], &right[time]);
        assert_eq!(whole.observation(), [left.observation(), right.observation()].concat());
        for i in 0..6 {
            let spread = if i < 2 { left.done(i) } else { right.done(i - 2) };
            assert_eq!(whole.done(i), spread);
            assert_eq!(whole.done(i), parts[time].done(i));
            let (terminated, truncated) = whole.done(i);
            assert!(!(terminated && truncated));
            ends += usize::from(terminated || truncated);
        }
    }
    assert!(ends >= 12, "{ends}");
}

/// A step that ends an episode has the next episode's first observation apart from the ended
/// episode's final observation.
#[test]
fn the_end_of_an_episode_is_shown_apart_from_the_next_ones_beginning() {
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let steps = play(cartpoles(3, 1), 0, 30);
    let mut ends = 0;
    for step in &steps[1..] {
        let (acted_on, shown) = (floats(step.observation()), floats(step.next_observation()));
        for i in 0..3 {
            let (acted_on, shown) = (&acted_on[4 * i..4 * i + 4], &shown[4 * i..4 * i + 4]);
            if step.done(i) == (false, false) {
                assert_eq!(acted_on, shown);
            } else {
                assert!(acted_on.iter().all(|value| value.abs() <= 0.05));
                assert_ne!(acted_on, shown);
                ends += 1;
            }
        }
    }
    assert!(ends >= 6, "{ends}");
}

/// The native CartPole compared with the DSL's, step by step from the same states.
#[test]
fn native_cartpole_is_cartpole() {
    let environment = CartPole { time_limit: 12, ..CartPole::default() };
    let spec = eval_shape(key(), |key| environment.initial_state(key)).unwrap();
    let step = trace((&spec, i32([]), key()), |(state, action, key)| {
        let (state, timestep) = environment.step(state, action, key);
        (state, timestep)
    })
    .unwrap();
    let native = NativeCartPole::new(12);
    let mut random = Random::of_environment(3, 0);
    let mut seen = [0; 3];
    for episode in 0..6 {
        let mut native_state = native.initial_state(&mut random);
        let start = native_state.observation.map(f64::from);
        let mut state: Vec<Array> = start.iter().map(|&x| Array::floats(F32, [], &[x])).collect();
        state.push(Array::ints(I32, [], &[0]));
        for time in 0.. {
            // Falling to one side in half of the episodes, balancing for a while in the others.
            let action = if episode % 2 == 0 { 1 } else { time % 2 };
            let mut arguments = state.clone();
            arguments.push(Array::ints(I32, [], &[action]));
            arguments.push(Array::ints(U32, [2], &[0, 0]));
            let results = step.eval(&arguments).unwrap();
            let outcome =
                native.step(&mut native_state, &(action as i32).to_le_bytes(), &mut random);
            let mut observation = [0; 16];
            native.observe(&native_state, &mut observation);
            let expected: Vec<f64> = results[5].scalars().map(|value| value.float()).collect();
            for (bytes, expected) in observation.as_chunks::<4>().0.iter().zip(expected) {
                let got = f64::from(f32::from_le_bytes(*bytes));
                assert!((got - expected).abs() < 1e-5, "{got} and {expected}");
            }
            let flag = |i: usize| results[i].get(0).float() != 0.0;
            let expected = Outcome {
                reward: results[6].get(0).float() as f32,
                terminated: flag(7),
                truncated: flag(8),
            };
            assert_eq!(outcome, expected);
            if outcome.done() {
                seen[usize::from(outcome.truncated)] += 1;
                break;
            }
            state = results[..5].to_vec();
        }
    }
    assert!(seen[0] >= 1 && seen[1] >= 1, "{seen:?}");
}

#[test]
fn a_snapshot_is_all_that_the_next_steps_depend_on() {
    let mut batch = cartpoles(5, 2);
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(1, 0, &mut memory.step()).unwrap();
    let go_on = |batch: &mut Pool<NativeCartPole>, memory: &mut StepMemory| -> Vec<Vec<u8>> {
        (0..40)
            .map(|time| {
                batch.step(&actions(time, 5), &mut memory.step()).unwrap();
                memory.observation().to_vec()
            })
            .collect()
    };
    go_on(&mut batch, &mut memory);
    let snapshot = batch.snapshot().unwrap().unwrap();
    let expected = go_on(&mut batch, &mut memory);
    let mut other = cartpoles(5, 3);
    other.restore(&snapshot).unwrap();
    assert_eq!(go_on(&mut other, &mut memory), expected);
    for environments in [4, 6] {
        let message =
            format!("it comes from a batch of 5 environments, and this batch has {environments}");
        refused(cartpoles(environments, 1).restore(&snapshot), &message);
    }
    refused(other.restore(&snapshot[..snapshot.len() - 1]), "expected more data");
    refused(other.restore(&[]), "expected more data");
    refused(other.restore(&[&snapshot[..], &[0]].concat()), "it has 1 bytes too many");
    assert_eq!(other.snapshot().unwrap().unwrap(), batch.snapshot().unwrap().unwrap());
}

#[track_caller]
fn refused(restored: Result<(), HostError>, message: &str) {
    let error = restored.unwrap_err();
    assert!(matches!(error, HostError::Snapshot(_)), "{error:?}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn mistakes_of_the_caller_are_errors() {
    let mut batch = cartpoles(3, 2);
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(1, 0, &mut memory.step()).unwrap();
    let message = |error: Result<(), HostError>| error.unwrap_err().to_string();
    assert_eq!(message(batch.receive(&mut memory.step())), "`receive` comes after `send`");
    assert_eq!(message(batch.send(&[0; 8])), "the actions must have 12 bytes and has 8");
    let wrong: Vec<u8> = [0i32, 2, 0].iter().flat_map(|action| action.to_le_bytes()).collect();
    assert_eq!(
        message(batch.send(&wrong)),
        "environment 1: the action is 2 and must be one of 0..2"
    );
    batch.send(&[0; 12]).unwrap();
    assert!(message(batch.send(&[0; 12])).contains("a step is under way"));
    let mut small = StepMemory::new(cartpoles(2, 1).spec());
    assert!(matches!(
        cartpoles(3, 1).reset(0, 0, &mut small.step()),
        Err(HostError::Length { .. })
    ));
    batch.receive(&mut memory.step()).unwrap();
}

/// An environment with any four floats as its state, which stays.
#[derive(Clone)]
struct AnyFloats;

impl NativeEnvironment for AnyFloats {
    type State = [f32; 4];

    fn observation_space(&self) -> Space {
        Space::unbounded([4])
    }
    fn action_space(&self) -> Space {
        Space::discrete(1)
    }
    fn truncates(&self) -> bool {
        false
    }
    fn min_per_thread(&self) -> usize {
        1
    }
    fn initial_state(&self, random: &mut Random) -> [f32; 4] {
        [f32::from_bits(random.bits() as u32), f32::from_bits(0xffc0_1234), -0.0, 1e-45]
    }
    fn step(&self, _: &mut [f32; 4], _: &[u8], _: &mut Random) -> Outcome {
        Outcome::default()
    }
    fn observe(&self, state: &[f32; 4], observation: &mut [u8]) {
        observation.copy_from_slice(&state.map(f32::to_le_bytes).concat());
    }
}

#[test]
fn a_snapshot_keeps_every_bit_of_a_float() {
    let mut batch = Pool::in_parts(&AnyFloats, 100, 3);
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(1, 0, &mut memory.step()).unwrap();
    let (snapshot, shown) = (batch.snapshot().unwrap().unwrap(), memory.observation().to_vec());
    batch.reset(2, 0, &mut memory.step()).unwrap();
    assert_ne!(memory.observation(), shown);
    batch.restore(&snapshot).unwrap();
    batch.step(&[0; 400], &mut memory.step()).unwrap();
    assert_eq!(memory.observation(), shown);
}

/// An environment that panics on request.
#[derive(Clone)]
struct Fragile;

impl NativeEnvironment for Fragile {
    type State = ();

    fn observation_space(&self) -> Space {
        Space::unbounded([1])
    }
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }
    fn truncates(&self) -> bool {
        false
    }
    fn min_per_thread(&self) -> usize {
        1
    }
    fn initial_state(&self, _: &mut Random) {}
    fn step(&self, (): &mut (), action: &[u8], _: &mut Random) -> Outcome {
        assert!(action[0] == 0, "it broke");
        Outcome::default()
    }
    fn observe(&self, (): &(), _: &mut [u8]) {}
}

#[test]
fn a_panic_in_an_environment_is_an_error_that_names_it() {
    for parts in [1, 3] {
        let mut batch = Pool::in_parts(&Fragile, 4, parts);
        let mut memory = StepMemory::new(batch.spec());
        assert!(memory.next_observation().is_empty());
        batch.reset(0, 0, &mut memory.step()).unwrap();
        let mut actions = [0; 16];
        batch.step(&actions, &mut memory.step()).unwrap();
        actions[12] = 1;
        let error = batch.step(&actions, &mut memory.step()).unwrap_err();
        assert_eq!(error.to_string(), "environment 3 panicked: it broke");
        // The rest of the batch reports it, and nothing hangs.
        assert!(matches!(batch.send(&[0; 16]), Err(HostError::Order(_))));
    }
}

#[test]
fn the_spec_says_the_types() {
    let spec: HostSpec = cartpoles(3, 1).spec().clone();
    assert_eq!(spec.action_type().to_string(), "i32[3]");
    assert_eq!(
        spec.outcome().to_string(),
        "{observation: f32[3,4], reward: f32[3], terminated: bool[3], truncated: bool[3], next_observation[0]: f32[3,4]}"
    );
    let mut memory = StepMemory::new(&spec);
    let bytes: Vec<usize> = memory.leaves().map(<[u8]>::len).collect();
    let types: Vec<usize> = spec.outcome().types().iter().map(TensorType::bytes).collect();
    assert_eq!(bytes, types);
}

#[test]
fn memory_that_the_system_does_not_have_is_an_error() {
    // More than any address space has.
    let environments = 1 << 58;
    let spec = Pool::spec_of(&NativeCartPole::new(9), environments);
    assert_eq!(spec.environments, environments);
    let error = StepMemory::try_new(&spec).err().unwrap().to_string();
    assert!(
        error.starts_with("the system has no memory for the steps of 288230376151711744"),
        "{error}"
    );
    assert!(error.contains("set fewer `environments` in [sebulba] or [central]"), "{error}");
    let error = Pool::try_new(&NativeCartPole::new(9), environments).err().unwrap();
    assert!(matches!(error, HostError::Memory { .. }), "{error}");
}
