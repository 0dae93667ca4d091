//! Reports of the calls of a run with threads: times by activity, and the series of its iterations.

use std::time::Duration;

use anyhow::{Result, bail};
use podracer_dsl::Report;
use podracer_runtime::{
    Activity, Checkpoint, Episode, HostLoopSettings, IterationReport, ReplayMemory, ThreadTimes,
    World,
};

use super::recent::RecentReturns;
use crate::training::{CallMetrics, FinishedEpisodes};

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

/// True for the name of an activity in metrics.
#[cfg(feature = "plots")]
pub(crate) fn is_activity(name: &str) -> bool {
    NAMES.iter().any(|(_, known)| *known == name)
}

/// The calls of a run with threads: their length, and the data carried between them.
pub(super) struct Calls {
    /// Iterations of a call.
    pub(super) iterations: usize,
    pub(super) recent: RecentReturns,
    steps_per_iteration: u64,
    frames_per_step: usize,
    /// True if episodes have successes.
    succeed: bool,
    /// Times of the threads at the end of the last call; empty before the first.
    times: Vec<ThreadTimes>,
    /// True in a process that follows another process; failed checks of its own programs are not
    /// reported.
    follows: bool,
}

impl Calls {
    /// The calls of a run with `lanes` lanes in each process, from a checkpoint or the beginning.
    /// The other arguments are the frames per step, and whether episodes have successes.
    pub(super) fn new(
        settings: &HostLoopSettings,
        lanes: usize,
        (frames_per_step, succeed): (usize, bool),
        world: Option<World>,
        from: Option<&Checkpoint>,
    ) -> Result<Self> {
        Ok(Calls {
            iterations: settings.iterations_per_call,
            recent: RecentReturns::restored(from)?,
            steps_per_iteration: (world.map_or(1, World::size) * lanes * settings.unroll) as u64,
            frames_per_step,
            succeed,
            times: Vec::new(),
            follows: world.is_some_and(|world| !world.is_first()),
        })
    }

    /// The time of each thread in this call. The threads' times so far are then updated.
    pub(super) fn spent(&mut self, times: Vec<ThreadTimes>) -> Vec<ThreadTimes> {
        let spent = since(&times, &self.times);
        self.times = times;
        spent
    }

    /// The metrics of a call that took `seconds` seconds. `names` has the names of the agent's
    /// metrics.
    pub(super) fn metrics(
        &mut self,
        reports: &[IterationReport],
        names: &[String],
        seconds: f64,
        mut per_call: Vec<(String, f64)>,
        counts: Vec<(&str, u64)>,
        mut note: String,
    ) -> Result<CallMetrics> {
        if self.follows {
            let mut said = reports.iter().flat_map(|report| &report.reports);
            if let Some(failed) = said.find(|report| report.is_check) {
                bail!("{failed}");
            }
        }
        let env_steps = self.steps_per_iteration * reports.len() as u64;
        if self.frames_per_step > 1 {
            let frames = (env_steps * self.frames_per_step as u64) as f64 / seconds;
            per_call.push(("frames_per_second".to_owned(), frames));
            note = format!("{frames:.0} frames/s; {note}");
        }
        let episodes = reports.iter().flat_map(|report| &report.episodes);
        Ok(CallMetrics {
            env_steps,
            iterations: reports.len() as u64,
            per_iteration: per_iteration(reports, names, self.succeed),
            recent: self.recent.with(episodes.map(|episode| FinishedEpisodes {
                episodes: 1,
                return_sum: f64::from(episode.episode_return),
            })),
            episodes: reports.iter().map(|report| report.episodes.len() as u64).sum(),
            per_call,
            counts: counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            reports: said(reports),
            note,
        })
    }
}

/// [`Training::spans_processes`](crate::training::Training::spans_processes) for a loop with
/// threads and the table `table`.
pub(super) fn spans_processes(settings: &HostLoopSettings, table: &str) -> Result<(), String> {
    match settings.replay {
        ReplayMemory::Device => Ok(()),
        ReplayMemory::Host => Err(format!(
            "{table}.replay = \"host\" keeps a replay in the run directory, which is one process's: {table}.replay = \"device\" divides \
             it over the learners of all"
        )),
    }
}

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

/// Time of each thread since an earlier reading, which is empty before the first reading.
fn since(now: &[ThreadTimes], earlier: &[ThreadTimes]) -> Vec<ThreadTimes> {
    let before = |thread| earlier.get(thread);
    let since = |(thread, now): (usize, &ThreadTimes)| {
        before(thread).map_or_else(|| now.clone(), |before| now.since(before))
    };
    now.iter().enumerate().map(since).collect()
}

/// The share of some activities in the time of some threads, in percent.
pub(super) fn percent(threads: &[ThreadTimes], activities: &[Activity]) -> f64 {
    let spent =
        threads.iter().flat_map(|thread| activities.iter().map(|&activity| thread.of(activity)));
    let part: Duration = spent.sum();
    let whole: Duration = threads.iter().map(ThreadTimes::total).sum();
    100.0 * part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// The mean of a number over the iterations of a call.
pub(super) fn mean(
    reports: &[IterationReport],
    number_of: impl Fn(&IterationReport) -> f64,
) -> f64 {
    reports.iter().map(number_of).sum::<f64>() / reports.len().max(1) as f64
}

/// Reports of the iterations of a call. If there are several iterations, each place begins with the
/// iteration.
fn said(reports: &[IterationReport]) -> Vec<Report> {
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

/// The share of each activity in each thread's time. The first `actors` threads act, and are called
/// `role`; other threads follow.
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

/// The agent's metrics, the episodes that ended in each iteration (NaN if none ended), lag and
/// queue.
fn per_iteration(
    reports: &[IterationReport],
    names: &[String],
    succeed: bool,
) -> Vec<(String, Vec<f32>)> {
    let series = |number_of: &dyn Fn(&IterationReport) -> f32| {
        reports.iter().map(number_of).collect::<Vec<f32>>()
    };
    let mut all: Vec<(String, Vec<f32>)> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.clone(), series(&|report| report.metrics[i])))
        .collect();
    let mut mean_of = |name: &str, number_of: fn(&Episode) -> Option<f32>| {
        let means = series(&|report| {
            let numbers: Vec<f32> = report.episodes.iter().filter_map(number_of).collect();
            numbers.iter().sum::<f32>() / numbers.len() as f32
        });
        all.push((name.to_owned(), means));
    };
    mean_of("episode_return", |episode| Some(episode.episode_return));
    mean_of("episode_length", |episode| Some(episode.length as f32));
    if succeed {
        mean_of("episode_success", |episode| episode.success);
    }
    all.push(("parameter_lag".to_owned(), series(&|report| report.lag as f32)));
    all.push(("queued".to_owned(), series(&|report| report.queued as f32)));
    all
}
