//! Lengths of the loops in a training program. A GPU runs a loop of a length that XLA knows without a word from the host, and
//! has the host read the condition back in every iteration of any other.

use crate::loops::{self, TINY};
use podracer_envs::{CartPole, Catch, Environment};
use podracer_rl::learn::Learn;
use podracer_rl::optim::adam;

fn check<E: Environment, A: Learn<Observation = E::Observation>>(environment: &E, agent: &A) {
    let program = loops::compiled(&loops::client(1), environment, agent, TINY);
    let optimized = program.program().executable().compiled().optimized().expect("it is readable");
    let loops = optimized.loops();
    assert!(loops.iter().any(|one| one.iterations == Some(TINY.unroll as u64)), "{loops:?}");
    let unknown: Vec<_> = loops.iter().filter(|one| one.iterations.is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn xla_knows_the_length_of_every_loop_of_a_training_program() {
    let (cart_pole, catch) = (CartPole::default(), Catch::default());
    check(&cart_pole, &loops::ppo(&cart_pole, adam(1e-3)));
    check(&catch, &loops::online(&catch, adam(1e-3)));
    check(&cart_pole, &loops::impala(&cart_pole, Some(8), adam(1e-3)));
}
