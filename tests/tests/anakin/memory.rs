//! The state's memory: given to the program where it is moved, kept where it is lent.

use crate::loops::{self, TINY};
use podracer_dsl::prelude::Tree;
use podracer_envs::CartPole;
use podracer_rl::optim::adam;
use podracer_runtime::{Device, ExecuteError, Placement, RuntimeError};
use std::collections::BTreeMap;

/// Address of each leaf on each device.
pub fn addresses<T: Tree>(state: &Device<T>) -> BTreeMap<(String, usize), usize> {
    let mut addresses = BTreeMap::new();
    state.visit(|path, leaf| {
        for (device, buffer) in leaf.buffers().iter().enumerate() {
            let address = buffer.address().expect("a live buffer");
            addresses.insert((path.to_string(), device), address);
        }
    });
    addresses
}

#[test]
fn a_state_that_is_moved_is_updated_in_place() {
    let environment = CartPole::default();
    let agent = loops::ppo(&environment, adam(1e-3));
    let size = loops::Size { replicas: 2, environments: 4, ..TINY };
    let traced = loops::traced(&environment, &agent, size);
    let lowered = traced.lower().expect("it lowers");
    let leaves = traced.traced().arguments().leaves().len();
    assert_eq!(lowered.donated(), (0..leaves).collect::<Vec<_>>());

    let client = loops::client(2);
    let anakin = traced.compile(&client, &loops::options(2)).expect("it compiles");
    let state = anakin.init(0).expect("a seed");
    let before = addresses(&state);
    assert_eq!(before.len(), 2 * leaves);
    let (state, _) = anakin.run(state).expect("a call");
    assert_eq!(addresses(&state), before);
    let stats = anakin.program().executable().compiled().memory_stats();
    let stats = stats.expect("XLA tells");
    let mut bytes = 0;
    state.visit(|_, leaf| bytes += leaf.buffers()[0].ty().bytes() as i64);
    assert_eq!(stats.aliased, bytes, "{stats:?}");
}

#[test]
fn a_state_that_is_lent_stays_as_it_is() {
    let environment = CartPole::default();
    let agent = loops::online(&environment, adam(1e-3));
    let anakin = loops::compiled(&loops::client(1), &environment, &agent, TINY);
    let state = anakin.init(0).expect("a seed");
    let (before, lies) = (loops::named(&state), addresses(&state));
    let first = anakin.program().run((&state,)).expect("a call");
    let first = (loops::named(&first.0), loops::named(&first.1));
    assert_eq!(loops::named(&state), before);
    assert_eq!(addresses(&state), lies);
    assert_ne!(first.0, before);
    // A second run, and a third run that donates its state.
    let second = anakin.program().run((&state,)).expect("a call");
    assert_eq!((loops::named(&second.0), loops::named(&second.1)), first);
    let (third, _) = anakin.run(state).expect("a call");
    assert_eq!(loops::named(&third), first.0);
}

#[test]
fn leaves_are_replicated_or_sharded_by_their_part_of_the_state() {
    let environment = CartPole::default();
    let agent = loops::ppo(&environment, adam(1e-3));
    let anakin = loops::compiled(&loops::client(1), &environment, &agent, TINY);
    let state = anakin.init(0).expect("a seed");
    let (state, _) = anakin.run(state).expect("a call");
    state.visit(|path, leaf| {
        let expected = match path.to_string().starts_with("replicated") {
            true => Placement::Replicated,
            false => Placement::Sharded,
        };
        assert_eq!(leaf.placement(), expected, "{path}");
    });
}

/// A buffer deleted behind the state's back is an error, not a crash, and the remaining buffers
/// come back.
#[test]
fn a_deleted_leaf_is_named() {
    let environment = CartPole::default();
    let agent = loops::online(&environment, adam(1e-3));
    let anakin = loops::compiled(&loops::client(1), &environment, &agent, TINY);
    let state = anakin.init(0).expect("a seed");
    let leaves = addresses(&state).len();
    let mut first = true;
    state.visit(|_, leaf| {
        if std::mem::take(&mut first) {
            leaf.buffers()[0].delete().expect("a live buffer");
        }
    });
    let Err(ExecuteError { error, donated }) = anakin.run(state) else {
        panic!("a state without one of its leaves was taken");
    };
    let named = matches!(*error, RuntimeError::ArgumentDeleted { replica: 0, index: 0, .. });
    assert!(named, "{error}");
    assert_eq!(donated.len(), leaves - 1);
}
