//! Positions in sorted vectors, and functions built on them: interpolation and quantiles.

use super::create::{arange, full, zeros};
use super::{IntoTensor, Tensor, fail, poison, resolve_axis, select};
use crate::control::fori_loop;
use crate::trace::scope;
use podracer_compiler::DType;

/// The position that [`Tensor::searchsorted`] gives among elements that equal the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before all equal elements: the number of elements that are less.
    Left,
    /// Behind all equal elements: the number of elements that are less or equal.
    Right,
}

/// The greatest length of vectors for finding quantiles by counting: for each element, the elements
/// before it. XLA's sort of 128 errors took 7 % of a gradient step of DQN on CartPole, on a CPU.
const COUNTED: i32 = 256;

/// Sorted vectors and quantiles.
impl Tensor {
    /// The positions, in i32, that keep this sorted vector `[n]` sorted when `values` are inserted:
    /// 0 to n, with the shape of `values`. NaN counts as greatest, as in [`Tensor::sort`]. A binary
    /// search.
    #[track_caller]
    pub fn searchsorted(self, values: impl IntoTensor, side: Side) -> Tensor {
        let _scope = scope("searchsorted");
        let ty = self.ty();
        let [sorted, values] =
            super::literal_pair("searchsorted", super::Operand::Tensor(self), values.operand());
        let positions = zeros(DType::I32, values.shape());
        let values_ty = values.ty();
        if ty.rank() != 1 || values_ty.dtype != ty.dtype {
            let message = format!(
                "expected a sorted vector and values of one dtype, got {ty} and {values_ty}"
            );
            return fail("searchsorted", message, &[self, values], positions.ty());
        }
        let n = ty.shape[0];
        if n == 0 {
            return positions;
        }
        // NaN comes after all numbers and equals itself.
        let less = |a: Tensor, b: Tensor| {
            if ty.dtype.is_float() { a.lt(b) | (b.is_nan() & !a.is_nan()) } else { a.lt(b) }
        };
        // Each step halves the positions that remain, n + 1 at first.
        let steps = usize::BITS - n.leading_zeros();
        let ends = (positions, full(values_ty.shape, n as i32));
        let (low, _) = fori_loop(0..steps as usize, ends, |_, (low, high)| {
            let middle = (low + high) / 2;
            let element = sorted.take(middle, 0);
            let behind = match side {
                Side::Left => less(element, values),
                Side::Right => !less(values, element),
            };
            let open = low.lt(high);
            (select(open & behind, middle + 1, low), select(open & !behind, middle, high))
        });
        low
    }

    /// Linear interpolation at `self` between the points `(points, values)`, both `[n]`, with
    /// `points` rising. Beyond the points it gives the first or the last value, and NaN at NaN. The
    /// result has the shape of `self`. NumPy's `interp`.
    #[track_caller]
    pub fn interp(self, points: impl IntoTensor, values: impl IntoTensor) -> Tensor {
        let _scope = scope("interp");
        let ty = self.ty();
        let [_, points, values] = super::literal::same_dtype(
            "interp",
            vec![super::Operand::Tensor(self), points.operand(), values.operand()],
        )[..] else {
            return self;
        };
        let (points_ty, values_ty) = (points.ty(), values.ty());
        let empty = points_ty.shape.first().is_none_or(|&n| n == 0);
        if points_ty.rank() != 1 || points_ty != values_ty || !ty.dtype.is_float() || empty {
            let message = format!(
                "expected floats, with points and values of one type `[n]`, got {ty}, {points_ty} and {values_ty}"
            );
            return fail("interp", message, &[self, points, values], ty);
        }
        let last = points_ty.shape[0] as i32 - 1;
        let above = points.searchsorted(self, Side::Right).clamp(last.min(1), last);
        let below = (above - 1).maximum(0);
        let (x0, y0) = (points.take(below, 0), values.take(below, 0));
        let width = points.take(above, 0) - x0;
        let rise = values.take(above, 0) - y0;
        let same = width.eq(0);
        // The difference of equal infinities is NaN.
        let flat = same | (rise.is_nan() & y0.is_inf() & y0.eq(values.take(above, 0)));
        let between = select(flat, y0, y0 + (self - x0) / select(same, 1, width) * rise);
        let from_below = select(self.lt(points.index(0)), values.index(0), between);
        let inside = select(self.gt(points.index(-1)), values.index(-1), from_below);
        select(self.is_nan(), self, inside)
    }

