//! The end of servers, and the signals that reach them.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow};
use podracer_envs::host::HostEnvironment;
use podracer_envs::host::server::Servers;
use serde_json::json;
use tempfile::TempDir;

use super::{begun, fake, kill, step};

/// A server with all that it starts would never end by SIGTERM.
#[test]
fn servers_blocked_the_signals_that_a_run_blocks() {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).unwrap();
    let source = "import signal, sys\nsys.exit(f'blocked: {sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))}.')";
    let error = Servers::start(&fake(&json!({})).source(source), 2).err().unwrap().to_string();
    assert!(error.contains("blocked: []."), "{error}");
    assert!(SigSet::thread_get_mask().unwrap().iter().count() > 20, "the thread blocks them still");
    before.thread_set_mask().unwrap();
}

#[test]
fn servers_outlive_signals_that_stop_all_processes_of_a_job() {
    let (mut batch, mut memory) = begun(&fake(&json!({})).servers(2));
    for (time, signal) in ["-TERM", "-INT", "-HUP"].iter().enumerate() {
        for process in batch.processes() {
            let sent = Command::new("kill").args([signal, &&*process.to_string()]).status();
            assert!(sent.unwrap().success());
        }
        step(&mut batch, &mut memory, time);
    }
    assert_eq!(batch.restarts(), 0);
}

#[test]
fn a_batch_that_is_dropped_closes_its_environments() {
    // At rest, during a step, and after a fault of the other server.
    for way in ["at rest", "in a step", "after a fault", "before the first episode"] {
        let folder = TempDir::new().unwrap();
        let log = folder.path().join("log");
        let options = fake(&json!({"closes": log})).servers(2);
        let expected = match way {
            "before the first episode" => {
                drop(Servers::start(&options, 5).unwrap());
                2
            }
            "at rest" => {
                let (mut batch, mut memory) = begun(&options);
                step(&mut batch, &mut memory, 0);
                2
            }
            "in a step" => {
                let (mut batch, _) = begun(&options);
                batch.send(&[0; 20]).unwrap();
                2
            }
            _ => {
                let (mut batch, mut memory) = begun(&options.restarts(0));
                kill(batch.processes().next().unwrap());
                batch.step(&[0; 20], &mut memory.step()).unwrap_err();
                1
            }
        };
        let closed = fs::read_to_string(&log).unwrap_or_default();
        assert_eq!(closed.lines().count(), expected, "{way}");
    }
}

#[test]
fn a_server_with_an_error_closes_its_environments() {
    let folder = TempDir::new().unwrap();
    for fault in ["raise", "leave"] {
        let log = folder.path().join(fault);
        let options = fake(&json!({"fault": fault, "at": 1, "closes": log}));
        let (mut batch, mut memory) = begun(&options.restarts(0));
        batch.step(&[0; 20], &mut memory.step()).unwrap_err();
        assert_eq!(fs::read_to_string(&log).unwrap_or_default().lines().count(), 1, "{fault}");
    }
}

#[test]
fn a_server_that_never_closes_is_killed() {
    let folder = TempDir::new().unwrap();
    for fault in ["hangs", "raises"] {
        let log = folder.path().join(fault);
        let options = fake(&json!({"closes": log, "closing": fault})).servers(2);
        let (batch, _) = begun(&options.step_timeout(Duration::from_millis(300)));
        let servers: Vec<u32> = batch.processes().collect();
        let began = Instant::now();
        drop(batch);
        assert!(began.elapsed() < Duration::from_secs(15), "{fault}");
        assert_eq!(fs::read_to_string(&log).unwrap_or_default().lines().count(), 2, "{fault}");
        servers.into_iter().for_each(super::expect_end);
    }
}

#[test]
fn the_error_that_a_server_names_comes_first() {
    let (mut batch, mut memory) = begun(&fake(&json!({"fault": "raise", "at": 1})).restarts(0));
    let error = batch.step(&[0; 20], &mut memory.step()).unwrap_err().to_string();
    let expected = "environment server 0 (`python3`): RuntimeError: the pole is broken; the end of its output:\n";
    assert!(error.starts_with(expected), "{error}");
}
