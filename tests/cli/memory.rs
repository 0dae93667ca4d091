//! Memory: a run that cannot fit is rejected before it is compiled. A run that runs out of memory
//! ends with an error, and resumes from its last checkpoint if there is more memory.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use super::resume::{has_checkpoint, result, resume, train};
use super::signals::{soon_over, spawned, wait_for};
use super::text;
use super::{QUICK, command};

/// From now on the process gets no more memory from the system. Small allocations fit into its
/// present memory.
fn no_more_memory(process: u32) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: Some(1 << 20), maximum: None };
    prlimit(process, Resource::As, limit).expect("it is our child");
}

/// The program, with its programs compiled as by default: those here are large.
fn optimized(arguments: &[OsString]) -> Command {
    let mut program = command(arguments);
    program.env_remove(QUICK.0);
    program
}

/// A run with iterations that take enough memory (2.4 GB at once) that it is returned to the system
/// after each of them, and requested again: the allocator keeps allocations of up to 2 GiB.
fn run_out(experiment: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let (alone, run) = (folder.path().join("alone"), folder.path().join("run"));
    let large = [
        "--set=agent.hidden=[4096]",
        "--set=agent.epochs=1",
        "--set=agent.minibatches=1",
        "--set=train.checkpoint_every=1",
    ];
    let experiment = [experiment, &large].concat();
    let expected = result(&mut optimized(&train(&experiment, &alone)));
    let mut child = spawned(&mut optimized(&train(&experiment, &run)));
    wait_for("a checkpoint", || has_checkpoint(&run));
    no_more_memory(child.id());
    let status = soon_over(&mut child);
    let output = child.wait_with_output().expect("a child");
    let said = text(&output.stderr);
    // XLA ends the process where its kernels are at work at that moment, and get no memory for themselves.
    if status.signal() == Some(Signal::ABORT.as_raw()) && said.contains("std::bad_alloc") {
        assert!(has_checkpoint(&run), "{said}");
    } else {
        assert_eq!(status.code(), Some(1), "{status}: {said}");
        for part in ["not enough memory: ", "; smaller batches", "` resumes after "] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let resumed = result(&mut optimized(&resume(&run)));
    assert!(resumed["resumed_from_iteration"].as_u64() > Some(0));
    assert_eq!(resumed["params_sha256"], expected["params_sha256"]);
}

#[test]
fn of_anakin() {
    run_out(&[
        "catch-ppo",
        "--steps=147456",
        "--set=anakin.environments=1024",
        "--set=anakin.unroll=48",
        "--set=anakin.iterations_per_call=1",
    ]);
}

/// An actor or the learner, depending on which requests memory first.
#[test]
fn of_sebulba() {
    run_out(&[
        "cartpole-sebulba-ppo",
        "--steps=147456",
        "--actors=0",
        "--learners=1",
        "--set=sebulba.environments=512",
        "--set=sebulba.unroll=48",
        "--set=sebulba.iterations_per_call=1",
    ]);
}

/// The rollout alone is more than a hundred times the limit. Compiled is nothing: XLA has not even been asked.
#[test]
fn that_cannot_be_there_is_asked_for_before_compiling() {
    let folder = tempfile::tempdir().expect("a folder");
    for (experiment, loop_of, environments, unroll, named) in [
        (
            "cartpole-ppo",
            "anakin",
            16_000_000,
            128,
            "f32[128,16000000,4] of the loop at stdlib/src/anakin.rs:",
        ),
        (
            "cartpole-sebulba-ppo",
            "sebulba",
            1_000_000,
            1_024,
            "f32[1024,1000000,4] of an actor's `steps.observation`",
        ),
    ] {
        let script = format!(
            "ulimit -v 67108864; exec {} train {experiment} --set {loop_of}.environments={environments} \
             --set {loop_of}.unroll={unroll} --run-dir {}",
            env!("CARGO_BIN_EXE_podracer"),
            folder.path().join(experiment).display()
        );
        let output = Command::new("bash").args(["-c", &script]).output();
        let output = output.expect("the program runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in [
            "not enough memory: the training takes at least ",
            " are free: ",
            named,
            "; smaller batches",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("compiled in"), "{said}");
    }
}

/// The replay takes most of the memory of a training that has one, and all buffers together what XLA says.
#[test]
fn the_memory_of_a_program_is_given_to_lines_and_buffers() {
    let arguments = [
        "profile",
        "--memory",
        "cartpole-dqn",
        "--set=agent.capacity=65536",
        "--devices=1",
        "--json",
    ];
    let output = command(&arguments).output().expect("the program runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let memory: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    let program = &memory["programs"][0];
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let buffers = program["buffers"].as_array().expect("a list");
    let sum: u64 = buffers.iter().map(|buffer| number(&buffer["bytes"])).sum();
    let (peak, arguments) = (number(&program["peak_bytes"]), number(&program["argument_bytes"]));
    assert_eq!(sum, peak);
    assert!(
        arguments <= peak && peak <= arguments + number(&program["temporary_bytes"]),
        "{program}"
    );
    let of_replay = |buffer: &&serde_json::Value| {
        buffer["file"].as_str().is_some_and(|file| file.starts_with("stdlib/src/replay/"))
    };
    let replay: u64 = buffers.iter().filter(of_replay).map(|buffer| number(&buffer["bytes"])).sum();
    assert!(2 * replay > peak, "{replay} of {peak}: {program}");
}
