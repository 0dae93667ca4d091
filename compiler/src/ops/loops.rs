//! The rules that `scan` and `while` share: which carries are marked, and bodies that take
//! tangents.

use crate::ir::{Builder, Slope, Var};
use crate::transform::instantiate;
use crate::types::TensorType;
use std::ops::Range;

/// Repeats `attempt` with more and more marked carries until the marked carries at the output equal
/// those at the input. `marked` has an entry per operand of the body; `carries` are the positions
/// of the carries. The body has `results` results, the carries first. `attempt` takes the marks of
/// the operands and the marks to force on the results; it returns its product and the marks of the
/// results.
pub(super) fn fixpoint<T, E>(
    marked: &mut [bool],
    carries: Range<usize>,
    results: usize,
    mut attempt: impl FnMut(&[bool], &[bool]) -> Result<(T, Vec<bool>), E>,
) -> Result<(T, Vec<bool>), E> {
    loop {
        let mut force = vec![false; results];
        force[..carries.len()].copy_from_slice(&marked[carries.clone()]);
        let (product, results) = attempt(marked, &force)?;
        let carries = &mut marked[carries.clone()];
        if *carries == results[..carries.len()] {
            return Ok((product, results));
        }
        carries.copy_from_slice(&results[..carries.len()]);
    }
}

/// The tangents of the marked operands. A carry that gets its tangent only inside the loop begins
/// with zeros.
pub(super) fn marked_tangents(
    b: &mut Builder,
    marked: &[bool],
    inputs: &[Var],
    tangents: &[Slope],
    range: Range<usize>,
) -> Vec<Var> {
    range.filter(|&i| marked[i]).map(|i| instantiate(b, tangents[i], inputs[i])).collect()
}

/// Keeps the types with a set mark.
pub(super) fn kept(types: &[TensorType], marked: &[bool]) -> Vec<TensorType> {
    types.iter().zip(marked).filter(|(_, is)| **is).map(|(ty, _)| ty.clone()).collect()
}

/// A loop body under construction. Each group of operands is followed by the tangents of the marked
/// operands.
pub(super) struct WithTangents {
    /// The body, with its parameters.
    pub body: Builder,
    /// The parameters: the values in every group, then the tangents in every group.
    pub arguments: Vec<Var>,
    /// The loop's operands, group by group as the body takes them.
    pub operands: Vec<Var>,
    /// The number of operands up to the end of each group.
    pub ends: Vec<usize>,
}

impl WithTangents {
    /// The body for operands of these types in these groups.
    pub fn new<const N: usize>(
        b: &mut Builder,
        types: &[TensorType],
        groups: [Range<usize>; N],
        marked: &[bool],
        inputs: &[Var],
        tangents: &[Option<Var>],
    ) -> Self {
        let mut body = Builder::new();
        let (mut arguments, mut slopes) = (Vec::new(), Vec::new());
        let (mut operands, mut ends) = (Vec::new(), Vec::new());
        for group in groups {
            let types = &types[group.clone()];
            arguments.extend(body.add_params(types.to_vec()));
            slopes.extend(body.add_params(kept(types, &marked[group.clone()])));
            operands.extend_from_slice(&inputs[group.clone()]);
            operands.extend(marked_tangents(b, marked, inputs, tangents, group));
            ends.push(operands.len());
        }
        arguments.extend(slopes);
        WithTangents { body, arguments, operands, ends }
    }
}
