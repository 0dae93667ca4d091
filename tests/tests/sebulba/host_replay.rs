//! A replay on the host: its windows, its part of a checkpoint, and its errors.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use podracer::sebulba::{STORE, Sebulba};
use podracer_dsl::prelude::*;
use podracer_envs::host::{HostEnvironment, Random};
use podracer_rl::learn::{
    Act, Agent, Cx, Input, LaneId, LearnFromReplay, Mode, ReplaySettings, Replayed, Rollout,
    Window, Windows,
};
use podracer_runtime::setters::*;
use podracer_runtime::{Activity, Checkpoint, CheckpointError, Checkpoints, ExecutableCache};
use podracer_runtime::{IterationReport, ReplayMemory, Schedule, SebulbaRun};

use super::checkpoints::saved;
use super::{ENVIRONMENTS, cartpoles, parameters, quick, spec, with};
use crate::loops;

/// Steps of a trajectory.
const UNROLL: usize = 4;

/// A policy with weights that every window moves. Its memory numbers the steps of all lanes, so that it sees if a window is not one.
#[derive(Clone, Debug)]
struct Numbers {
    /// True if windows begin with rollouts, and the memory is kept with their starts.
    starts: bool,
    length: usize,
    /// Bytes of a step in addition to the other leaves.
    padding: usize,
}

/// A step as the replay keeps it.
#[derive(Tree, Clone)]
struct Numbered {
    number: Tensor,
    observation: Tensor,
    reward: Tensor,
    last: Tensor,
    padding: Tensor,
}

impl Agent for Numbers {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = Tensor;
    type Extras = Tensor;
    fn init_memory(&self, lane: LaneId) -> Tensor {
        lane.index * 10_000
    }
    fn begin_episode(&self, memory: Tensor) -> Tensor {
        memory
    }
    fn act(
        &self,
        params: &Tensor,
        memory: Tensor,
        input: Input,
        _: Mode,
        key: Key,
    ) -> Act<Tensor, Tensor> {
        let likely = (input.observation * *params).sum().tanh() * 0.4 + 0.5;
        let action = key.uniform([]).lt(likely).astype(I32);
        Act { action, memory: memory + 1, extras: memory }
    }
}

impl LearnFromReplay for Numbers {
    type State = Tensor;
    type Step = Numbered;
    type Start = Option<Tensor>;
    /// Windows that are learnt from and are not whole; the mean number of a step; windows that count for nothing.
    type Metrics = (Tensor, Tensor, Tensor);
    fn init(&self, key: Key) -> Tensor {
        key.normal([4])
    }
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn keep(&self, rollout: Rollout<Self>) -> (Numbered, Option<Tensor>) {
        let shape = [&rollout.reward.shape()[..], &[self.padding]].concat();
        let steps = Numbered {
            number: rollout.extras,
            last: rollout.done(),
            observation: rollout.input.observation,
            reward: rollout.reward,
            padding: zeros(U8, shape),
        };
        (steps, self.starts.then_some(rollout.memory))
    }
    fn window(&self, _: &Spec<Numbered>) -> Window {
        let period = if self.starts { UNROLL } else { 1 };
        Window { length: self.length, period, learnt: 1 }
    }
    fn gradient_step(
        &self,
        weights: Tensor,
        windows: Windows<Numbered, Option<Tensor>>,
        cx: &Cx,
    ) -> (Tensor, Tensor, Self::Metrics) {
        let Numbered { number, observation, reward, last, .. } = windows.steps;
        let first = number.index(0);
        let follow = first.expand_dims(0) + arange(self.length).expand_dims(1);
        let torn = number.ne(follow).astype(I32).sum_axis(0).gt(0);
        let torn = windows.starts.map_or(torn, |start| torn | start.ne(first));
        let counts = windows.weights.gt(0.0);
        let error = (observation.index(-1) * weights).sum_axis(1) - reward.index(-1);
        let error = select(last.index(-1), error * 0.5, error) * windows.weights;
        let step = (observation.index(-1) * error.expand_dims(1)).mean_axis(0);
        let noise = cx.key.again().normal([4]) * 0.001;
        (
            weights - cx.mean(step) * 0.1 + noise,
            error.abs() + 0.01,
            (
                (torn & counts).astype(F32).sum(),
                number.astype(F32).mean(),
                (!counts).astype(F32).sum(),
            ),
        )
    }
}

