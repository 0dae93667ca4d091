//! What the calls of a run with threads report: times by activity, and the series of its iterations.

use std::time::Duration;

use podracer_dsl::Report;
use podracer_runtime::{Activity, IterationReport, ThreadTimes};

/// Activities of threads, with their names in metrics.
const NAMES: [(Activity, &str); 15] = [
    (Activity::Environment, "environment"),
    (Activity::WaitingForWorkers, "waiting_for_workers"),
    (Activity::Inference, "inference"),
    (Activity::Sending, "sending"),
    (Activity::WaitingForParameters, "waiting_for_parameters"),
    (Activity::WaitingForRoom, "waiting_for_room"),
    (Activity::Iteration, "iteration"),
    (Activity::WaitingForTrajectory, "waiting_for_trajectory"),
    (Activity::WaitingForWindows, "waiting_for_windows"),
    (Activity::Storing, "storing"),
    (Activity::Gathering, "gathering"),
    (Activity::Publishing, "publishing"),
    (Activity::WaitingForUnrolls, "waiting_for_unrolls"),
    (Activity::Idle, "idle"),
    (Activity::Host, "host"),
];

/// Seconds of each thread by activity.
pub(super) fn seconds(times: &[ThreadTimes]) -> Vec<(String, f64)> {
    let mut seconds = Vec::new();
    for thread in times {
        for (activity, name) in NAMES {
            let spent = thread.of(activity).as_secs_f64();
            if spent > 0.0 {
                seconds.push((format!("{}: {name}", thread.thread), spent));
            }
        }
    }
    seconds
}

/// Time of each thread since an earlier reading, which is empty before the first.
pub(super) fn since(now: &[ThreadTimes], earlier: &[ThreadTimes]) -> Vec<ThreadTimes> {
    let before = |thread| earlier.get(thread);
    let since = |(thread, now): (usize, &ThreadTimes)| {
        before(thread).map_or_else(|| now.clone(), |before| now.since(before))
    };
    now.iter().enumerate().map(since).collect()
}

/// The share of the time of some threads that some activities took, in percent.
pub(super) fn percent(threads: &[ThreadTimes], activities: &[Activity]) -> f64 {
    let spent =
        threads.iter().flat_map(|thread| activities.iter().map(|&activity| thread.of(activity)));
    let part: Duration = spent.sum();
    let whole: Duration = threads.iter().map(ThreadTimes::total).sum();
    100.0 * part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Reports of the iterations of a call. Where there are several, places begin with the iteration.
pub(super) fn said(reports: &[IterationReport]) -> Vec<Report> {
    let several = reports.len() > 1;
    let said = reports.iter().enumerate().flat_map(|(iteration, report)| {
        report.reports.iter().cloned().map(move |mut said| {
            if several {
                said.at.insert(0, iteration);
            }
            said
        })
    });
    said.collect()
}

/// The share of each thread's time that each activity took. So many threads act, and are called `role`; after them come others.
pub(super) fn shares(
    spent: &[ThreadTimes],
    (role, acting): (&str, usize),
    others: &[&str],
) -> Vec<(String, f64)> {
    let mut shares = Vec::new();
    for (index, thread) in spent.iter().enumerate() {
        let total = thread.total().as_secs_f64().max(f64::MIN_POSITIVE);
        let who = match index.checked_sub(acting) {
            None => format!("{role}_{index}"),
            Some(other) => others.get(other).map_or("other", |name| name).to_owned(),
        };
        for (activity, name) in NAMES {
            let share = thread.of(activity).as_secs_f64() / total;
            if share > 0.0 {
                shares.push((format!("{who}/{name}"), share));
            }
        }
    }
    shares
}

/// The agent's metrics, the episodes that ended in each iteration (NaN where none did), lag and queue.
pub(super) fn per_iteration(
    reports: &[IterationReport],
    names: &[String],
) -> Vec<(String, Vec<f32>)> {
    let series = |number_of: &dyn Fn(&IterationReport) -> f32| {
        reports.iter().map(number_of).collect::<Vec<f32>>()
    };
    let mut all: Vec<(String, Vec<f32>)> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.clone(), series(&|report| report.metrics[i])))
        .collect();
    let mean = |report: &IterationReport, number_of: &dyn Fn(&podracer_runtime::Episode) -> f32| {
        report.episodes.iter().map(number_of).sum::<f32>() / report.episodes.len() as f32
    };
    let returns = series(&|report| mean(report, &|episode| episode.episode_return));
    let lengths = series(&|report| mean(report, &|episode| episode.length as f32));
    all.push(("episode_return".to_owned(), returns));
    all.push(("episode_length".to_owned(), lengths));
    all.push(("parameter_lag".to_owned(), series(&|report| report.lag as f32)));
    all.push(("queued".to_owned(), series(&|report| report.queued as f32)));
    all
}
