//! The log and its windows, compared with lists of steps in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use podracer_compiler::{DType, TensorType};
use podracer_envs::host::Random;

use super::layout::{Layout, Packed};
use super::log::{RolloutLog, bytes, check_space};
use super::windows::{Request, Windows};
use super::{HostReplay, ReplayError};
use crate::checkpoint::FileSource;

const THREADS: usize = 3;
const LEARNERS: usize = 2;
/// Lanes of a thread on a learner device.
const LANES: usize = 2;
const UNROLL: usize = 4;

fn replay(length: usize, period: usize) -> HostReplay {
    let (gradient_steps, batch, ahead, step_leaves) = (3, 5, 2, 2);
    HostReplay { steps: 16, length, period, gradient_steps, batch, ahead, step_leaves }
}

/// A step is an i32 and three bytes; a start is a byte.
fn shard(starts: bool) -> Vec<TensorType> {
    let mut types = vec![
        TensorType::new(DType::I32, [UNROLL, LANES]),
        TensorType::new(DType::U8, [UNROLL, LANES, 3]),
    ];
    types.extend(starts.then(|| TensorType::new(DType::U8, [LANES])));
    types
}

/// The number of a lane's step: lanes are counted by device, thread, and lane of the thread.
fn number(lane: usize, time: usize) -> i32 {
    (time * 100 + lane) as i32
}

/// The leaves of a step, and of a start, by the step's number.
fn leaves(number: i32) -> ([u8; 4], [u8; 3], u8) {
    let [low, high, ..] = number.to_le_bytes();
    (number.to_le_bytes(), [low, high, low ^ high], low.wrapping_mul(3))
}

/// A thread's part of a rollout, for each learner device.
fn packed(layout: &Layout, thread: usize, rollout: usize, starts: bool) -> Vec<Packed> {
    let of_learner = |learner: usize| {
        let lane = |lane: usize| (learner * THREADS + thread) * LANES + lane;
        let (mut first, mut second, mut begun) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..UNROLL {
            for here in 0..LANES {
                let (one, other, start) = leaves(number(lane(here), rollout * UNROLL + step));
                first.extend(one);
                second.extend(other);
                begun.extend((step == 0).then_some(start));
            }
        }
        let all = [&first[..], &second, &begun];
        layout.pack(&all[..if starts { 3 } else { 2 }])
    };
    (0..LEARNERS).map(of_learner).collect()
}

fn append(log: &mut RolloutLog, layout: &Layout, starts: bool) {
    let rollout = log.written() as usize;
    let threads: Vec<_> =
        (0..THREADS).map(|thread| packed(layout, thread, rollout, starts)).collect();
    log.append(&layout.rollout(&threads)).expect("the disk has room");
}

/// Every window of the last steps, by the index that the devices draw, with its lane and the time of its first step.
fn whole(replay: &HostReplay, rollouts: usize) -> Vec<(i32, usize, usize)> {
    let now = rollouts * UNROLL;
    let lanes = THREADS * LANES;
    let mut all = Vec::new();
    for time in (now.saturating_sub(replay.steps)..now).filter(|time| time % replay.period == 0) {
        for lane in (0..LEARNERS * lanes).filter(|_| time + replay.length <= now) {
            let row = time % replay.steps / replay.period;
            let leaf = row * lanes + lane % lanes;
            let index = lane / lanes * (replay.steps / replay.period * lanes) + leaf;
            all.push((index as i32, lane, time));
        }
    }
    all
}

/// Draws windows, gathers them, and compares each window with the written steps.
fn check(windows: &Windows, log: &RolloutLog, rollouts: usize, starts: bool, random: &mut Random) {
    let HostReplay { length, gradient_steps, batch, .. } = windows.replay;
    let whole = whole(&windows.replay, rollouts);
    if whole.is_empty() {
        return;
    }
    let per_learner = gradient_steps * batch;
    let drawn: Vec<(i32, usize, usize)> =
        (0..LEARNERS * per_learner).map(|_| whole[random.below(whole.len())]).collect();
    let indices = drawn.iter().map(|(index, ..)| *index).collect();
    let request = Request { rollouts: rollouts as u64, count: 2, indices };
    for learner in 0..LEARNERS {
        let mut arrays = windows.layout.arrays(&windows.replay);
        windows.gather(log, &request, learner, &mut arrays).expect("they are there");
        for (at, &(_, lane, time)) in drawn[learner * per_learner..][..2 * batch].iter().enumerate()
        {
            let (step, place) = (at / batch, at % batch);
            for row in 0..length {
                let (one, other, _) = leaves(number(lane, time + row));
                let element = (step * length + row) * batch + place;
                assert_eq!(arrays[0][element * 4..][..4], one, "lane {lane}, time {time} + {row}");
                assert_eq!(
                    arrays[1][element * 3..][..3],
                    other,
                    "lane {lane}, time {time} + {row}"
                );
            }
            if starts {
                assert_eq!(arrays[2][at], leaves(number(lane, time)).2, "lane {lane}, time {time}");
            }
        }
        let untouched = &arrays[0][2 * length * batch * 4..];
        assert!(untouched.iter().all(|byte| *byte == 0), "no more than was asked for");
    }
}

fn cases() -> [(usize, usize, bool); 4] {
    [(1, 1, false), (3, 1, false), (7, 2, false), (10, 4, true)]
}

