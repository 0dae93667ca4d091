//! A check of the settings that both loops with environments on the host share.

use super::error::SebulbaError;
use super::shape::SebulbaShape;
use crate::settings::HostLoopSettings;

/// Checks that the number of learner devices matches the programs.
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
