//! A check of the settings that both loops on the host have.

use super::error::SebulbaError;
use super::shape::SebulbaShape;
use crate::settings::HostLoopSettings;

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
