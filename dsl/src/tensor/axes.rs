//! Shapes and axes as users write them, and NumPy's broadcasting rule.

use super::{Tensor, emit1, report};
use podracer_compiler::{Extents, ops};
use std::fmt;

/// A shape written as an array, a slice, a `Vec`, or one extent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a shape",
    label = "expected `[usize; N]`, `&[usize]`, `Vec<usize>` or one `usize`",
    note = "every extent is given, and none is -1: `x.flatten()` gives one axis with every element"
)]
pub trait Shape {
    /// The extent of each axis.
    fn into_shape(self) -> Vec<usize>;
}

impl<const N: usize> Shape for [usize; N] {
    fn into_shape(self) -> Vec<usize> {
        self.to_vec()
    }
}
impl<const N: usize> Shape for &[usize; N] {
    fn into_shape(self) -> Vec<usize> {
        self.to_vec()
    }
}
macro_rules! shapes {
    ($($type:ty),*) => {$(
        impl Shape for $type {
            fn into_shape(self) -> Vec<usize> {
                self.to_vec()
            }
        }
    )*};
}
shapes!(&[usize], Vec<usize>, &Vec<usize>, Extents, &Extents);
impl Shape for usize {
    fn into_shape(self) -> Vec<usize> {
        vec![self]
    }
}

/// Axes of a tensor: one number, or an array, slice or `Vec` of numbers. Negative numbers count
/// from the back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name axes",
    label = "expected an integer or an array of integers"
)]
pub trait Axes {
    /// The axes; negative numbers are kept as written.
    fn into_axes(self) -> Vec<isize>;
}

macro_rules! axes {
    ($($int:ty),*) => {$(
        impl Axes for $int {
            fn into_axes(self) -> Vec<isize> {
                vec![self as isize]
            }
        }
        impl<const N: usize> Axes for [$int; N] {
            fn into_axes(self) -> Vec<isize> {
                self.iter().map(|&axis| axis as isize).collect()
            }
        }
        impl Axes for &[$int] {
            fn into_axes(self) -> Vec<isize> {
                self.iter().map(|&axis| axis as isize).collect()
            }
        }
        impl Axes for Vec<$int> {
            fn into_axes(self) -> Vec<isize> {
                self.as_slice().into_axes()
            }
        }
    )*};
}
axes!(i32, isize, usize);

/// The axis counted from the front; an error and `None` if it is out of range.
#[track_caller]
pub(crate) fn resolve_axis(op: &str, axis: isize, rank: usize) -> Option<usize> {
    let resolved = if axis < 0 { axis + rank as isize } else { axis };
    if (0..rank as isize).contains(&resolved) {
        return Some(resolved as usize);
    }
    report(op, format!("axis {axis} is outside of rank {rank}"), &[]);
    None
}

/// The axes counted from the front, sorted; an error and `None` if one is out of range or named twice.
#[track_caller]
pub(crate) fn resolve_axes(op: &str, axes: Vec<isize>, rank: usize) -> Option<Vec<usize>> {
    let mut resolved = Vec::with_capacity(axes.len());
    for axis in axes {
        resolved.push(resolve_axis(op, axis, rank)?);
    }
    resolved.sort_unstable();
    if let Some(pair) = resolved.windows(2).find(|pair| pair[0] == pair[1]) {
        report(op, format!("axis {} is named twice", pair[0]), &[]);
        return None;
    }
    Some(resolved)
}

/// The first axis, from the back, along which two shapes do not broadcast.
pub(crate) struct Clash {
    axis: usize,
    left: usize,
    right: usize,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "axis {}: {} against {}", self.axis, self.left, self.right)
    }
}

/// The shape that both broadcast to by NumPy's rule: aligned at the back, 1 stretches.
pub(crate) fn broadcast_pair(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Clash> {
    let rank = a.len().max(b.len());
    let mut shape = vec![1; rank];
    for axis in (0..rank).rev() {
        let extent = |s: &[usize]| (axis + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
        let (left, right) = (extent(a), extent(b));
        shape[axis] = match (left, right) {
            (l, r) if l == r => l,
            (1, r) => r,
            (l, 1) => l,
            _ => return Err(Clash { axis, left, right }),
        };
    }
    Ok(shape)
}

/// Broadcasts `x` to the compatible shape `shape`. Returns `x` itself if it already has the shape.
#[track_caller]
pub(crate) fn broadcast_to(x: Tensor, shape: &[usize]) -> Tensor {
    let ty = x.ty();
    if ty.shape[..] == *shape {
        return x;
    }
    let offset = shape.len() - ty.rank();
    // Axes of extent 1 are dropped first: fewer ops are more readable and transpose to plain sums.
    let kept: Vec<usize> =
        (0..ty.rank()).filter(|&axis| ty.shape[axis] == shape[axis + offset]).collect();
    let x = if kept.len() == ty.rank() {
        x
    } else {
        x.reshape(kept.iter().map(|&axis| ty.shape[axis]).collect::<Vec<_>>())
    };
    let op = ops::BroadcastInDim {
        shape: shape.to_vec(),
        broadcast_dimensions: kept.iter().map(|axis| axis + offset).collect(),
    };
    emit1(op, &[x], ty.with_shape(shape))
}
