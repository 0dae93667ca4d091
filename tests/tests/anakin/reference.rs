//! XLA against the reference semantics, for a whole loop.

use crate::loops::{self, TINY};
use podracer_envs::{CartPole, Catch, Environment, Pendulum};
use podracer_rl::learn::Learn;
use podracer_rl::optim::{adam, chain, clip_by_global_norm};
use podracer_tests::compare::difference;

/// One call both ways, from the same state. The tolerance is for what follows from rounding: draws and ends of episodes
/// are the same, or the states would be far apart.
fn check<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    tolerance: f64,
) {
    let traced = loops::traced(environment, agent, TINY);
    let client = loops::client(1);
    let anakin = traced.compile(&client, &loops::options(1)).expect("it compiles");
    let state = anakin.init(2).expect("a seed");
    let expected = traced.traced().eval(&loops::arrays(&state)).expect("the state fits");
    let results = anakin.program().run((state,)).expect("a call");
    let got = loops::named(&results);
    assert_eq!(expected.len(), got.len());
    for (expected, (path, got)) in expected.iter().zip(&got) {
        let difference = difference(expected, got, tolerance);
        assert_eq!(difference, None, "{path}");
    }
}

#[test]
fn ppo_in_cartpole() {
    let environment = CartPole::default();
    let agent = loops::ppo(&environment, chain(clip_by_global_norm(0.5), adam(1e-3).eps(1e-5)));
    check(&environment, &agent, 2e-6);
}

#[test]
fn ppo_with_continuous_actions_in_pendulum() {
    let environment = Pendulum::default();
    let agent = loops::ppo(&environment, chain(clip_by_global_norm(0.5), adam(1e-3).eps(1e-5)));
    check(&environment, &agent, 2e-6);
}

/// Episodes of 3 steps end within the cycle.
#[test]
fn online_in_catch() {
    let environment = Catch { rows: 4, columns: 3 };
    let agent = loops::online(&environment, adam(1e-3).eps(1e-5));
    check(&environment, &agent, 2e-6);
}
