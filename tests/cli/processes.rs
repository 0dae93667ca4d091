//! One training in several processes, which MPI's launcher starts here.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use podracer_runtime::{NamedArrays, from_safetensors};
use serde_json::Value;

use super::signals::{gone, send, wait_for};
use super::{QUICK, podracer, text};
use podracer_test_support::mpi::{mpirun, wrapped};
use podracer_test_support::skip::skip;

/// CartPole, small, with a checkpoint after each call.
const TRAINING: [&str; 10] = [
    "cartpole-ppo",
    "--set=anakin.environments=8",
    "--set=anakin.unroll=16",
    "--set=anakin.iterations_per_call=4",
    "--set=agent.minibatches=2",
    // The work of an iteration must not depend on the number of iterations.
    "--set=agent.anneal_learning_rate=false",
    "--set=train.checkpoint_every=4",
    "--set=train.checkpoints_kept=100",
    "--set=train.devices=1",
    "--json",
];
/// Environment steps of a call.
const CALL: usize = 8 * 16 * 4;

/// A training of the first `calls` calls in several processes; `None` where there is no launcher.
fn together(processes: usize, run: &Path, calls: usize, more: &[&str]) -> Option<Command> {
    let mut command = mpirun(processes)?;
    let steps = format!("--steps={}", calls * CALL);
    command.arg(env!("CARGO_BIN_EXE_podracer")).arg("train").args(TRAINING).arg(steps);
    command.arg("--run-dir").arg(run).args(more);
    command.env_remove("PODRACER_LOG").env(QUICK.0, QUICK.1);
    Some(command)
}

fn ended(mut command: Command) -> Output {
    command.output().expect("mpirun starts")
}

/// The run of one process with `devices` devices.
fn alone(devices: usize, run: &Path, calls: usize) {
    let steps = format!("--steps={}", calls * CALL);
    let devices = format!("--devices={devices}");
    let run = run.to_str().expect("a path of UTF-8");
    let arguments = [&["train"], &TRAINING[..], &[&devices, &steps, "--run-dir", run]].concat();
    podracer(&arguments).assert().success();
}

/// The arrays of the checkpoint after `iterations` iterations.
fn arrays(run: &Path, iterations: usize) -> NamedArrays {
    let folders = fs::read_dir(run.join("checkpoints")).expect("checkpoints");
    let named = format!("-{iterations}");
    let folder = folders
        .map(|folder| folder.expect("a folder").path())
        .find(|folder| folder.to_string_lossy().ends_with(&named))
        .expect("a checkpoint after so many iterations");
    let bytes = fs::read(folder.join("arrays.safetensors")).expect("arrays");
    from_safetensors(&bytes).expect("safetensors")
}

/// The same arrays except for the rounding of gradients in a program with other kernels.
#[track_caller]
fn close(got: &NamedArrays, expected: &NamedArrays) {
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, expected) in expected {
        let apart = expected.scalars().zip(got[name].scalars());
        let apart = apart.map(|(one, two)| (one.float() - two.float()).abs()).fold(0.0, f64::max);
        let close = if expected.ty().dtype.is_float() { 2e-6 } else { 0.0 };
        assert!(apart <= close, "{name}: {apart:e}");
    }
}

