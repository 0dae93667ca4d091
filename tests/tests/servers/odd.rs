//! Environments of Gymnasium that are odd in one way each.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, HostError, StepMemory};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::gymnasium::{MODULES, configuration};
use super::{begun, floats, python};

const ENVIRONMENTS: usize = 3;

/// Servers of the environments of `odd.py`.
fn odd(python: &Path, kwargs: &Value, changes: &Value) -> ServerOptions {
    let mut all = json!({"id": "odd:Odd-v0", "kwargs": kwargs});
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    ServerOptions::new(python, &configuration(&all)).unwrap().modules(MODULES).restarts(0)
}

/// All modes of resetting, with both kinds of vectorization.
fn modes() -> impl Iterator<Item = Value> {
    let with = |vectorization| {
        ["same-step", "next-step", "disabled"]
            .map(move |autoreset| json!({"vectorization": vectorization, "autoreset": autoreset}))
    };
    ["sync", "async"].into_iter().flat_map(with)
}

/// Place in the ring that a row of the flat observation shows.
fn place(row: &[f32]) -> usize {
    row[row.len() - 10..].iter().position(|&number| number == 1.0).unwrap()
}

#[test]
fn the_last_observation_belongs_to_its_own_episode() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (kind, changes) in
        ["reused", "dict"].into_iter().flat_map(|kind| modes().map(move |mode| (kind, mode)))
    {
        let options = odd(&python, &json!({"kind": kind}), &changes);
        let batch = Servers::start(&options, ENVIRONMENTS).unwrap();
        let (mut batch, mut memory) = begun(batch, 1, 0);
        let places = |bytes: &[u8]| -> Vec<usize> {
            let numbers = floats(bytes);
            numbers.chunks(numbers.len() / ENVIRONMENTS).map(place).collect()
        };
        let mut others = 0;
        for time in 1..=20 {
            let before = places(memory.observation());
            batch.step(&[0; 4 * ENVIRONMENTS], &mut memory.step()).unwrap();
            let now = places(memory.observation());
            for (i, last) in places(memory.next_observation()).into_iter().enumerate() {
                assert_eq!(last, (before[i] + 1) % 10, "{kind} {changes} step {time}");
                assert_eq!(memory.done(i), (false, time % 5 == 0));
                others += usize::from(last != now[i]);
            }
        }
        assert!(others > 6, "{others}");
    }
}

/// Number of lines of a log that are `what`.
fn count(log: &Path, what: &str) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().filter(|&line| line == what).count()
}

/// The log of environments of a kind that take some steps until the batch is dropped, and the seconds of the drop.
fn closed(
    python: &Path,
    kind: &str,
    changes: &Value,
    steps: usize,
) -> (TempDir, usize, usize, f64) {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let options = odd(python, &json!({"kind": kind, "log": log, "at": 2}), changes);
    let options = options.servers(2).step_timeout(Duration::from_secs(2));
    let batch = Servers::start(&options, ENVIRONMENTS).unwrap();
    let (mut batch, mut memory) = begun(batch, 1, 0);
    for _ in 0..steps {
        if batch.step(&[0; 4 * ENVIRONMENTS], &mut memory.step()).is_err() {
            break;
        }
    }
    let began = Instant::now();
    drop(batch);
    let seconds = began.elapsed().as_secs_f64();
    let (opened, closed) = (count(&log, "opened"), count(&log, "closed"));
    (folder, opened, closed, seconds)
}

#[test]
fn environments_are_closed() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for changes in modes() {
        for (kind, steps) in [("reused", 0), ("reused", 7), ("close raises", 3), ("raises", 3)] {
            let (folder, opened, closed, _) = closed(&python, kind, &changes, steps);
            assert!(opened >= ENVIRONMENTS, "{opened}");
            assert_eq!(closed, opened, "{kind} {changes}: {folder:?}");
        }
    }
    let (folder, opened, closed, _) = closed(&python, "close is slow", &json!({}), 3);
    let flushed = count(&folder.path().join("log"), "flushed");
    assert_eq!((closed, flushed), (opened, opened));
}

#[test]
fn an_environment_that_never_closes_holds_nothing_up() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    // An asynchronous batch would not start: it closes an environment then.
    let (_folder, _, closed, seconds) =
        closed(&python, "close hangs", &json!({"vectorization": "sync"}), 1);
    assert!((1..ENVIRONMENTS).contains(&closed), "{closed}");
    assert!(seconds < 20.0, "{seconds}");
}

#[test]
fn a_program_that_an_environment_starts_receives_sigterm() {
    use nix::sys::signal::{SigSet, SigmaskHow};
    let Some(python) = python("gymnasium") else {
        return;
    };
    // As the threads of a run.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap();
    for changes in modes() {
        let (folder, ..) = closed(&python, "terminates", &changes, 6);
        let log = folder.path().join("log");
        assert!(count(&log, "ended with -15") >= 2 * ENVIRONMENTS, "{changes}");
        assert_eq!(count(&log, "did not end within 5 s"), 0, "{changes}");
    }
    assert!(SigSet::thread_get_mask().unwrap().iter().count() > 20, "the thread blocks them still");
    before.thread_set_mask().unwrap();
}

