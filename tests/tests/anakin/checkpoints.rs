//! States that go through a checkpoint and on, and those that do not fit.

use crate::loops::{self, Size, TINY};
use podracer::anakin::Anakin;
use podracer_dsl::prelude::Tree;
use podracer_envs::Catch;
use podracer_rl::optim::adam;
use podracer_runtime::setters::*;
use podracer_runtime::{AnakinState, Array, Checkpoint, Checkpoints, Host, NamedArrays};

const CATCH: Catch = Catch { rows: 3, columns: 3 };

fn checkpoint<R: Tree, S: Tree>(state: &AnakinState<R, S>) -> Checkpoint<'_> {
    let mut checkpoint = Checkpoint::default();
    checkpoint.insert("state.", state.named_sources());
    checkpoint
}

fn arrays(checkpoint: &Checkpoint<'_>) -> NamedArrays {
    checkpoint.to_host().expect("live buffers")
}

fn values<T: Tree>(tree: &Host<T>) -> Vec<(String, Array)> {
    let mut values = Vec::new();
    tree.visit(|path, leaf| values.push((path.to_string(), leaf.clone())));
    values
}

/// Two devices, by way of a file.
#[test]
fn updates_after_a_checkpoint_are_those_that_would_have_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path(), 1);
    let agent = loops::online(&CATCH, adam(1e-2));
    let size = Size { replicas: 2, environments: 4, ..TINY };
    let anakin = loops::compiled(&loops::client(2), &CATCH, &agent, size);
    let mut state = anakin.init(3).expect("a seed");
    for _ in 0..3 {
        (state, _) = anakin.run(state).expect("an iteration");
    }
    checkpoints.save(&checkpoint(&state)).expect("it is written");
    let saved = arrays(&checkpoint(&state));
    let (state, metrics) = anakin.run(state).expect("an iteration");

    // On another client: nothing remains of the first client's memory.
    let anakin = loops::compiled(&loops::client(2), &CATCH, &agent, size);
    let found = checkpoints.latest().expect("it is read");
    let restored = anakin.restore(&found.checkpoint, "state.").expect("it fits");
    assert_eq!(arrays(&found.checkpoint), saved);
    assert_eq!(arrays(&checkpoint(&restored)), saved);
    let (again, same) = anakin.run(restored).expect("an iteration");
    assert_eq!(arrays(&checkpoint(&again)), arrays(&checkpoint(&state)));
    assert_eq!(values(&same), values(&metrics));
}

#[test]
fn checkpoints_of_other_programs_are_refused() {
    let client = loops::client(1);
    let agent = loops::online(&CATCH, adam(1e-2));
    let anakin = loops::compiled(&client, &CATCH, &agent, TINY);
    let state = anakin.init(0).expect("a seed");
    let good = checkpoint(&state);
    let refused = |checkpoint: &Checkpoint<'_>| {
        let error = anakin.restore(checkpoint, "state.").err();
        error.expect("it does not fit").to_string()
    };
    let mut larger = good.clone();
    let lanes = larger.arrays.iter_mut().find(|(name, _)| name.contains("sharded.lanes"));
    let (name, lanes) = lanes.expect("environments have states");
    let name = name.clone();
    *lanes = Array::from_slice([3], &[0i32; 3]).expect("three").into();
    let said = refused(&larger);
    assert!(said.contains(&format!("`{name}` is i32[3] and must be ")), "{said}");
    let mut deeper = good.clone();
    let weight = good.arrays.iter().find(|(name, _)| name.contains("layers[1].weight"));
    let (name, weight) = weight.expect("a layer");
    let further = name.replace("layers[1]", "layers[2]");
    deeper.arrays.insert(further.clone(), weight.clone());
    let said = refused(&deeper);
    assert!(said.contains(&format!("it has `{further}`, which there is no place for")), "{said}");
    let mut shallower = good.clone();
    shallower.arrays.remove(name);
    let said = refused(&shallower);
    assert!(said.contains(&format!("it has no `{name}`")), "{said}");
}

/// They share the same environments: the next iteration is equal except for the order of sums.
#[test]
fn another_number_of_devices_goes_on() {
    let agent = loops::online(&CATCH, adam(1e-2));
    let on = |devices: usize| {
        let anakin = Anakin::new(CATCH, agent.clone())
            .environments(4)
            .unroll(4)
            .iterations_per_call(1)
            .devices(devices);
        let anakin = anakin.compile_with(&loops::client(devices), &loops::options(devices));
        anakin.expect("the loop compiles")
    };
    let (one, two) = (on(1), on(2));
    let mut state = two.init(0).expect("a seed");
    for _ in 0..3 {
        (state, _) = two.run(state).expect("an iteration");
    }
    let saved = two.checkpoint(&state, 3).expect("a checkpoint");
    let restored = one.restore(&saved).expect("it fits");
    assert_eq!(arrays(&one.checkpoint(&restored, 3).expect("another")), arrays(&saved));
    let (state, metrics) = two.run(state).expect("an iteration");
    let (again, same) = one.run(restored).expect("an iteration");
    assert!(same.finished().eq(metrics.finished()));
    let learnt = |checkpoint: Checkpoint<'_>| {
        let arrays = arrays(&checkpoint).into_iter();
        let nets = arrays.filter(|(name, _)| name.contains(".agent.params."));
        let values = nets.flat_map(|(_, array)| array.to_vec::<f32>().expect("floats"));
        values.collect::<Vec<f32>>()
    };
    let expected = learnt(two.checkpoint(&state, 4).expect("a checkpoint"));
    let got = learnt(one.checkpoint(&again, 4).expect("a checkpoint"));
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(&expected) {
        assert!((got - expected).abs() < 1e-4, "{got} {expected}");
    }
}
