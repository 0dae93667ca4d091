//! Rules that ops share verbatim: each macro expands to methods of an `impl Op`.

/// `vmap` of an op with one operand: an op of the same kind over the batch, made from the op and
/// the context.
macro_rules! batched_as {
    (|$op:ident, $cx:ident| $wide:expr) => {
        fn vmap(
            &self,
            b: &mut $crate::Builder,
            $cx: &$crate::transform::VmapContext,
            inputs: &[$crate::Var],
            _: &[bool],
        ) -> $crate::ir::Batched {
            let $op = self;
            vec![(b.emit1($wide, inputs), true)]
        }
    };
}

/// `jvp` of a linear op: the op applied to the tangent of its single operand. With `(all)`, it is
/// linear in all operands together, and the op is applied to their tangents; a missing tangent is
/// zeros.
macro_rules! linear_jvp {
    () => {
        $crate::ops::rules::linear_jvp! { |op, b, _inputs, tangents| tangents[0].map(|t| b.emit1(op.clone(), &[t])) }
    };
    (all) => {
        $crate::ops::rules::linear_jvp! { |op, b, inputs, tangents| {
            let operands: Vec<$crate::Var> = inputs
                .iter()
                .zip(tangents)
                .map(|(&x, t)| t.unwrap_or_else(|| b.full_like(x, 0.0)))
                .collect();
            Some(b.emit1(op.clone(), &operands))
        } }
    };
    (|$op:ident, $b:ident, $inputs:ident, $tangents:ident| $tangent:expr) => {
        fn jvp(
            &self,
            $b: &mut $crate::Builder,
            $inputs: &[$crate::Var],
            _: &[$crate::Var],
            $tangents: &[$crate::ir::Slope],
        ) -> $crate::Rule<$crate::ir::Slopes> {
            let $op = self;
            $crate::Rule::Some(vec![$tangent])
        }
    };
}

/// `jvp` of an op with one result that never has a tangent, such as an integer or a constant.
macro_rules! no_tangent {
    () => {
        fn jvp(
            &self,
            _: &mut $crate::Builder,
            _: &[$crate::Var],
            _: &[$crate::Var],
            _: &[$crate::ir::Slope],
        ) -> $crate::Rule<$crate::ir::Slopes> {
            $crate::Rule::Some(vec![None])
        }
    };
}

/// `jvp` of an op without that rule: an op that overrides `differentiate`, or the reason for the
/// user.
macro_rules! no_jvp {
    () => {
        $crate::ops::rules::no_jvp! { "values and tangents are built together by `differentiate`" }
    };
    ($reason:expr) => {
        fn jvp(
            &self,
            _: &mut $crate::Builder,
            _: &[$crate::Var],
            _: &[$crate::Var],
            _: &[$crate::ir::Slope],
        ) -> $crate::Rule<$crate::ir::Slopes> {
            $crate::Rule::None($reason)
        }
    };
}

/// `transpose` of an op without that rule, with the reason for the user.
macro_rules! no_transpose {
    ($reason:expr) => {
        fn transpose(
            &self,
            _: &mut $crate::Builder,
            _: &[$crate::Operand],
            _: &[$crate::ir::Slope],
        ) -> $crate::Rule<$crate::ir::Slopes> {
            $crate::Rule::None($reason)
        }
    };
}

/// `jvp` and `transpose` of an op without operands.
macro_rules! nullary_derivative {
    () => {
        $crate::ops::rules::no_tangent! {}

        fn transpose(
            &self,
            _: &mut $crate::Builder,
            _: &[$crate::Operand],
            _: &[$crate::ir::Slope],
        ) -> $crate::Rule<$crate::ir::Slopes> {
            $crate::Rule::Some(vec![])
        }
    };
}

/// `jvp`, `differentiate` and `transpose` of a region op, from the functions that transform its
/// bodies. These give values and tangents in one op, or as two ops with residuals between them, and
/// the transpose.
macro_rules! region_derivative {
    ($forward:path, $linearized:path, $transposed:path) => {
        $crate::ops::rules::no_jvp! {}

        fn differentiate(
            &self,
            _: &$crate::OpRef,
            b: &mut $crate::Builder,
            mode: $crate::transform::Mode,
            inputs: &[$crate::Var],
            tangents: &[$crate::ir::Slope],
        ) -> $crate::Rule<(Vec<$crate::Var>, $crate::ir::Slopes)> {
            match mode {
                $crate::transform::Mode::Forward => $forward(self, b, inputs, tangents).into(),
                $crate::transform::Mode::Linearize => $linearized(self, b, inputs, tangents).into(),
            }
        }

        fn transpose(
            &self,
            b: &mut $crate::Builder,
            inputs: &[$crate::Operand],
            cotangents: &[$crate::ir::Slope],
        ) -> $crate::Rule<$crate::ir::Slopes> {
            $transposed(self, b, inputs, cotangents).into()
        }
    };
}

pub(super) use {
    batched_as, linear_jvp, no_jvp, no_tangent, no_transpose, nullary_derivative, region_derivative,
};