/// The numbers of the processes that a launcher has started.
fn children(of: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

#[test]
fn several_processes_train_what_one_does_with_as_many_devices() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str| folder.path().join(name);
    let Some(command) = together(2, &of("two"), 3, &[]) else { return };
    let output = ended(command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("a result, printed once");
    assert_eq!((&result["processes"], &result["devices"]), (&2.into(), &1.into()));
    alone(2, &of("one"), 3);
    let (two, one) = (arrays(&of("two"), 4), arrays(&of("one"), 4));
    close(&two, &one);

    // The run of two processes resumes bit-identically in two, and also in one with another number
    // of devices.
    let mut command = mpirun(2).expect("a launcher");
    command.arg(env!("CARGO_BIN_EXE_podracer")).env(QUICK.0, QUICK.1);
    command.arg("resume").arg(of("two")).arg(format!("--steps={}", 5 * CALL));
    let output = ended(command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let longer = together(2, &of("longer"), 5, &[]).expect("a launcher");
    assert!(ended(longer).status.success());
    assert_eq!(arrays(&of("two"), 20), arrays(&of("longer"), 20));
    let steps = format!("--steps={}", 6 * CALL);
    let two = of("two").display().to_string();
    let output = podracer(&["resume", &two, &steps]).assert().success().get_output().clone();
    let warning = "the run learnt on 2 device(s) and resumes with 1";
    assert!(text(&output.stderr).contains(warning), "{}", text(&output.stderr));
}

#[test]
fn what_does_not_fit_together_is_refused_before_the_first_iteration() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let refused = |command: Command, expected: &str| {
        let output = ended(command);
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{said}");
        // Printed once, whichever process it is about.
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!run.exists(), "{said}");
    };
    let Some(odd) = together(2, &run, 1, &["--set=anakin.environments=9"]) else { return };
    refused(odd, "anakin.environments = 9 does not divide over 2 devices");
    let with_another_seed = |mut command: Command| {
        command.args([":", "-n", "1", env!("CARGO_BIN_EXE_podracer"), "train"]).args(TRAINING);
        command.args(["--seed=7", &format!("--steps={CALL}"), "--run-dir"]).arg(&run);
        command
    };
    refused(
        with_another_seed(together(1, &run, 1, &[]).expect("a launcher")),
        "the processes differ in train.seed: process 0",
    );
    let mut command = together(2, &run, 1, &[]).expect("a launcher");
    let nothing = folder.path().join("libmpi.so");
    let output = ended({
        command.env("PODRACER_MPI", &nothing);
        command
    });
    let said = text(&output.stderr);
    let expected = format!("`{}` cannot be used as MPI", nothing.display());
    assert!(said.contains(&expected) && !run.exists(), "{said}");
    // Each process alone: they do not meet, and the second finds the first's directory or makes it
    // first.
    let mut apart = together(1, &run, 1, &[]).expect("a launcher");
    apart.env("PODRACER_MPI", "none");
    assert!(ended(apart).status.success());
}

/// Catch with actors and learners, small: one actor thread and one learner in each process.
fn sebulba(run: &Path, calls: usize) -> Vec<String> {
    let (environments, unroll, iterations) = (8, 6, 4);
    let steps = |processes| calls * iterations * processes * environments * unroll;
    [
        "catch-impala".to_owned(),
        format!("--set=sebulba.environments={environments}"),
        format!("--set=sebulba.unroll={unroll}"),
        format!("--set=sebulba.iterations_per_call={iterations}"),
        "--set=sebulba.threads=1".to_owned(),
        "--set=agent.anneal_learning_rate=false".to_owned(),
        format!("--set=train.checkpoint_every={iterations}"),
        "--set=train.checkpoints_kept=100".to_owned(),
        format!("--steps={}", steps(2)),
        "--run-dir".to_owned(),
        run.display().to_string(),
    ]
    .into()
}

#[test]
fn actors_and_learners_of_several_processes_learn_what_those_of_one_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str| folder.path().join(name);
    let two = |arguments: &[String]| -> Option<Output> {
        let mut command = mpirun(2)?;
        command.arg(env!("CARGO_BIN_EXE_podracer")).args(arguments).env(QUICK.0, QUICK.1);
        Some(ended(command))
    };
    let train = |run: &Path, calls, devices: &str| {
        let devices = [format!("--actors={devices}"), format!("--learners={devices}")];
        [&["train".to_owned()], &sebulba(run, calls)[..], &devices].concat()
    };
    let Some(output) = two(&train(&of("two"), 2, "0")) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let one = train(&of("one"), 2, "0,1");
    podracer(&one.iter().map(String::as_str).collect::<Vec<_>>()).assert().success();
    close(&arrays(&of("two"), 8), &arrays(&of("one"), 8));
    // The episodes of all are counted.
    let result = |name: &str| -> Value {
        let text = fs::read_to_string(of(name).join("result.json")).expect("a result");
        serde_json::from_str(&text).expect("JSON")
    };
    for key in ["episodes", "env_steps", "mean_return"] {
        assert_eq!(result("two")[key], result("one")[key], "{key}");
    }
    let steps = sebulba(&of("two"), 4)[8].clone();
    let output = two(&["resume".to_owned(), of("two").display().to_string(), steps]);
    let output = output.expect("a launcher");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(two(&train(&of("longer"), 4, "0")).is_some_and(|output| output.status.success()));
    assert_eq!(arrays(&of("two"), 16), arrays(&of("longer"), 16));
}

/// CartPole with central inference, small: each of two processes has half of the lanes, with
/// `workers` workers.
fn central(processes: usize, run: &Path) -> Vec<String> {
    let lanes = 16 / processes;
    [
        "cartpole-central-ppo".to_owned(),
        format!("--set=central.environments={lanes}"),
        format!("--set=central.capacity={lanes}"),
        format!("--set=central.workers={}", 2 / processes),
        "--set=central.unroll=16".to_owned(),
        "--set=central.iterations_per_call=4".to_owned(),
        "--set=agent.minibatches=1".to_owned(),
        "--set=agent.epochs=1".to_owned(),
        "--steps=2048".to_owned(),
        "--run-dir".to_owned(),
        run.display().to_string(),
    ]
    .into()
}

