//! Systems without sampling.

use crate::{Memory, SamplerError};

pub(crate) fn supported() -> Result<(), SamplerError> {
    Err(SamplerError::System)
}

#[derive(Debug, Default)]
pub(crate) struct Stacks;

pub(crate) fn copy(
    _: u32,
    _: (&Memory, &mut Stacks),
    _: &mut Vec<u64>,
) -> Result<bool, SamplerError> {
    Err(SamplerError::System)
}