/// Signals to all processes of a job reach servers before the run has stopped.
#[test]
fn servers_outlive_the_signals_that_stop_a_job() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for changes in modes() {
        let options = odd(&python, &json!({"kind": "fresh"}), &changes);
        let batch = Servers::start(&options.servers(2), ENVIRONMENTS).unwrap();
        let mut memory = StepMemory::new(batch.spec());
        let mut batch = batch;
        batch.reset(1, 0, &mut memory.step()).unwrap();
        for signal in ["TERM", "INT", "HUP"] {
            for process in batch.processes() {
                // The group, with the processes of an asynchronous batch.
                let sent = std::process::Command::new("kill")
                    .args([&format!("-{signal}"), "--", &format!("-{process}")])
                    .status();
                assert!(sent.unwrap().success());
            }
            for _ in 0..3 {
                batch.step(&[0; 4 * ENVIRONMENTS], &mut memory.step()).unwrap();
            }
        }
        assert_eq!(batch.restarts(), 0);
    }
}

/// The first error of environments with an oddity in the step `at` of an episode.
fn error_of(python: &Path, kwargs: &Value, changes: &Value) -> String {
    let batch = Servers::start(&odd(python, kwargs, changes), ENVIRONMENTS).unwrap();
    let (mut batch, mut memory) = (batch, None);
    let memory: &mut StepMemory = memory.insert(StepMemory::new(batch.spec()));
    let mut run = || -> Result<(), HostError> {
        batch.reset(1, 100, &mut memory.step())?;
        (0..9).try_for_each(|_| batch.step(&[0; 4 * ENVIRONMENTS], &mut memory.step()))
    };
    run().err().map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

#[test]
fn a_value_outside_of_its_space_became_a_row_of_zeros() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (kind, at, value, expected) in [
        (
            "discrete",
            0,
            json!(7),
            "environment 100, its first observation: the observation is 7, outside of Discrete(4, start=1)",
        ),
        (
            "discrete",
            3,
            json!(0),
            "environment 100, step 3 since its server began: the observation is 0, outside of Discrete(4, start=1)",
        ),
        (
            "discrete",
            5,
            json!(5),
            "environment 100, step 5 since its server began: the observation is 5, outside",
        ),
        (
            "multi-discrete",
            2,
            json!(4),
            "environment 100, step 2 since its server began: element 0 of the observation is 4, outside of MultiDiscrete",
        ),
        (
            "tree",
            2,
            json!(-1),
            "environment 100, step 2 since its server began: `hand.card` of the observation is -1, outside of Discrete(4)",
        ),
    ] {
        for changes in modes() {
            let error =
                error_of(&python, &json!({"kind": kind, "at": at, "value": value}), &changes);
            assert!(error.contains(expected), "{kind} {changes}: {error}");
        }
    }
}

#[test]
fn a_number_that_is_none_did_not_name_its_environment() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let begins = "environment 100, step 3 since its server began: ";
    for (kind, value, expected) in [
        ("reward", json!("nan"), "the reward is nan (NaN, or None) and must be a finite number"),
        ("reward", json!("-inf"), "the reward is -inf and must be a finite number"),
        ("reward", json!("1e300"), "the reward is 1e+300, which f32 does not hold"),
        ("reward", json!(null), "the reward is nan (NaN, or None) and must be a finite number"),
        (
            "box",
            json!("nan"),
            " of the observation is nan, outside of Box(0.0, 1.0, (10,), float32)",
        ),
        (
            "box",
            json!("inf"),
            " of the observation is inf, outside of Box(0.0, 1.0, (10,), float32)",
        ),
    ] {
        for changes in modes() {
            let kwargs = json!({"kind": kind, "at": 3, "value": value});
            let error = error_of(&python, &kwargs, &changes);
            assert!(
                error.contains(begins) && error.contains(expected),
                "{kind} {changes}: {error}"
            );
        }
    }
}

#[test]
fn an_infinite_number_is_an_error_where_its_space_has_none() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let odd = |value: &str| json!({"kind": "weights", "at": 3, "value": value});
    for (value, expected) in [
        ("-inf", "no error"),
        ("nan", "element 1 of `hand.weight` of the observation is nan, outside of Box("),
        ("inf", "element 1 of `hand.weight` of the observation is inf, outside of Box("),
    ] {
        let error = error_of(&python, &odd(value), &json!({}));
        assert!(error.contains(expected), "{value}: {error}");
    }
}

#[test]
fn an_error_of_python_began_with_a_signal() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let told = |options: &ServerOptions| Servers::start(options, 1).err().unwrap().to_string();
    let problem = |error: &str| error.split_once("`): ").unwrap().1.to_owned();
    let begins = "ModuleNotFoundError: No module named 'no_such_module'";
    let error = problem(&told(&odd(&python, &json!({"kind": "import"}), &json!({}))));
    assert!(error.starts_with(begins), "{error}");
    let remedy = "put the folder that has `no_such_module` into PYTHONPATH, as an absolute path";
    assert!(error.contains(remedy), "{error}");
    let elsewhere = odd(&python, &json!({}), &json!({"id": "no_such_module:Odd-v0"}));
    let error = problem(&told(&elsewhere));
    assert!(error.starts_with(begins) && error.contains(remedy), "{error}");
    let error = problem(&error_of(&python, &json!({"kind": "raises", "at": 2}), &json!({})));
    assert!(error.starts_with("RuntimeError: the motor is on fire"), "{error}");
    let lander = odd(&python, &json!({}), &json!({"id": "LunarLander-v3"}));
    let error = problem(&told(&lander));
    assert!(error.starts_with("DependencyNotInstalled: "), "{error}");
    assert!(error.contains("`podracer envs install box2d`"), "{error}");
}
