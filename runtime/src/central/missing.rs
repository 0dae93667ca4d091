//! Warnings of an inference thread that waits because workers are missing.

use std::time::{Duration, Instant};

use super::lanes::Lanes;
use super::unrolls::Fillings;

/// Time without an inference after which a thread warns.
const FIRST: Duration = Duration::from_secs(10);
/// Time between two warnings.
const AGAIN: Duration = Duration::from_secs(60);

/// The warnings of a thread, at most one each [`AGAIN`].
pub(super) struct Missing {
    /// The time of the next warning, if there is no inference before.
    due: Instant,
}

impl Missing {
    pub(super) fn new() -> Self {
        Missing { due: Instant::now() + FIRST }
    }

    /// Warns of missing workers, if there was no inference for some time. `waits` is true if steps
    /// wait for room.
    pub(super) fn say(&mut self, thread: usize, lanes: &Lanes, fillings: &Fillings, waits: bool) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + AGAIN;
        if let Some(sentence) = sentence(lanes, fillings, waits) {
            tracing::warn!("inference thread {thread}: {sentence}");
        }
    }
}

/// The warning with the missing workers. `None` if none are missing.
fn sentence(lanes: &Lanes, fillings: &Fillings, waits: bool) -> Option<String> {
    let (all, taken) = (lanes.len(), lanes.taken());
    if taken == 0 {
        return Some(format!("no worker is there, and all {all} lanes wait for some"));
    }
    if !waits {
        return None;
    }
    let lacks = |lane: &usize| fillings.oldest_lacks(*lane);
    if let Some(worker) = (0..all).filter(lacks).find_map(|lane| lanes.late_of(lane)) {
        return Some(format!(
            "learning waits for worker {}, which does not step: this agent needs an unroll of every lane",
            worker.0
        ));
    }
    let free = || (0..all).filter(|&lane| !lanes.get(lane).is_taken());
    if !free().any(|lane| fillings.oldest_lacks(lane)) {
        return None;
    }
    Some(format!(
        "learning waits, since this agent needs an unroll of every lane and {} of {all} lanes have no worker: start one with {} \
         environments",
        free().count(),
        lanes.widest_gap()
    ))
}

#[cfg(test)]
mod tests {
    use podracer_envs::host::WorkerId;

    use super::*;
    use crate::central::lanes::Versions;

    #[test]
    fn lanes_without_a_worker_that_hold_up_learning_are_reported() {
        let mut lanes = Lanes::new(6, false);
        let (mut kept, now) = (Fillings::new(6, true, 1), Instant::now());
        let say = |lanes: &Lanes, kept: &Fillings, waits| sentence(lanes, kept, waits);
        let nobody = say(&lanes, &kept, false).expect("nobody is there");
        assert_eq!(nobody, "no worker is there, and all 6 lanes wait for some");
        for (worker, n) in [(0, 1), (1, 2), (2, 3)] {
            lanes.admit(WorkerId(worker), n, None, now).expect("there is room");
            assert!(lanes.stepped(WorkerId(worker), 0, now).is_ok());
        }
        (0..6).filter(|lane| *lane != 4).for_each(|lane| {
            kept.place(lane, Versions::default());
        });
        assert_eq!(say(&lanes, &kept, true), None, "the worker of lane 4 is slow");
        lanes.answered(WorkerId(2), now);
        assert_eq!(lanes.note_late(now + Duration::from_secs(1)), 1);
        let silent = say(&lanes, &kept, true).expect("lane 4 is missing");
        assert!(silent.contains("waits for worker 2, which does not step"), "{silent}");
        assert!(lanes.stepped(WorkerId(2), 1, now).is_ok());
        lanes.free(WorkerId(0));
        assert_eq!(say(&lanes, &kept, true), None, "lane 0 has done its part");
        lanes.free(WorkerId(2));
        assert_eq!(say(&lanes, &kept, false), None, "nobody waits");
        let held = say(&lanes, &kept, true).expect("lane 4 is missing");
        assert!(
            held.contains("4 of 6 lanes have no worker: start one with 3 environments"),
            "{held}"
        );
        let any = Fillings::new(6, false, 1);
        assert_eq!(say(&lanes, &any, true), None, "others take its place");
    }
}
