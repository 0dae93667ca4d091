//! The outcomes of host environments' steps, on their way to a device.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{Buffer, Executable, RuntimeError};

/// Leaves of a [`StepOutcome`](podracer_envs::host::StepOutcome), by their order.
const OBSERVATION: usize = 0;
const TERMINATED: usize = 2;
const TRUNCATED: usize = 3;
const NEXT_OBSERVATION: usize = 4;

/// Uploads the `count` leaves of an outcome, which are arguments of a program from `first` on.
///
/// If environments truncate, the observations before any reset differ from the observations after
/// it only if an episode ended. In a step without an end they are not transferred a second time:
/// both arguments are one buffer, and `leaf` is not called for them.
pub(crate) fn upload<'a>(
    program: &Executable,
    first: usize,
    (count, truncates): (usize, bool),
    leaf: impl Fn(usize) -> Cow<'a, [u8]>,
) -> Result<Vec<Arc<Buffer>>, RuntimeError> {
    let mut uploaded: Vec<Arc<Buffer>> = Vec::with_capacity(count);
    let mut ended = false;
    for index in 0..count {
        if index == NEXT_OBSERVATION && truncates && !ended {
            uploaded.push(Arc::clone(&uploaded[OBSERVATION]));
            continue;
        }
        let bytes = leaf(index);
        let flags = matches!(index, TERMINATED | TRUNCATED);
        ended |= flags && bytes.iter().any(|&flag| flag != 0);
        uploaded.push(Arc::new(program.upload_bytes(0, first + index, &bytes)?));
    }
    Ok(uploaded)
}
