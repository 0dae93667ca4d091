//! Reports of programs from `check` and `debug_print`, read from the results that are their log.

use podracer_compiler::Array;
use podracer_dsl::Report;
use podracer_dsl::prelude::{Log, Spec};

use crate::{Buffer, RuntimeError};

/// Reads the log of one replica. A program without reports has no results for it, and nothing is
/// transferred.
///
/// # Errors
/// [`RuntimeError::Xla`] if the computation failed.
pub(crate) fn read_log(log: &Spec<Log>, leaves: &[Buffer]) -> Result<Vec<Report>, RuntimeError> {
    if leaves.is_empty() {
        return Ok(Vec::new());
    }
    let arrays = leaves.iter().map(|leaf| leaf.to_host());
    Ok(Log::read(log, &arrays.collect::<Result<Vec<Array>, RuntimeError>>()?))
}

/// Adds reports, with `place` in front of their own places. For a check that has failed before,
/// only the count grows.
pub(crate) fn add(all: &mut Vec<Report>, reports: Vec<Report>, place: &[usize]) {
    for mut report in reports {
        let same = |known: &&mut Report| known.is_check && known.loc == report.loc;
        if let Some(known) = all.iter_mut().find(same).filter(|_| report.is_check) {
            known.count += report.count;
            continue;
        }
        report.at.splice(0..0, place.iter().copied());
        all.push(report);
    }
}

#[cfg(test)]
mod tests {
    use podracer_dsl::Loc;

    use super::*;

    #[test]
    fn checks_are_counted_and_prints_are_kept() {
        let report = |is_check| Report {
            is_check,
            text: "text".to_owned(),
            loc: Loc::caller(),
            at: vec![7],
            count: 2,
        };
        let mut all = Vec::new();
        for step in 0..3 {
            add(&mut all, vec![report(true), report(false)], &[0, step]);
        }
        let printed: Vec<_> =
            all.iter().map(|one| (one.is_check, one.at.clone(), one.count)).collect();
        let print = |step| (false, vec![0, step, 7], 2);
        assert_eq!(printed, [(true, vec![0, 0, 7], 6), print(0), print(1), print(2)]);
    }
}
