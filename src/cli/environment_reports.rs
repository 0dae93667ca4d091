//! Tests of an environment's reports of `check` and `debug_print` while a run trains, from the environment to the exit code.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use podracer_dsl::prelude::*;
use podracer_envs::{Environment, MemoryChain, Space, TimeStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::console::Console;
use super::program::Program;
use super::run;
use crate::registry::{EnvironmentEntry, Registry};

/// A memory chain with a check that fails in its third step.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Fragile {}

impl Environment for Fragile {
    type State = <MemoryChain as Environment>::State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Self::State {
        MemoryChain::default().initial_state(key)
    }
    fn step(&self, state: Self::State, action: Tensor, key: Key) -> (Self::State, TimeStep) {
        debug_print("at {}", state.time);
        check(state.time.lt(2), "the chain broke at {}", state.time);
        MemoryChain::default().step(state, action, key)
    }
    fn observe(&self, state: Self::State) -> Tensor {
        MemoryChain::default().observe(state)
    }
    fn observation_space(&self) -> Space {
        MemoryChain::default().observation_space()
    }
    fn action_space(&self) -> Space {
        MemoryChain::default().action_space()
    }
    fn truncates(&self) -> bool {
        false
    }
}

/// The loops give the same reports, each at its own place in the source.
#[test]
fn prints_are_printed_and_a_failed_check_ends_the_run_in_both_loops() {
    let folder = tempfile::tempdir().unwrap();
    for (name, shape, place) in [
        ("anakin", "environments = 2", "[0, 2, 0]"),
        ("sebulba", "actors = [0]\nlearners = [1]\nthreads = 1\nenvironments = 2", "[0, 2, 0]"),
    ] {
        let text = format!(
            "experiment = \"fragile\"\n[{name}]\nunroll = 4\niterations_per_call = 1\n{shape}\n\
             [agent]\nkind = \"ppo\"\nhidden = [4]\nepochs = 1\nminibatches = 1\n[environment]\nname = \"fragile\"\n"
        );
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, text).unwrap();
        let mut registry = Registry::built_in();
        registry.add_environment(EnvironmentEntry::dsl::<Fragile>("fragile"));
        let program = Program { registry: &registry, build: &|settings| registry.build(settings) };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(&mut out, &mut err, false);
        let (file, run_dir) = (file.display().to_string(), folder.path().join(name));
        let run_dir = run_dir.display().to_string();
        let arguments = ["podracer", "train", &file, "--run-dir", &run_dir].map(Into::into);
        let code = run(arguments, &mut console, program, &AtomicBool::new(false), Instant::now());
        let said = String::from_utf8(err).unwrap();
        assert_eq!(code, 1, "{said}");
        let failed = format!("check failed: the chain broke at 2 (4 times, first at {place})");
        for part in
            ["at 0\n", "at 3\n", &failed, file!(), "the run ends in the 1 iterations after 0"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
