//! The data that a step has only for ended environments: one row for each of them.

use bytes::{Bytes, BytesMut};
use podracer_envs::host::WorkerStep;

use super::check::float;

/// The next observations to act on: the observations before any reset. For the environments that
/// ended they are the rows in `last`, of `size` bytes each.
pub(super) fn next_observation(step: &WorkerStep, last: &[u8], size: usize) -> Bytes {
    let mut next = BytesMut::from(&step.observation[..]);
    let rows = ended_rows(step, &mut next, size);
    for (row, last) in rows.zip(last.chunks_exact(size.max(1))) {
        row.copy_from_slice(last);
    }
    next.freeze()
}

/// The success of each environment: zero, except for ended episodes with a reported success. Empty if none is reported.
pub(super) fn successes(step: &WorkerStep, told: &[u8], ended: usize) -> Result<Bytes, String> {
    if told.is_empty() {
        return Ok(Bytes::new());
    }
    if told.len() != 4 * ended {
        return Err(format!(
            "`success` must have {} bytes for {ended} environments that ended, or none, and has {}",
            4 * ended,
            told.len()
        ));
    }
    if let Some(share) = told.chunks_exact(4).map(float).find(|share| !(0.0..=1.0).contains(share))
    {
        return Err(format!("`success` has {share}: expected a share from 0 to 1"));
    }
    let mut all = BytesMut::zeroed(4 * step.terminated.len());
    for (row, told) in ended_rows(step, &mut all, 4).zip(told.chunks_exact(4)) {
        row.copy_from_slice(told);
    }
    Ok(all.freeze())
}

/// The rows of the ended environments, with `size` elements each.
fn ended_rows<'a, T>(
    step: &WorkerStep,
    array: &'a mut [T],
    size: usize,
) -> impl Iterator<Item = &'a mut [T]> {
    let flags = step.terminated.iter().zip(&step.truncated).map(|(a, b)| a | b);
    let rows = array.chunks_exact_mut(size.max(1)).zip(flags);
    rows.filter(|(_, ended)| *ended != 0).map(|(row, _)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successes_are_of_the_environments_that_ended() {
        let step = WorkerStep {
            terminated: Bytes::from_static(&[0, 0, 1]),
            truncated: Bytes::from_static(&[1, 0, 0]),
            ..WorkerStep::default()
        };
        let read = |told: &[f32]| {
            let told: Vec<u8> = told.iter().flat_map(|share| share.to_le_bytes()).collect();
            successes(&step, &told, 2)
        };
        let all = [0.25_f32, 0.0, 1.0].iter().flat_map(|share| share.to_le_bytes()).collect();
        assert_eq!(read(&[]), Ok(Bytes::new()));
        assert_eq!(read(&[0.25, 1.0]), Ok(all));
        let one = "`success` must have 8 bytes for 2 environments that ended, or none, and has 4";
        let above = "`success` has 1.5: expected a share from 0 to 1";
        let nan = "`success` has NaN: expected a share from 0 to 1";
        for (told, problem) in [(&[0.0][..], one), (&[0.0, 1.5], above), (&[f32::NAN; 2], nan)] {
            assert_eq!(read(told), Err(problem.to_owned()));
        }
    }
}
