//! Checks that the settings of a run fit its programs.

use podracer_envs::host::HostEnvironment;

use super::error::SebulbaError;
use super::programs::{SebulbaLoop, SebulbaShape};
use crate::settings::{HostLoopSettings, SebulbaSettings};

/// Checks that devices, queue and environments fit the programs.
pub(super) fn check(
    programs: &SebulbaLoop,
    settings: &SebulbaSettings,
    environments: &[Box<dyn HostEnvironment>],
) -> Result<(), SebulbaError> {
    let shape = programs.shape;
    check_learners(shape, &settings.host)?;
    let wrong = |problem: String| Err(SebulbaError::Options(problem));
    if environments.len() != shape.threads {
        return wrong(format!(
            "the programs are for {} actor thread(s) and there are {} batches of environments",
            shape.threads,
            environments.len()
        ));
    }
    if settings.queue == 0 {
        return wrong("a queue needs room for at least one trajectory".to_owned());
    }
    let expected = &programs.environments;
    match environments.iter().position(|one| one.spec() != expected) {
        Some(thread) => wrong(format!(
            "the environments of actor thread {thread} are {:?} and the programs are for {expected:?}",
            environments[thread].spec()
        )),
        None => Ok(()),
    }
}

/// Checks that as many devices learn as the programs are for.
pub(crate) fn check_learners(
    shape: SebulbaShape,
    settings: &HostLoopSettings,
) -> Result<(), SebulbaError> {
    let named = settings.learning().len();
    if named == shape.learners {
        return Ok(());
    }
    Err(SebulbaError::Options(format!(
        "the programs are for {} learner device(s) and {named} are named",
        shape.learners
    )))
}
