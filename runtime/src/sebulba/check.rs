//! Checks that the settings of a run fit its programs.

use podracer_envs::host::HostEnvironment;

use crate::learning::check::check_learners;
use crate::learning::error::SebulbaError;
use crate::learning::programs::SebulbaLoop;
use crate::settings::SebulbaSettings;

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
