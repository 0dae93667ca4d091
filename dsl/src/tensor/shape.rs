//! Shapes: broadcasting, reshaping, moving and joining axes.

use super::{
    Axes, IntoTensor, Operand, Shape, Tensor, broadcast_pair, broadcast_to, emit1, fail,
    resolve_axes, resolve_axis,
};
use podracer_compiler::TensorType;
use podracer_compiler::ops;

/// Methods that change the shape.
impl Tensor {
    /// Reshapes: the same elements in row-major order under another shape.
    #[track_caller]
    pub fn reshape(self, shape: impl Shape) -> Tensor {
        let (ty, shape) = (self.ty(), shape.into_shape());
        if ty.shape[..] == *shape {
            return self;
        }
        let guess = ty.with_shape(&shape);
        if guess.elements() != ty.elements() {
            let message =
                format!("{ty} has {} elements, {guess} has {}", ty.elements(), guess.elements());
            return fail("reshape", message, &[self], guess);
        }
        emit1(ops::Reshape { shape }, &[self], guess)
    }

    /// Flattens to one axis with all elements, in row-major order.
    #[track_caller]
    pub fn flatten(self) -> Tensor {
        self.reshape([self.elements()])
    }

    /// Keeps the leading axis and flattens the others into one.
    #[track_caller]
    pub fn flatten_rest(self) -> Tensor {
        let shape = self.shape();
        match shape.split_first() {
            Some((&first, rest)) => self.reshape([first, rest.iter().product()]),
            None => self.reshape([1, 1]),
        }
    }

    /// Broadcasts to a shape by NumPy's rule.
    #[track_caller]
    pub fn broadcast_to(self, shape: impl Shape) -> Tensor {
        let (ty, shape) = (self.ty(), shape.into_shape());
        match broadcast_pair(&ty.shape, &shape) {
            Ok(both) if both == shape => broadcast_to(self, &shape),
            _ => {
                let guess = ty.with_shape(shape);
                fail("broadcast_to", format!("{ty} does not broadcast to {guess}"), &[self], guess)
            }
        }
    }

    /// Permutes the axes: axis `i` of the result is axis `permutation[i]` of `self`.
    #[track_caller]
    pub fn permute(self, permutation: impl Axes) -> Tensor {
        let (ty, axes) = (self.ty(), permutation.into_axes());
        let mut permutation = Vec::with_capacity(axes.len());
        for &axis in &axes {
            match resolve_axis("permute", axis, ty.rank()) {
                Some(axis) => permutation.push(axis),
                None => return super::poison(ty),
            }
        }
        let mut sorted = permutation.clone();
        sorted.sort_unstable();
        if sorted != (0..ty.rank()).collect::<Vec<_>>() {
            let message = format!("{axes:?} is not an order of the {} axes of {ty}", ty.rank());
            return fail("permute", message, &[self], ty);
        }
        if sorted == permutation {
            return self;
        }
        let guess =
            ty.with_shape(permutation.iter().map(|&axis| ty.shape[axis]).collect::<Vec<_>>());
        emit1(ops::Transpose { permutation }, &[self], guess)
    }

    /// Transposes: all axes in reverse order.
    #[track_caller]
    pub fn transpose(self) -> Tensor {
        self.permute((0..self.rank()).rev().collect::<Vec<usize>>())
    }

    /// Exchanges two axes.
    #[track_caller]
    pub fn swap_axes(self, a: isize, b: isize) -> Tensor {
        let rank = self.rank();
        let (Some(a), Some(b)) =
            (resolve_axis("swap_axes", a, rank), resolve_axis("swap_axes", b, rank))
        else {
            return super::poison(self.ty());
        };
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(a, b);
        self.permute(order)
    }

    /// Moves an axis to another place; the others keep their order.
    #[track_caller]
    pub fn move_axis(self, from: isize, to: isize) -> Tensor {
        let rank = self.rank();
        let (Some(from), Some(to)) =
            (resolve_axis("move_axis", from, rank), resolve_axis("move_axis", to, rank))
        else {
            return super::poison(self.ty());
        };
        let mut order: Vec<usize> = (0..rank).filter(|&axis| axis != from).collect();
        order.insert(to, from);
        self.permute(order)
    }

