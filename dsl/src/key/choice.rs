//! Draws from given weights and given items.

use super::Key;
use crate::tensor::{Shape, Tensor, fail, resolve_axis};
use crate::trace::{called, called_opaquely};
use podracer_compiler::{DType, TensorType};

/// Draws from given weights and given items.
impl Key {
    /// Draws a position along the last axis with the probabilities of the logits' softmax: i32 of the shape without
    /// that axis. A logit of -inf is never drawn.
    #[track_caller]
    pub fn categorical(self, logits: Tensor) -> Tensor {
        self.categorical_axis(logits, -1)
    }

    /// [`Key::categorical`] along another axis.
    #[track_caller]
    pub fn categorical_axis(self, logits: Tensor, axis: isize) -> Tensor {
        self.positions(logits, Vec::new(), axis)
    }

    /// Several independent draws of [`Key::categorical`] from the same logits: i32 of shape `draws ++ logits` without
    /// the last axis.
    #[track_caller]
    pub fn categorical_n(self, logits: Tensor, draws: impl Shape) -> Tensor {
        self.positions(logits, draws.into_shape(), -1)
    }

    /// Positions along `axis` of `draws ++ logits`: the arg max of the logits plus noise.
    #[track_caller]
    fn positions(self, logits: Tensor, draws: Vec<usize>, axis: isize) -> Tensor {
        let _call = called_opaquely("categorical");
        let ty = logits.ty();
        if !ty.dtype.is_float() || ty.rank() == 0 {
            let message = format!("expected float logits with an axis of choices, got {ty}");
            return fail("categorical", message, &[logits], TensorType::scalar(DType::I32));
        }
        let shape = [&draws[..], &ty.shape[..]].concat();
        let noise = self.gumbel(shape).astype(ty.dtype);
        (noise + logits).argmax(axis)
    }

    /// Slices of `items` along the leading axis, drawn independently, all equally likely.
    #[track_caller]
    pub fn choice(self, items: Tensor, shape: impl Shape) -> Tensor {
        let _call = called("choice");
        let ty = items.ty();
        let shape = shape.into_shape();
        match ty.shape.first() {
            Some(&count) if count > 0 => items.take(self.randint(shape, 0..count), 0),
            _ => fail("choice", format!("expected at least one item, got {ty}"), &[items], ty),
        }
    }

    /// `count` different slices of `items` along the leading axis, in random order.
    #[track_caller]
    pub fn choice_distinct(self, items: Tensor, count: usize) -> Tensor {
        let ty = items.ty();
        match resolve_axis("choice_distinct", 0, ty.rank()) {
            Some(_) if count <= ty.shape[0] => self.shuffle(items, 0).slice_axis(0, 0..count),
            _ => fail(
                "choice_distinct",
                format!("expected at least {count} items, got {ty}"),
                &[items],
                ty,
            ),
        }
    }

    /// Slices of `items` along the leading axis, drawn independently with the probabilities
    /// `weights`: float `[n]`. The probabilities need not add up to 1.
    #[track_caller]
    pub fn choice_weighted(self, items: Tensor, weights: Tensor, shape: impl Shape) -> Tensor {
        let _call = called("choice_weighted");
        let (ty, weight_ty) = (items.ty(), weights.ty());
        let shape = shape.into_shape();
        if weight_ty.rank() != 1
            || ty.shape.first() != weight_ty.shape.first()
            || !weight_ty.dtype.is_float()
            || weight_ty.elements() == 0
        {
            let message =
                format!("expected one float weight for each item, got {weight_ty} for {ty}");
            return fail("choice_weighted", message, &[items, weights], ty);
        }
        let cumulative = weights.cumsum(0);
        let point = cumulative.index(-1) * (1.0 - self.uniform_of(weight_ty.dtype, &shape));
        // The first position with a cumulative weight of at least the point.
        let below = cumulative.lt(point.expand_dims(-1));
        let position = below.astype(DType::I32).sum_axis(-1);
        items.take(position, 0)
    }

    /// `count` different slices of `items` along the leading axis, drawn one after another with the
    /// probabilities `weights`.
    #[track_caller]
    pub fn choice_weighted_distinct(self, items: Tensor, weights: Tensor, count: usize) -> Tensor {
        let _call = called("choice_weighted_distinct");
        let (ty, weight_ty) = (items.ty(), weights.ty());
        if weight_ty.rank() != 1
            || ty.shape.first() != weight_ty.shape.first()
            || weight_ty.dtype != DType::F32
            || count > weight_ty.elements()
        {
            let message = format!(
                "expected one f32 weight for each item and at least {count} of them, got {weight_ty} for {ty}"
            );
            return fail("choice_weighted_distinct", message, &[items, weights], ty);
        }
        let noise = self.gumbel(&weight_ty.shape) + weights.log();
        let (_, positions) = noise.top_k(count);
        items.take(positions, 0)
    }
}