/// The windows of an iteration are gathered up to one iteration after their draw.
#[test]
fn windows_are_the_steps_that_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::from_state(3);
    for (length, period, starts) in cases() {
        let replay = replay(length, period);
        let layout = Layout::new(&replay, &shard(starts), THREADS, LEARNERS);
        let mut log = RolloutLog::new(folder.path(), layout.rollout_bytes(), replay.kept(&layout));
        let windows = Windows { replay, layout };
        for rollouts in 1..40 {
            log.announces = rollouts % 2 == 0;
            append(&mut log, &windows.layout, starts);
            check(&windows, &log, rollouts, starts, &mut random);
            check(&windows, &log, rollouts - 1, starts, &mut random);
        }
        assert!(log.parts().len() as u64 <= log.written().min(6));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file has a name");
}

/// A log with several rollouts in a segment, after `rollouts` rollouts, and its windows.
fn long(folder: &Path, rollouts: usize) -> (RolloutLog, Windows) {
    let replay = HostReplay { steps: 160, ..replay(3, 1) };
    let layout = Layout::new(&replay, &shard(false), THREADS, LEARNERS);
    let mut log = RolloutLog::new(folder, layout.rollout_bytes(), replay.kept(&layout));
    (0..rollouts).for_each(|_| append(&mut log, &layout, false));
    (log, Windows { replay, layout })
}

/// A log resumes from the parts of a checkpoint, which stay unchanged, and the original log
/// continues as well.
#[test]
fn a_log_goes_on_from_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::from_state(5);
    for rollouts in [0, 1, 5, 10, 41, 73] {
        let (mut log, windows) = long(folder.path(), rollouts);
        let per_segment = log.per_segment();
        assert_eq!(per_segment, 5);
        let parts = log.parts();
        let hashes = |parts: &[(u64, FileSource)]| -> Vec<String> {
            parts.iter().map(|(_, part)| part.found_sha256().unwrap()).collect()
        };
        let before = hashes(&parts);
        let said: Vec<&str> = parts.iter().map(|(_, part)| part.sha256()).collect();
        assert_eq!(before, said);
        (0..7).for_each(|_| append(&mut log, &windows.layout, false));
        let (mut again, _) = long(folder.path(), 3);
        let borrowed: Vec<_> = parts.iter().map(|(number, part)| (*number, part)).collect();
        again.restore((rollouts as u64, per_segment), &borrowed).unwrap();
        check(&windows, &again, rollouts, false, &mut random);
        (0..7).for_each(|_| append(&mut again, &windows.layout, false));
        check(&windows, &again, rollouts + 7, false, &mut random);
        check(&windows, &log, rollouts + 7, false, &mut random);
        let hashed = |log: &RolloutLog| {
            let parts = log.parts().into_iter();
            parts.map(|(number, part)| (number, part.sha256().to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(hashed(&again), hashed(&log));
        assert_eq!(hashes(&parts), before);
    }
}

#[test]
fn parts_that_do_not_fit_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = long(folder.path(), 73);
    let parts = log.parts();
    let all: Vec<_> = parts.iter().map(|(number, part)| (*number, part)).collect();
    let error = |written: u64, parts: &[(u64, &FileSource)]| {
        let (mut log, _) = long(folder.path(), 0);
        log.restore((written, 5), parts).expect_err("they do not fit").to_string()
    };
    assert!(error(73, &all[1..]).contains("segment"), "the first is missing");
    assert!(error(73, &all[..all.len() - 1]).contains("segments"), "the last is missing");
    assert!(error(72, &all).contains("segment 14 of the replay has"), "of another moment");
    let file = Arc::new(File::open("/dev/null").unwrap());
    let cut = FileSource::new(file, 3, String::new());
    let mut wrong = all.clone();
    wrong[0].1 = &cut;
    assert!(error(73, &wrong).contains("has 3 bytes"), "cut");
}

#[test]
fn what_is_forgotten_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = long(folder.path(), 73);
    let mut byte = [0];
    for rollout in [0, 29, 73, 1000] {
        assert!(
            matches!(log.read(rollout, 0, &mut byte), Err(ReplayError::Misfit(_))),
            "{rollout}"
        );
    }
    log.read(73 - 41, 0, &mut byte).unwrap();
    log.read(72, 0, &mut byte).unwrap();
}

#[test]
fn a_disk_that_is_too_small_is_an_error_with_bytes() {
    let folder = tempfile::tempdir().unwrap();
    check_space(folder.path(), 1).unwrap();
    let error = check_space(folder.path(), 1 << 62).unwrap_err().to_string();
    assert!(error.starts_with("the replay takes 4611686018427387904 bytes (4294967296.00 GiB)"));
    assert!(error.contains("are free there") && error.contains("capacity"), "{error}");
    let none = check_space(&folder.path().join("none"), 1).unwrap_err().to_string();
    assert!(none.contains("none`: No such file"), "{none}");
    // A million steps of 28 kB in rollouts of 64 lanes and 4 steps: segments are an eighth of a percent to a percent.
    let (rollout, kept) = (64 * 4 * 28_240, 1_000_000 / 256 + 2);
    let taken = bytes(rollout, kept) as f64 / (rollout * kept) as f64;
    assert!((1.0..1.02).contains(&taken), "{taken}");
}
