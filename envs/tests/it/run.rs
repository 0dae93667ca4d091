//! Short ways to run environments on host values.

use podracer_dsl::prelude::*;
use podracer_envs::Environment;

/// Runs a function on arrays.
#[track_caller]
pub fn run<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Vec<Array> {
    match trace(spec, f) {
        Ok(traced) => traced.eval(arguments).expect("arguments fit"),
        Err(errors) => panic!("{errors}"),
    }
}

/// The types of an environment's state.
pub fn state_spec<E: Environment>(env: &E) -> Spec<E::State> {
    eval_shape(key(), |key| env.initial_state(key)).expect("initial_state traces")
}

/// `n` keys, as raw words.
pub fn keys(n: usize) -> Array {
    let words: Vec<i128> = (0..2 * n as i128).map(|i| (i * 2_654_435_761) % (1 << 32)).collect();
    Array::ints(DType::U32, [n, 2], &words)
}

/// An i32 vector.
pub fn ints(values: &[i32]) -> Array {
    Array::ints(
        DType::I32,
        [values.len()],
        &values.iter().map(|&value| i128::from(value)).collect::<Vec<_>>(),
    )
}

/// Results of consecutive steps from a state.
pub struct Steps {
    /// Leaves of the state after each step, `[T, ..]`.
    pub states: Vec<Array>,
    /// The observations of these states.
    pub shown: Array,
    /// The observation of the time step.
    pub observations: Array,
    pub rewards: Array,
    pub terminated: Array,
    pub truncated: Array,
}

/// Steps in a scan, from given leaves of a state.
pub fn steps<E: Environment<Observation = Tensor>>(
    env: &E,
    state: &[Array],
    actions: &Array,
    keys: &Array,
) -> Steps {
    let spec =
        (state_spec(env), Spec::<Tensor>(actions.ty().clone()), Spec::<Tensor>(keys.ty().clone()));
    let arguments: Vec<Array> = state.iter().chain([actions, keys]).cloned().collect();
    let mut results = run(spec, &arguments, |(state, actions, keys)| {
        let (_, outputs) =
            scan(state, (actions, Keys::from_words(keys)), |state, (action, key)| {
                let (state, timestep) = env.step(state, action, key);
                (state.clone(), (state.clone(), env.observe(state), timestep))
            });
        outputs
    });
    let mut last = results.split_off(results.len() - 5).into_iter();
    let mut next = || last.next().expect("five results");
    Steps {
        states: results,
        shown: next(),
        observations: next(),
        rewards: next(),
        terminated: next(),
        truncated: next(),
    }
}

/// The leaves of the first state of a key.
pub fn initial<E: Environment>(env: &E, words: &Array) -> Vec<Array> {
    run(key(), std::slice::from_ref(words), |key| env.initial_state(key))
}

/// Asserts that two arrays are equal up to `tolerance`, relative beyond 1.
#[track_caller]
pub fn close(what: &str, got: &Array, expected: &[f64], tolerance: f64) {
    let got = got.to_f64();
    assert_eq!(got.len(), expected.len(), "{what}: counts differ");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got - expected).abs() / expected.abs().max(1.0);
        assert!(error <= tolerance, "{what}[{i}]: got {got}, expected {expected}");
    }
}
