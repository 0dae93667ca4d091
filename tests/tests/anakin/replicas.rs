//! Several devices with a share of the environments each do the work of one device with all of them.

use crate::loops::{self, Size};
use podracer_dsl::Tensor;
use podracer_envs::{CartPole, Catch, Environment};
use podracer_rl::agents::Ppo;
use podracer_rl::learn::Learn;
use podracer_rl::optim::{Optimizer, adam, chain, clip_by_global_norm, sgd};
use podracer_runtime::{Array, Placement};
use podracer_tests::compare::difference;

const ONE: Size = Size { replicas: 1, environments: 4, unroll: 6, iterations: 1 };
const TWO: Size = Size { replicas: 2, ..ONE };
const FOUR: Size = Size { replicas: 4, ..ONE };

/// The states before and after one call, with the parts of the devices put together.
struct Call {
    before: Vec<(String, Array)>,
    after: Vec<(String, Array)>,
}

fn call<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    size: Size,
) -> Call {
    let anakin = loops::compiled(&loops::client(size.replicas), environment, agent, size);
    let state = anakin.init(9).expect("a seed");
    let before = loops::named(&state);
    let (state, _) = anakin.run(state).expect("a call");
    let after = loops::named(&state);
    Call { before, after }
}

/// One whole-batch iteration by gradient descent with rate 1, on one device and on several: the parameters move by the
/// gradient, so they are equal where the gradients are.
fn check<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    sizes: &[Size],
) {
    let one = call(environment, agent, ONE);
    for &size in sizes {
        let several = call(environment, agent, size);
        assert_eq!(several.before, one.before, "{size:?}: at the beginning");
        let mut moved = 0;
        for (((path, expected), (_, got)), (_, old)) in
            one.after.iter().zip(&several.after).zip(&one.before)
        {
            let is_learner = path.starts_with("replicated.");
            // The environments' steps follow bit-identically from the first parameters, the keys
            // and the actions.
            let tolerance = if is_learner { 2e-6 } else { 0.0 };
            let difference = difference(expected, got, tolerance);
            assert_eq!(difference, None, "{size:?}: {path}");
            if path.starts_with("replicated.agent.params") {
                moved += usize::from(old != expected);
            }
        }
        assert!(moved >= 4, "{moved} leaves of the networks moved");
    }
}

/// PPO with the whole batch in one iteration.
fn whole_batch<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> Ppo<O> {
    let mut agent = loops::ppo(environment, optimizer);
    (agent.settings.epochs, agent.settings.minibatches) = (1, 1);
    agent
}

/// Episodes are truncated within the cycle, so that all of PPO's bootstrapping takes part.
#[test]
fn ppo_learns_the_same_with_the_advantages_of_all_devices() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &whole_batch(&environment, sgd(1.0)), &[TWO, FOUR]);
}

#[test]
fn the_online_agent_learns_the_same() {
    let environment = Catch { rows: 4, columns: 3 };
    check(&environment, &loops::online(&environment, sgd(1.0)), &[TWO, FOUR]);
}

/// Replicated state stays replicated by itself: nothing copies it from one device to another.
#[test]
fn replicated_leaves_stay_equal_on_all_devices() {
    let environment = CartPole::default();
    stay_equal(
        &environment,
        &loops::ppo(&environment, chain(clip_by_global_norm(0.5), adam(1e-2))),
    );
}

/// Each device draws windows of its own, and all have one batch's priorities.
#[test]
fn replicated_leaves_of_an_agent_with_a_replay_stay_equal_on_all_devices() {
    let environment = CartPole::default();
    stay_equal(&environment, &loops::dqn(&environment));
}

fn stay_equal<A: Learn<Observation = Tensor>>(environment: &CartPole, agent: &A) {
    let size = Size { unroll: 8, iterations: 20, ..FOUR };
    let anakin = loops::compiled(&loops::client(4), environment, agent, size);
    let mut state = anakin.init(1).expect("a seed");
    let begin = loops::named(&state);
    for _ in 0..3 {
        (state, _) = anakin.run(state).expect("a call");
    }
    // The metrics of one more call, next to the state before it.
    let results = anakin.program().run((&state,)).expect("a call");
    let mut leaves = loops::on_each_device(&state, Placement::Replicated);
    leaves.extend(loops::on_each_device(&results, Placement::Replicated));
    assert!(leaves.len() > 12, "{}", leaves.len());
    for (path, values) in leaves {
        assert_eq!(values.len(), 4);
        assert!(values.iter().all(|value| *value == values[0]), "{path}");
    }
    // The devices did different things, and learned.
    let lanes = loops::on_each_device(&state, Placement::Sharded);
    assert!(lanes.iter().any(|(_, values)| values[0] != values[1]));
    let end = loops::named(&state);
    assert!(begin.iter().zip(&end).filter(|(a, b)| a != b).count() > 12);
}
