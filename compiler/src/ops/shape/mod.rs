//! Ops that move elements without computing with them: broadcasting, reshaping, permuting, joining, padding, reversing.

mod broadcast;
mod concatenate;
mod pad;
mod reshape;
mod reverse;
mod transpose;

pub use broadcast::BroadcastInDim;
pub use concatenate::Concatenate;
pub use pad::Pad;
pub use reshape::Reshape;
pub use reverse::Reverse;
pub use transpose::Transpose;

use super::TypeError;

/// The numbers of the axes after a batch axis is inserted in front.
pub(super) fn shifted(axes: &[usize]) -> Vec<usize> {
    axes.iter().map(|&axis| axis + 1).collect()
}

/// The numbers of the axes after a batch axis is inserted in front, with the batch axis as the
/// first.
pub(super) fn shifted_with_batch(axes: &[usize]) -> Vec<usize> {
    prepended(0, &shifted(axes))
}

/// A list with one more element in front.
pub(super) fn prepended<T: Clone>(first: T, rest: &[T]) -> Vec<T> {
    let mut all = Vec::with_capacity(rest.len() + 1);
    all.push(first);
    all.extend_from_slice(rest);
    all
}

/// Checks that `axes`, which the attribute `name` holds, are axes of a tensor of this rank and that none repeats.
pub(super) fn check_axes(name: &str, axes: &[usize], rank: usize) -> Result<(), TypeError> {
    if let Some(axis) = axes.iter().find(|&&axis| axis >= rank) {
        refuse!("{name} {axes:?} has {axis}, which is not an axis of a tensor of rank {rank}");
    }
    match (1..axes.len()).find(|&i| axes[..i].contains(&axes[i])) {
        Some(i) => Err(TypeError::new(format!("{name} {axes:?} has axis {} twice", axes[i]))),
        None => Ok(()),
    }
}