/// Two learners of two processes, each with an inference device and workers of its own, learn what two learners of one process do.
#[test]
fn learners_of_several_processes_infer_for_workers_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str| folder.path().join(name);
    let one = [&["train".to_owned()], &central(1, &of("one"))[..]].concat();
    let one = one.iter().map(String::as_str).chain(["--actors=0", "--learners=0,1"]);
    let learnt = |name: &str| {
        let mut arrays = arrays(&of(name), 8);
        // In the order of processes, and of the end in a process.
        arrays.remove("recent_return_sums");
        arrays
    };
    let Some(mut command) = mpirun(2) else { return };
    command.arg(env!("CARGO_BIN_EXE_podracer")).env(QUICK.0, QUICK.1).arg("train");
    let output = ended({
        command.args(central(2, &of("two"))).args(["--actors=0", "--learners=0"]);
        command
    });
    assert!(output.status.success(), "{}", text(&output.stderr));
    podracer(&one.collect::<Vec<_>>()).assert().success();
    close(&learnt("two"), &learnt("one"));

    // Workers elsewhere may connect to any process: its address is the first process's with its
    // number.
    let mut command = mpirun(2).expect("a launcher");
    command.arg(env!("CARGO_BIN_EXE_podracer")).env(QUICK.0, QUICK.1).arg("serve");
    command.args(central(2, &of("served"))).args(["--actors=0", "--learners=0"]);
    command.args(["--listen", "unix:a.sock"]).current_dir(&folder);
    let launcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun");
    for socket in ["a.sock", "a.sock.1"] {
        wait_for("a server", || of(socket).exists());
    }
    let work = |address: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podracer"));
        command.args(["work", "--connect", address, "--environments=8", "--batches=1"]);
        command.current_dir(&folder).stderr(Stdio::null()).spawn().expect("a worker")
    };
    let workers = ["unix:a.sock", "unix:a.sock.1"].map(work);
    let output = launcher.wait_with_output().expect("mpirun ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    for mut worker in workers {
        // The learners have sent them the end of the run.
        assert!(worker.wait().expect("it ends").success());
    }
    close(&learnt("served"), &learnt("two"));
}

/// The processes divide runs with several seeds: each trains some of them, as one program, and the
/// first reports for all.
#[test]
fn processes_share_the_runs_of_a_population() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |name: &str| folder.path().join(name);
    let Some(command) = together(2, &of("two"), 2, &["--seeds=3"]) else { return };
    let output = ended(command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let two: Value = serde_json::from_slice(&output.stdout).expect("results, printed once");
    let steps = format!("--steps={}", 2 * CALL);
    let one = of("one").display().to_string();
    let more = ["--seeds=3", &steps, "--run-dir", &one];
    let alone = podracer(&[&["train"], &TRAINING[..], &more].concat()).assert().success();
    let one: Value = serde_json::from_slice(&alone.get_output().stdout).expect("results");
    let runs = |results: &Value| {
        let runs = results["runs"].as_array().expect("runs").iter();
        let told = |run: &Value| ["seed", "env_steps", "mean_return"].map(|key| run[key].clone());
        runs.map(told).collect::<Vec<_>>()
    };
    assert_eq!(runs(&two), runs(&one));
    for seed in 0..3 {
        let run = |name: &str| of(name).join(format!("seed-{seed}"));
        close(&arrays(&run("two"), 8), &arrays(&run("one"), 8));
    }

    // The same command finds them done, and those that are no program together are processes of their process.
    let again = ended(together(2, &of("two"), 2, &["--seeds=3"]).expect("a launcher"));
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("the folder has them already"), "{}", text(&again.stderr));
    let again: Value = serde_json::from_slice(&again.stdout).expect("results");
    assert_eq!(runs(&again), runs(&two));
    let few = ended(together(3, &of("few"), 1, &["--seeds=2"]).expect("a launcher"));
    let said = text(&few.stderr);
    assert!(said.contains("2 runs are fewer than the 3 processes"), "{said}");
    assert!(!of("few").exists(), "{said}");
}

