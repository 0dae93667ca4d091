//! Checks that the settings of a run with central inference fit its programs.

use podracer_envs::host::Workers;

use super::programs::CentralLoop;
use crate::learning::SebulbaError;
use crate::learning::check::check_learners;
use crate::settings::CentralSettings;

/// Checks that devices and workers fit the programs.
pub(super) fn check(
    programs: &CentralLoop,
    settings: &CentralSettings,
    workers: &[Box<dyn Workers>],
) -> Result<(), SebulbaError> {
    let shape = programs.learning.shape;
    let wrong = |problem: String| Err(SebulbaError::Options(problem));
    let acting = settings.host.acting().len();
    if acting != shape.threads || workers.len() != shape.threads {
        return wrong(format!(
            "the programs are for {} device(s) that act; {acting} are named, and there are workers for {}",
            shape.threads,
            workers.len()
        ));
    }
    check_learners(shape, &settings.host)?;
    if let (Some(milliseconds), None) = (settings.timeout_ms, settings.timeout()) {
        return wrong(format!("timeout_ms is {milliseconds} and must be a time: 0 or more"));
    }
    match settings.capacity {
        Some(capacity) if !(1..=programs.largest()).contains(&capacity) => wrong(format!(
            "a batch closes at {capacity} environments, and the programs are for 1 to {}",
            programs.largest()
        )),
        _ => Ok(()),
    }
}