/// Two threads act on device 0, and `learners` devices learn.
fn sebulba(prioritized: bool, starts: bool, learners: &[usize]) -> Sebulba<Replayed<Numbers>> {
    let settings = ReplaySettings {
        capacity: 8 * 4 * UNROLL,
        minimum: 40,
        batch: 8,
        replay_ratio: 0.375,
        prioritized,
        ..ReplaySettings::default()
    };
    let agent = Numbers { starts, length: 6, padding: 3 };
    quick(Sebulba::new(Replayed { agent, settings, iterations: 20 }))
        .unroll(UNROLL)
        .learners(learners.to_vec())
        .replay(ReplayMemory::Host)
}

fn batch(_: usize) -> anyhow::Result<Box<dyn HostEnvironment>> {
    Ok(Box::new(cartpoles(ENVIRONMENTS)))
}

fn start(sebulba: &Sebulba<Replayed<Numbers>>) -> SebulbaRun {
    sebulba.start(&loops::client(3), &spec(), 7, batch).expect("the run starts")
}

fn resume(
    sebulba: &Sebulba<Replayed<Numbers>>,
    checkpoint: &Checkpoint<'_>,
) -> anyhow::Result<SebulbaRun> {
    sebulba.resume(&loops::client(3), &spec(), checkpoint, batch)
}

/// A metric of each iteration.
fn metric(run: &SebulbaRun, reports: &[IterationReport], name: &str) -> Vec<f32> {
    let names = run.metric_names();
    let at = names.iter().position(|known| known == name);
    let at = at.unwrap_or_else(|| panic!("{name} among {names:?}"));
    reports.iter().map(|report| report.metrics[at]).collect()
}

fn kinds() -> [Sebulba<Replayed<Numbers>>; 4] {
    [
        sebulba(false, false, &[1]),
        sebulba(true, false, &[1, 2]),
        sebulba(true, true, &[1]),
        sebulba(false, true, &[1, 2]),
    ]
}

/// The ring is overwritten twice. Eight environments act 32 steps, and 8 are learnt from: 1.5 gradient steps an iteration, from the
/// second on, which have their windows two iterations later.
#[test]
fn windows_are_whole_and_runs_repeat_to_the_bit() {
    for sebulba in kinds() {
        let about = format!("{:?}", sebulba.agent());
        let mut run = start(&sebulba);
        let reports = run.run(14).expect("some iterations");
        let learnt = metric(&run, &reports, "replay.replay_ratio");
        let expected: Vec<f32> = (0..14)
            .map(|i: i32| if i < 3 { 0.0 } else { [0.25, 0.5][(i as usize + 1) % 2] })
            .collect();
        assert_eq!(learnt, expected, "{about}");
        let size = metric(&run, &reports, "replay.size");
        assert_eq!((size[0], size[2], size[13]), (32.0, 96.0, 128.0), "{about}");
        assert_eq!(metric(&run, &reports, "learning.0"), [0.0; 14], "{about}: whole windows");
        assert_eq!(metric(&run, &reports, "learning.2"), [0.0; 14], "{about}: all of them count");
        let numbers = metric(&run, &reports, "learning.1");
        assert!(numbers[4] != numbers[8] && numbers[13] > 0.0, "{about}: {numbers:?}");
        let ages = metric(&run, &reports, "replay.age");
        assert!(ages[3..].iter().all(|age| (14.0..=24.0).contains(age)), "{about}: {ages:?}");
        let expected = parameters(&run);
        drop(run);
        let mut again = start(&sebulba);
        let repeated = again.run(14).expect("some iterations");
        let all = |reports: &[IterationReport]| -> Vec<Vec<f32>> {
            reports.iter().map(|report| report.metrics.clone()).collect()
        };
        assert_eq!(all(&repeated), all(&reports), "{about}");
        assert_eq!(parameters(&again), expected, "{about}");
    }
}

/// Checkpoints in files, at several moments: before there are windows, with windows that wait, and after the ring was overwritten.
#[test]
fn what_follows_a_checkpoint_is_what_would_have_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = ExecutableCache::at(folder.path().join("programs"), u64::MAX);
    for (kind, sebulba) in kinds().into_iter().enumerate() {
        let sebulba = sebulba.cache(cache.clone()).replay_folder(Some(folder.path().to_owned()));
        let mut alone = start(&sebulba);
        let reports = alone.run(13).expect("some iterations");
        let expected = parameters(&alone);
        drop(alone);
        let checkpoints = Checkpoints::new(folder.path().join(kind.to_string()), 2);
        let mut run = start(&sebulba);
        let mut done = 0;
        for iterations in [0, 1, 2, 1, 4, 5] {
            let again = run.run(iterations).expect("some iterations");
            for (again, report) in again.iter().zip(&reports[done..]) {
                assert_eq!(again.metrics, report.metrics, "kind {kind}");
            }
            done += iterations;
            let checkpoint = run.checkpoint().expect("a checkpoint");
            assert_eq!(checkpoint.files.is_empty(), done == 0);
            checkpoints.save(&checkpoint).expect("it is written");
            drop(checkpoint);
            // The run's work after a checkpoint is not in it.
            run.run(1).expect("an iteration");
            drop(run);
            let found = checkpoints.latest().expect("it is read");
            assert_eq!((found.checkpoint.iterations, found.skipped.len()), (done as u64, 0));
            run = resume(&sebulba, &found.checkpoint).expect("it goes on");
        }
        assert_eq!(parameters(&run), expected, "kind {kind}");
    }
}