/// A value that one process got wrong makes no checkpoint.
#[test]
fn a_process_with_other_parameters_is_found_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let Some(mut command) = together(2, &run, 8, &[]) else { return };
    let launcher = std::path::PathBuf::from(command.get_program());
    if !launcher.is_absolute() {
        return skip("PODRACER_MPIRUN names no file, so that its library is not known");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/faulty.c");
    let faulty = wrapped(&launcher, &source);
    command.env("PODRACER_MPI", &faulty);
    let output = ended(command);
    fs::remove_file(faulty).expect("the library was there");
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let expected = ") has other parameters than process 0, though all learn from the same sums";
    assert!(said.contains("error: process 1 (pid ") && said.contains(expected), "{said}");
    // It was in the third iteration, and the first checkpoint would have been that after the fourth.
    let checkpoints = fs::read_dir(run.join("checkpoints"));
    assert_eq!(checkpoints.map_or(0, Iterator::count), 0, "{said}");
}

/// Waits until the training has a checkpoint, and gives the numbers of its processes.
fn under_way(launcher: u32, run: &Path) -> Vec<u32> {
    wait_for("a checkpoint", || {
        let found = fs::read_dir(run.join("checkpoints"));
        found.is_ok_and(|mut folders| {
            folders.any(|folder| {
                folder.is_ok_and(|folder| folder.path().join("manifest.json").is_file())
            })
        })
    });
    children(launcher)
}

/// A process that is gone, or does not answer, soon ends the whole training, which resumes from its
/// last checkpoint.
#[test]
fn a_process_that_is_lost_ends_all() {
    let folder = tempfile::tempdir().expect("a folder");
    for (signal, patience) in [("KILL", 60), ("STOP", 2)] {
        let run = folder.path().join(signal);
        let set = format!("--set=train.patience={patience}");
        let Some(mut command) =
            together(3, &run, 1_000_000, &["--set=anakin.environments=12", &set])
        else {
            return;
        };
        let launcher =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun");
        let processes = under_way(launcher.id(), &run);
        assert_eq!(processes.len(), 3);
        let victim = processes[2];
        send(signal, victim);
        let since = Instant::now();
        let output = launcher.wait_with_output().expect("mpirun ends");
        assert!(since.elapsed() < Duration::from_secs(30), "{signal}: {:?}", since.elapsed());
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{said}");
        match signal {
            "KILL" => assert!(said.contains(&victim.to_string()), "{said}"),
            _ => assert!(said.contains(&format!("process 2 (pid {victim} on ")), "{said}"),
        }
        processes.into_iter().for_each(gone);
        let run = run.to_str().expect("a path of UTF-8");
        // Exactly one more call is requested.
        podracer(&["eval", run, "--episodes=1"]).assert().success();
    }
}

/// Ctrl-C reaches the launcher, which sends it on to all: they stop after the same call, with a checkpoint.
#[test]
fn all_stop_after_the_same_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let Some(mut command) = together(2, &run, 1_000_000, &[]) else { return };
    let launcher = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun");
    for process in under_way(launcher.id(), &run) {
        send("INT", process);
    }
    let output = launcher.wait_with_output().expect("mpirun ends");
    let result: Value = serde_json::from_slice(&output.stdout).expect("a result");
    assert_eq!(result["interrupted"], true, "{}", text(&output.stderr));
    let iterations = result["iterations"].as_u64().expect("a number") as usize;
    assert!(!arrays(&run, iterations).is_empty());
}

/// A job by `mpirun` really runs: it trains, and when run again it resumes, after a stop or after
/// the loss of a checkpoint.
#[test]
fn a_job_that_is_started_again_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (run, job) = (folder.path().join("run"), folder.path().join("job.sh"));
    let Some(mpirun) = mpirun(2) else { return };
    let submit = |calls: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podracer"));
        command.env_remove("PODRACER_LOG").env(QUICK.0, QUICK.1);
        // The launcher's requirements here: its path, and permission for root.
        command.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(["launch", "--mpirun", "--processes=2", "--submit"]);
        command.arg(format!("--output={}", job.display())).args(TRAINING);
        command.arg(format!("--steps={}", calls * CALL)).arg("--run-dir").arg(&run);
        ended(command)
    };
    // A run that was stopped before its first checkpoint gives way.
    fs::create_dir_all(&run).expect("a folder");
    fs::write(run.join("config.toml"), "").expect("a file");
    for calls in [2, 4] {
        let output = submit(calls);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let longer = together(2, &folder.path().join("longer"), 4, &[]).expect("a launcher");
    assert!(ended(longer).status.success());
    assert_eq!(arrays(&run, 16), arrays(&folder.path().join("longer"), 16));
}