    /// Adds an axis of extent 1 that will stand at `axis` of the result.
    #[track_caller]
    pub fn expand_dims(self, axis: isize) -> Tensor {
        let mut shape = self.shape();
        match resolve_axis("expand_dims", axis, shape.len() + 1) {
            Some(axis) => {
                shape.insert(axis, 1);
                self.reshape(shape)
            }
            None => super::poison(self.ty()),
        }
    }

    /// Removes axes of extent 1.
    #[track_caller]
    pub fn squeeze(self, axes: impl Axes) -> Tensor {
        let ty = self.ty();
        let Some(axes) = resolve_axes("squeeze", axes.into_axes(), ty.rank()) else {
            return super::poison(ty);
        };
        let shape: Vec<usize> =
            (0..ty.rank()).filter(|axis| !axes.contains(axis)).map(|axis| ty.shape[axis]).collect();
        if let Some(&axis) = axes.iter().find(|&&axis| ty.shape[axis] != 1) {
            let message = format!("axis {axis} of {ty} has extent {}, not 1", ty.shape[axis]);
            return fail("squeeze", message, &[self], ty.with_shape(shape));
        }
        self.reshape(shape)
    }

    /// Reverses the order of the elements along axes.
    #[track_caller]
    pub fn reverse(self, axes: impl Axes) -> Tensor {
        let ty = self.ty();
        match resolve_axes("reverse", axes.into_axes(), ty.rank()) {
            Some(dimensions) => emit1(ops::Reverse { dimensions }, &[self], ty),
            None => super::poison(ty),
        }
    }

    /// Shifts the elements along an axis by `shift` places toward the back; elements that leave at
    /// the back come in at the front.
    #[track_caller]
    pub fn roll(self, shift: isize, axis: isize) -> Tensor {
        let ty = self.ty();
        let Some(axis) = resolve_axis("roll", axis, ty.rank()) else {
            return super::poison(ty);
        };
        let extent = ty.shape[axis];
        if extent == 0 {
            return self;
        }
        let cut = extent - shift.rem_euclid(extent as isize) as usize;
        if cut == extent {
            return self;
        }
        concatenate(
            &[self.slice_axis(axis as isize, cut..extent), self.slice_axis(axis as isize, 0..cut)],
            axis as isize,
        )
    }

    /// Pads with `value`: `padding[axis]` is the number of elements to add before and after. Negative numbers cut.
    #[track_caller]
    pub fn pad(self, padding: &[(i64, i64)], value: impl IntoTensor) -> Tensor {
        let ty = self.ty();
        if padding.len() != ty.rank() {
            let message = format!(
                "expected {} pairs, one for each axis of {ty}, got {}",
                ty.rank(),
                padding.len()
            );
            return fail("pad", message, &[self], ty);
        }
        let tensors =
            super::literal::same_dtype("pad", vec![Operand::Tensor(self), value.operand()]);
        let shape: Vec<usize> = ty
            .shape
            .iter()
            .zip(padding)
            .map(|(&n, &(low, high))| (n as i64 + low + high).max(0) as usize)
            .collect();
        let (low, high) = padding.iter().copied().unzip();
        emit1(ops::Pad { low, high, interior: vec![0; ty.rank()] }, &tensors, ty.with_shape(shape))
    }

    /// Splits into `count` equal pieces along an axis.
    #[track_caller]
    pub fn split(self, count: usize, axis: isize) -> Vec<Tensor> {
        let ty = self.ty();
        let Some(axis) = resolve_axis("split", axis, ty.rank()) else {
            return vec![super::poison(ty); count];
        };
        let extent = ty.shape[axis];
        if count == 0 || !extent.is_multiple_of(count) {
            let message =
                format!("axis {axis} of {ty} has extent {extent}, which is no multiple of {count}");
            return vec![fail("split", message, &[self], ty); count.max(1)];
        }
        self.split_sizes(&vec![extent / count; count], axis as isize)
    }