/// A checkpoint's files are the run's files under other names: nothing is written again.
#[test]
fn checkpoints_share_the_files_of_the_replay() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().expect("a folder");
    let sebulba = sebulba(true, false, &[1]).replay_folder(Some(folder.path().to_owned()));
    let checkpoints = Checkpoints::new(folder.path().join("checkpoints"), 2);
    let mut run = start(&sebulba);
    let mut save = |iterations| {
        run.run(iterations).expect("some iterations");
        let checkpoint = run.checkpoint().expect("a checkpoint");
        let path = checkpoints.save(&checkpoint).expect("it is written");
        let inode = |name: &String| {
            let file = fs::metadata(path.join(name)).expect("the file is there");
            (name.clone(), (file.ino(), file.nlink()))
        };
        checkpoint.files.keys().map(inode).collect::<std::collections::BTreeMap<_, _>>()
    };
    let (first, second) = (save(6), save(1));
    let shared: Vec<_> = first.keys().filter(|name| second.contains_key(*name)).collect();
    assert!(shared.len() > 3, "{first:?}, {second:?}");
    for name in shared {
        assert_eq!(first[name].0, second[name].0, "{name} is one file");
        assert_eq!(
            (first[name].1, second[name].1),
            (1, 2),
            "{name} has names in checkpoints alone"
        );
    }
    drop(run);
    let names = fs::read_dir(folder.path()).expect("the folder is there");
    let names: Vec<_> = names.map(|entry| entry.expect("it is read").file_name()).collect();
    assert_eq!(names, ["checkpoints"], "the run leaves no file of its own");
}

#[test]
fn a_damaged_segment_gives_way_to_the_checkpoint_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let sebulba = sebulba(true, false, &[1]).replay_folder(Some(folder.path().to_owned()));
    let checkpoints = Checkpoints::new(folder.path().join("checkpoints"), 3);
    let mut run = start(&sebulba);
    run.run(4).expect("some iterations");
    checkpoints.save(&run.checkpoint().expect("a checkpoint")).expect("it is written");
    // Longer ago than the first of the second's segments.
    run.run(9).expect("some iterations");
    let checkpoint = run.checkpoint().expect("a checkpoint");
    let name = checkpoint.files.keys().next().expect("it has files").clone();
    let path = checkpoints.save(&checkpoint).expect("it is written").join(&name);
    drop(checkpoint);
    let good = fs::read(&path).expect("it is read");
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    for (bytes, problem) in
        [(&damaged[..], "has the sha256"), (&good[..good.len() - 1], "bytes and had")]
    {
        fs::write(&path, bytes).expect("it is written");
        let found = checkpoints.latest().expect("the one before is good");
        assert_eq!(found.checkpoint.iterations, 4);
        let said = found.skipped[0].to_string();
        assert!(said.contains(&format!("`{name}`")) && said.contains(problem), "{said}");
        // Parameters are read without the replay.
        let found = checkpoints.latest_parameters().expect("it is read");
        assert_eq!((found.checkpoint.iterations, found.checkpoint.files.len()), (13, 0));
    }
    fs::remove_file(&path).expect("it is there");
    assert_eq!(checkpoints.latest().expect("the one before").checkpoint.iterations, 4);
    fs::write(&path, &good).expect("it is written");
    let found = checkpoints.latest().expect("it is good again");
    let mut resumed = resume(&sebulba, &found.checkpoint).expect("it goes on");
    run.run(2).expect("some iterations");
    resumed.run(2).expect("some iterations");
    assert_eq!(parameters(&resumed), parameters(&run));
}

