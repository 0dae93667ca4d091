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
pub(super) fn successes(step: &WorkerStep, sent: &[u8], ended: usize) -> Result<Bytes, String> {
    if sent.is_empty() {
        return Ok(Bytes::new());
    }
    if sent.len() != 4 * ended {
        return Err(format!(
            "`success` must have {} bytes for {ended} environments that ended, or none, and has {}",
            4 * ended,
            sent.len()
        ));
    }
    if let Some(share) = sent.chunks_exact(4).map(float).find(|share| !(0.0..=1.0).contains(share))
    {
        return Err(format!("`success` has {share}: expected a share from 0 to 1"));
    }
    let mut all = BytesMut::zeroed(4 * step.terminated.len());
    for (row, sent) in ended_rows(step, &mut all, 4).zip(sent.chunks_exact(4)) {
        row.copy_from_slice(sent);
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
    fn successes_belong_to_finished_episodes() {
        let step = WorkerStep {
            terminated: Bytes::from_static(&[0, 0, 1]),
            truncated: Bytes::from_static(&[1, 0, 0]),
            ..WorkerStep::default()
        };
        let read = |sent: &[f32]| {
            let sent: Vec<u8> = sent.iter().flat_map(|share| share.to_le_bytes()).collect();
            successes(&step, &sent, 2)
        };
        let all = [0.25_f32, 0.0, 1.0].iter().flat_map(|share| share.to_le_bytes()).collect();
        assert_eq!(read(&[]), Ok(Bytes::new()));
        assert_eq!(read(&[0.25, 1.0]), Ok(all));
        let one = "`success` must have 8 bytes for 2 environments that ended, or none, and has 4";
        let above = "`success` has 1.5: expected a share from 0 to 1";
        let nan = "`success` has NaN: expected a share from 0 to 1";
        for (sent, problem) in [(&[0.0][..], one), (&[0.0, 1.5], above), (&[f32::NAN; 2], nan)] {
            assert_eq!(read(sent), Err(problem.to_owned()));
        }
    }
}
