//! The present activity of every thread: where time is spent, and which threads wait for others.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// An activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Bookkeeping on the host between the other activities.
    Host,
    /// An actor: its environments step.
    Environment,
    /// An inference thread: the next steps of workers have not arrived.
    WaitingForWorkers,
    /// An actor: observations go to the device, the device acts, actions come back.
    Inference,
    /// An actor: a trajectory is split and sent to the learners.
    Sending,
    /// An actor: the parameters for its next steps are not published yet.
    WaitingForParameters,
    /// An actor: the queue to the learner is full.
    WaitingForRoom,
    /// The learner: the next trajectory is not available yet.
    WaitingForTrajectory,
    /// The learner: the windows of the replay on the host are not available yet.
    WaitingForWindows,
    /// The learner: the devices iteration.
    Iteration,
    /// The learner: parameters go to the actor devices.
    Publishing,
    /// The prefetch thread: no unrolls are complete.
    WaitingForUnrolls,
    /// The replay on the host: a rollout is written to the disk.
    Storing,
    /// The replay on the host: windows are read and go to the learner devices.
    Gathering,
    /// The learner: every requested iteration is done. The replay on the host: there is no request.
    Idle,
    /// The thread has ended.
    Ended,
}

impl Activity {
    const ALL: [Activity; 16] = [
        Activity::Host,
        Activity::Environment,
        Activity::WaitingForWorkers,
        Activity::Inference,
        Activity::Sending,
        Activity::WaitingForParameters,
        Activity::WaitingForRoom,
        Activity::WaitingForTrajectory,
        Activity::WaitingForWindows,
        Activity::Iteration,
        Activity::Publishing,
        Activity::WaitingForUnrolls,
        Activity::Storing,
        Activity::Gathering,
        Activity::Idle,
        Activity::Ended,
    ];

    /// A sentence without its subject; `about` is the number that [`ThreadStatus::begin`] was given.
    fn describe(self, about: u64) -> String {
        match self {
            Activity::Host => "is between two steps".to_owned(),
            Activity::Environment => "steps its environments".to_owned(),
            Activity::WaitingForWorkers => format!("waits for steps of {about} environments"),
            Activity::Inference => "waits for its device to act".to_owned(),
            Activity::Sending => "sends a trajectory".to_owned(),
            Activity::WaitingForParameters => {
                format!("waits for parameters {about} of the learner")
            }
            Activity::WaitingForRoom => {
                "waits for the learner to take a trajectory, its queue is full".to_owned()
            }
            Activity::WaitingForTrajectory => {
                format!("waits for a trajectory of actor thread {about}")
            }
            Activity::Iteration => format!("waits for its devices to do iteration {about}"),
            Activity::Publishing => format!("sends parameters {about} to the actor devices"),
            Activity::WaitingForWindows => "waits for windows of the replay".to_owned(),
            Activity::WaitingForUnrolls => "waits for complete unrolls".to_owned(),
            Activity::Storing => format!("writes rollout {about} to the disk"),
            Activity::Gathering => "brings windows to the learner devices".to_owned(),
            Activity::Idle => "has done all that was asked for".to_owned(),
            Activity::Ended => "has ended".to_owned(),
        }
    }
}

/// A thread's present activity, and the time that it has spent in each activity.
pub(crate) struct ThreadStatus {
    name: String,
    /// True if waiting for external workers or processes may take any time.
    open_ended: bool,
    now: Mutex<Current>,
}

struct Current {
    activity: Activity,
    about: u64,
    since: Instant,
    spent: [Duration; Activity::ALL.len()],
}

impl ThreadStatus {
    pub(crate) fn new(name: String) -> Self {
        ThreadStatus {
            name,
            open_ended: false,
            now: Mutex::new(Current {
                activity: Activity::Host,
                about: 0,
                since: Instant::now(),
                spent: [Duration::ZERO; Activity::ALL.len()],
            }),
        }
    }

    /// The status of a thread that may wait for external workers without limit. They are its own
    /// workers, or the workers of other processes' learners. Such a wait is no sign of a fault.
    pub(crate) fn open_ended(self) -> Self {
        ThreadStatus { open_ended: true, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Ends the present activity and begins another; `about` is a number that its description names.
    pub(crate) fn begin(&self, activity: Activity, about: u64) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let instant = Instant::now();
        let (before, spent) = (now.activity, instant - now.since);
        now.spent[before as usize] += spent;
        now.activity = activity;
        now.about = about;
        now.since = instant;
    }

    /// [`ThreadStatus::begin`], unless the thread is in this activity already.
    pub(crate) fn begin_if_new(&self, activity: Activity, about: u64) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.about = about;
        if now.activity != activity {
            drop(now);
            self.begin(activity, about);
        }
    }

    /// Start and description of the present activity; `None` for a thread that has ended.
    pub(crate) fn doing(&self) -> Option<(Instant, String)> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = format!(
            "{} {} (for {:.1} s)",
            self.name,
            now.activity.describe(now.about),
            now.since.elapsed().as_secs_f64()
        );
        (now.activity != Activity::Ended).then_some((now.since, doing))
    }

    /// True while the thread may wait for workers that must be started externally. A learner does
    /// so within an iteration, because it waits for the learners of other processes.
    pub(crate) fn waits_for_others(&self) -> bool {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        self.open_ended && matches!(now.activity, Activity::WaitingForWorkers | Activity::Iteration)
    }

    pub(crate) fn times(&self) -> ThreadTimes {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spent = now.spent;
        spent[now.activity as usize] += now.since.elapsed();
        ThreadTimes { thread: self.name.clone(), spent }
    }
}

/// The time that a thread has spent in each activity since it began.
#[derive(Clone, Debug)]
pub struct ThreadTimes {
    /// The thread's name.
    pub thread: String,
    spent: [Duration; Activity::ALL.len()],
}

impl ThreadTimes {
    /// The time spent in an activity.
    #[must_use]
    pub fn of(&self, activity: Activity) -> Duration {
        self.spent[activity as usize]
    }

    /// The time spent in all activities but [`Activity::Ended`].
    #[must_use]
    pub fn total(&self) -> Duration {
        let lives = Activity::ALL.into_iter().filter(|activity| *activity != Activity::Ended);
        lives.map(|activity| self.of(activity)).sum()
    }

    /// The time since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            thread: self.thread.clone(),
            spent: std::array::from_fn(|i| self.spent[i].saturating_sub(earlier.spent[i])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_spent_in_one_activity() {
        let outer = Instant::now();
        let status = ThreadStatus::new("actor thread 0".to_owned());
        status.begin(Activity::Environment, 0);
        let inner = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        status.begin(Activity::WaitingForParameters, 7);
        let (_, doing) = status.doing().unwrap();
        assert!(
            doing.starts_with("actor thread 0 waits for parameters 7 of the learner (for "),
            "{doing}"
        );
        let earlier = status.times();
        assert!(earlier.of(Activity::Environment) >= Duration::from_millis(20));
        let least = inner.elapsed();
        status.begin(Activity::Ended, 0);
        let most = outer.elapsed();
        assert!(status.doing().is_none());
        let times = status.times();
        assert_eq!(times.since(&earlier).of(Activity::Environment), Duration::ZERO);
        assert!(
            (least..=most).contains(&times.total()),
            "{least:?}, {:?}, {most:?}",
            times.total()
        );
    }

    #[test]
    fn all_lists_the_activities_in_order() {
        for (i, activity) in Activity::ALL.into_iter().enumerate() {
            assert_eq!(activity as usize, i);
        }
    }
}