#[test]
fn a_partial_checkpoint_has_no_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path(), 2);
    let sebulba = sebulba(true, false, &[1]);
    let mut run = start(&sebulba);
    run.run(4).expect("some iterations");
    let mut checkpoint = run.checkpoint().expect("a checkpoint");
    checkpoint.leave_out(STORE);
    assert!(checkpoint.partial && checkpoint.files.is_empty());
    let path = checkpoints.save(&checkpoint).expect("it is written");
    drop(checkpoint);
    assert_eq!(fs::read_dir(path).expect("the folder is there").count(), 2);
    assert!(matches!(checkpoints.latest(), Err(CheckpointError::None { .. })));
    let found = checkpoints.latest_parameters().expect("it has the parameters");
    let said = resume(&sebulba, &found.checkpoint).err().expect("it has no replay");
    assert!(format!("{said:#}").contains("it is partial"), "{said:#}");
}

/// A checkpoint in memory outlives the run's progress: files that the run has forgotten are still there.
#[test]
fn a_checkpoint_in_memory_serves_later() {
    let sebulba = sebulba(false, false, &[1]);
    let mut run = start(&sebulba);
    run.run(5).expect("some iterations");
    let checkpoint = saved(&mut run);
    let reports = run.run(12).expect("some more");
    drop(run);
    let mut again = resume(&sebulba, &checkpoint).expect("it goes on");
    let repeated = again.run(12).expect("some more");
    assert_eq!(repeated[11].metrics, reports[11].metrics);
}

/// Nothing waits for the learner's parameters, and threads that are in the midst of something end with the run.
#[test]
fn a_free_running_run_goes_on_and_ends() {
    let sebulba = sebulba(true, false, &[1]).schedule(Schedule::FreeRunning);
    let mut run = start(&sebulba);
    let reports = run.run(9).expect("some iterations");
    assert_eq!(metric(&run, &reports, "learning.0"), [0.0; 9], "whole windows");
    let checkpoint = saved(&mut run);
    let learnt = parameters(&run);
    let mut run = resume(&sebulba, &checkpoint).expect("it goes on");
    assert_eq!(parameters(&run), learnt);
    let reports = run.run(6).expect("some more");
    assert_eq!((reports[0].iteration, reports.len()), (9, 6));
    assert_eq!(metric(&run, &reports, "learning.0"), [0.0; 6], "whole windows");
    let across: f32 = metric(&run, &reports, "learning.2").iter().sum();
    assert!(across > 0.0, "steps were lost between checkpoint and end: nothing is learnt across");
    let began = Instant::now();
    run.stop().expect("nothing went wrong");
    assert!(began.elapsed() < Duration::from_secs(20));
    let times = run.times();
    assert_eq!(times.last().expect("a thread").thread, "the replay");
    for activity in [Activity::Storing, Activity::Gathering, Activity::Ended] {
        let spent = times.last().expect("a thread").of(activity);
        assert!(spent > Duration::ZERO, "{activity:?}");
    }
}

/// Environments without a snapshot begin anew: a window from before the stop to after it counts for nothing.
#[test]
fn nothing_is_learnt_across_a_stop_that_loses_the_environments() {
    let batch = |_| Ok(Box::new(with(|| Ok(()))) as Box<dyn HostEnvironment>);
    let (client, sebulba) = (loops::client(2), sebulba(true, false, &[1]));
    let mut run = sebulba.start(&client, &spec(), 7, batch).expect("the run starts");
    let reports = run.run(9).expect("some iterations");
    assert_eq!(metric(&run, &reports, "learning.2"), [0.0; 9]);
    let checkpoint = saved(&mut run);
    let mut run = sebulba.resume(&client, &spec(), &checkpoint, batch).expect("it goes on");
    let reports = run.run(6).expect("some more");
    assert!(metric(&run, &reports, "learning.2").iter().sum::<f32>() > 0.0);
}

#[test]
fn a_replay_that_cannot_be_is_refused_before_anything_starts() {
    let refused = |sebulba: &Sebulba<Replayed<Numbers>>| {
        let started = sebulba.start(&loops::client(2), &spec(), 7, batch);
        format!("{:#}", started.err().expect("it is refused"))
    };
    let with = |change: &dyn Fn(&mut Replayed<Numbers>)| {
        let mut agent = sebulba(true, false, &[1]).agent().clone();
        change(&mut agent);
        quick(Sebulba::new(agent)).unroll(UNROLL).replay(ReplayMemory::Host)
    };
    let said = refused(&with(&|agent| {
        (agent.agent.padding, agent.settings.capacity) = (1 << 20, 1 << 25);
    }));
    assert!(said.contains("the replay takes 3") && said.contains("bytes (3"), "{said}");
    assert!(said.contains("are free there: lower the replay's capacity"), "{said}");
    let said = refused(&with(&|agent| agent.settings.capacity = 16));
    assert!(said.contains("a window has 6 steps, and a capacity of 16 is 4 steps"), "{said}");
    let said = refused(&sebulba(true, false, &[1]).replay_folder(Some("/proc/nothing".into())));
    assert!(said.contains("cannot look at the folder `/proc/nothing`: No such file"), "{said}");
    let ppo = super::small().replay(ReplayMemory::Host);
    let said = ppo.trace(&spec()).expect_err("it has none").to_string();
    assert!(said.contains("for agents that learn from a replay"), "{said}");
}