    /// The quantiles `q`, in [0, 1], of the whole tensor, with linear interpolation between the two
    /// nearest elements. The result has the shape of `q`, and is NaN if an element is NaN.
    #[track_caller]
    pub fn quantile(self, q: impl IntoTensor) -> Tensor {
        self.flatten().quantile_axis(q, 0)
    }

    /// The quantiles `q`, in [0, 1], along an axis, which disappears; the axes of `q` come first. See
    /// [`Tensor::quantile`].
    #[track_caller]
    pub fn quantile_axis(self, q: impl IntoTensor, axis: isize) -> Tensor {
        let _scope = scope("quantile");
        let ty = self.ty();
        let Some(axis) = resolve_axis("quantile", axis, ty.rank()) else {
            return poison(ty);
        };
        let [_, q] = super::literal_pair("quantile", super::Operand::Tensor(self), q.operand());
        if !ty.dtype.is_float() || ty.shape[axis] == 0 {
            let message = format!("expected floats, at least one along axis {axis}, got {ty}");
            return fail("quantile", message, &[self], ty);
        }
        // In f16 the position would be exact only below 2048.
        let (values, q) = (self.move_axis(axis as isize, 0).accumulator(), q.accumulator());
        let last = ty.shape[axis] as i32 - 1;
        let place = q * last;
        let (low, high) = (place.floor(), place.ceil());
        // One number for each quantile, with the axes that stay.
        let ones = vec![1; ty.rank() - 1];
        let share = (place - low).reshape([&q.shape()[..], &ones].concat());
        let smallest = |place: Tensor| place.clamp(0, last).astype(DType::I32);
        let (below, above) = if ty.rank() == 1 && last < COUNTED {
            let ranks = values.ranks();
            let at = |place: Tensor| {
                let found = ranks.eq(smallest(place).expand_dims(-1));
                select(found, values, 0).sum_axis(-1)
            };
            (at(low), at(high))
        } else {
            let sorted = values.sort(0);
            let at = |place| sorted.take(smallest(place), 0);
            (at(low), at(high))
        };
        // At a whole position, an infinite neighbour times 0 would be NaN.
        let value = select(share.eq(0), below, below * (1 - share) + above * share);
        select(values.is_nan().any_axis(0), f64::NAN, value).astype(ty.dtype)
    }

    /// The position of each element of a vector `[n]` in ascending order, from 0. Equal elements
    /// keep their order. i32 `[n]`
    fn ranks(self) -> Tensor {
        let index = arange(self.elements());
        let earlier = index.lt(index.expand_dims(1));
        let before = self.lt(self.expand_dims(1)) | (self.eq(self.expand_dims(1)) & earlier);
        before.astype(DType::I32).sum_axis(1)
    }

    /// The median over all elements; see [`Tensor::quantile`].
    #[track_caller]
    pub fn median(self) -> Tensor {
        self.quantile(0.5)
    }

    /// The median along an axis, which disappears.
    #[track_caller]
    pub fn median_axis(self, axis: isize) -> Tensor {
        self.quantile_axis(0.5, axis)
    }

    /// The differences of neighbours along an axis, which becomes shorter by 1. For bools, whether
    /// they differ.
    #[track_caller]
    pub fn diff(self, axis: isize) -> Tensor {
        let extent = self.dim(axis);
        let later = self.slice_axis(axis, extent.min(1)..extent);
        let earlier = self.slice_axis(axis, 0..extent.saturating_sub(1));
        if self.dtype() == DType::Bool { later.ne(earlier) } else { later - earlier }
    }
}