    /// Splits along an axis into pieces of these sizes, which must add up to its extent.
    #[track_caller]
    pub fn split_sizes(self, sizes: &[usize], axis: isize) -> Vec<Tensor> {
        let ty = self.ty();
        let Some(axis) = resolve_axis("split_sizes", axis, ty.rank()) else {
            return vec![super::poison(ty); sizes.len()];
        };
        let total: usize = sizes.iter().sum();
        if total != ty.shape[axis] {
            let message = format!(
                "sizes {sizes:?} add up to {total}, but axis {axis} of {ty} has extent {}",
                ty.shape[axis]
            );
            return vec![fail("split_sizes", message, &[self], ty); sizes.len()];
        }
        let (mut pieces, mut start) = (Vec::with_capacity(sizes.len()), 0);
        for &size in sizes {
            pieces.push(self.slice_axis(axis as isize, start..start + size));
            start += size;
        }
        pieces
    }

    /// Repeats each element `count` times in a row along an axis.
    #[track_caller]
    pub fn repeat(self, count: usize, axis: isize) -> Tensor {
        self.copies("repeat", count, axis, 1)
    }

    /// Repeats the whole tensor `count` times in a row along an axis.
    #[track_caller]
    pub fn tile(self, count: usize, axis: isize) -> Tensor {
        self.copies("tile", count, axis, 0)
    }

    /// Copies along a new axis, which is inserted `behind` places after `axis` and merged with it.
    #[track_caller]
    fn copies(self, op: &str, count: usize, axis: isize, behind: usize) -> Tensor {
        let ty = self.ty();
        let Some(axis) = resolve_axis(op, axis, ty.rank()) else {
            return super::poison(ty);
        };
        let mut wide = ty.shape.clone();
        wide.insert(axis + behind, count);
        let mut shape = ty.shape;
        shape[axis] *= count;
        self.expand_dims((axis + behind) as isize).broadcast_to(wide).reshape(shape)
    }
}

/// Joins tensors along an existing axis. At least one is required. Their other extents and their
/// dtypes are the same.
#[track_caller]
pub fn concatenate(tensors: &[Tensor], axis: isize) -> Tensor {
    let Some(&first) = tensors.first() else {
        return fail(
            "concatenate",
            "expected at least one tensor",
            &[],
            TensorType::new(podracer_compiler::DType::F32, [0]),
        );
    };
    let ty = first.ty();
    let Some(dimension) = resolve_axis("concatenate", axis, ty.rank()) else {
        return super::poison(ty);
    };
    if tensors.len() == 1 {
        return first;
    }
    let mut shape = ty.shape.clone();
    shape[dimension] =
        tensors.iter().map(|tensor| tensor.shape().get(dimension).copied().unwrap_or(0)).sum();
    emit1(ops::Concatenate { dimension }, tensors, ty.with_shape(shape))
}

/// Joins tensors of one type along a new axis, which stands at `axis` of the result.
#[track_caller]
pub fn stack(tensors: &[Tensor], axis: isize) -> Tensor {
    let types: Vec<TensorType> = tensors.iter().map(|tensor| tensor.ty()).collect();
    if let Some(i) = (1..types.len()).find(|&i| types[i] != types[0]) {
        let message = format!("expected tensors of one type, got {} and {}", types[0], types[i]);
        return fail("stack", message, tensors, types[0].stacked(types.len()));
    }
    let mut expanded = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        expanded.push(tensor.expand_dims(axis));
    }
    match tensors.first() {
        Some(first) => match resolve_axis("stack", axis, first.rank() + 1) {
            Some(axis) => concatenate(&expanded, axis as isize),
            None => super::poison(first.ty()),
        },
        None => fail(
            "stack",
            "expected at least one tensor",
            &[],
            TensorType::new(podracer_compiler::DType::F32, [0]),
        ),
    }
}