/// The run's folder, in a process that a test kills.
const FOLDER: &str = "PODRACER_TEST_REPLAY_FOLDER";
const CALLS: u64 = 12;

/// Trains from the last checkpoint in the folder to the end, a checkpoint after each call.
fn train_in(folder: &Path) {
    let cache = ExecutableCache::at(folder.join("programs"), u64::MAX);
    let sebulba = sebulba(true, false, &[1]).replay_folder(Some(folder.to_owned())).cache(cache);
    let checkpoints = Checkpoints::new(folder.join("checkpoints"), 2);
    let (mut run, mut iterations) = match checkpoints.latest() {
        Ok(found) => {
            let run = resume(&sebulba, &found.checkpoint).expect("it goes on");
            (run, found.checkpoint.iterations)
        }
        Err(CheckpointError::None { .. }) => (start(&sebulba), 0),
        Err(error) => panic!("{error}"),
    };
    // A child may have been killed after its last checkpoint.
    while iterations < 2 * CALLS {
        run.run(2).expect("some iterations");
        let checkpoint = run.checkpoint().expect("a checkpoint");
        iterations = checkpoint.iterations;
        checkpoints.save(&checkpoint).expect("it is written");
    }
    let unfinished = folder.join("unfinished-result");
    fs::write(&unfinished, format!("{:?}", parameters(&run))).expect("it is written");
    fs::rename(unfinished, folder.join("result")).expect("it is written");
}

/// A run that is killed at random moments, over and over, ends where one ends that is left alone.
#[test]
fn a_run_that_is_killed_goes_on_to_the_bit() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return train_in(Path::new(&folder));
    }
    let kills = std::env::var("PODRACER_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills: usize = kills.unwrap_or(4);
    let folder = tempfile::tempdir().expect("a folder");
    let spawn = |folder: &Path| {
        let binary = std::env::current_exe().expect("the test has a file");
        let test = "sebulba::host_replay::a_run_that_is_killed_goes_on_to_the_bit";
        let mut command = Command::new(binary);
        command.args(["--exact", test, "--test-threads=1", "--nocapture"]).env(FOLDER, folder);
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().expect("the test starts")
    };
    let result = |folder: &Path| fs::read_to_string(folder.join("result")).ok();
    let alone = folder.path().join("alone");
    fs::create_dir(&alone).expect("it can be made");
    assert!(spawn(&alone).wait().expect("a child").success());
    let expected = result(&alone).expect("it has ended");
    // A folder with compiled programs.
    let compiled = |name: &str| {
        let run = folder.path().join(name);
        fs::create_dir(&run).expect("it can be made");
        let programs = Command::new("cp").arg("-r").arg(alone.join("programs")).arg(&run).status();
        assert!(programs.expect("there is `cp`").success());
        run
    };
    let (run, began) = (compiled("again"), Instant::now());
    assert!(spawn(&run).wait().expect("a child").success());
    assert_eq!(result(&run).as_ref(), Some(&expected), "left alone");
    let longest = 1.2 * began.elapsed().as_secs_f32();
    let (mut killed, mut ended) = (0, 0);
    let mut random = Random::from_state(u64::from(std::process::id()));
    while killed < kills {
        let run = compiled(&ended.to_string());
        ended += 1;
        loop {
            let moment = Instant::now() + Duration::from_secs_f32(random.range(0.0, longest));
            let mut child = spawn(&run);
            while Instant::now() < moment && child.try_wait().expect("a child").is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            child.kill().expect("it is ours");
            let status = child.wait().expect("a child");
            match result(&run) {
                Some(result) => break assert_eq!(result, expected, "after {killed} kills"),
                None if status.code().is_some() => panic!("it failed: {status}"),
                None => killed += 1,
            }
        }
    }
    eprintln!("{killed} kills, {ended} runs, all of them alike");
}
