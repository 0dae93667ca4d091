//! Everything that a program needs: `use podracer::prelude::*`.

pub use crate::collective::{
    AxisName, Replicas, all_gather, axis_index, pmax, pmean, pmin, ppermute, psum,
};
pub use crate::control::{
    associative_scan, associative_scan_reverse, cond, fence, fori_loop, if_launched, kernel, map,
    map_batched, scan, scan_reverse, subroutine, switch, tile, vmap, vmap_named, while_loop,
};
pub use crate::debug::{Log, check, collect, debug_print};
pub use crate::diff::{
    Loss, checkpoint, checkpoint_name, custom_jvp, custom_vjp, grad, grad_with_aux, hessian,
    hessian_with_aux, jacfwd, jacfwd_with_aux, jacrev, jacrev_with_aux, jvp, jvp_with_aux,
    linearize, linearize_with_aux, stop_gradient, value_and_grad, vjp, vjp_with_aux,
};
pub use crate::dtype::*;
pub use crate::key::{Key, Keys, key};
pub use crate::placed::Placed;
pub use crate::tensor::create::{
    arange, constant, constant_of, eye, full, iota, linspace, one_hot, ones, scalar, zeros,
};
pub use crate::tensor::hints::NamesOfOthers as _;
pub use crate::tensor::{
    IntoTensor, MatrixNorm, Padding, Side, Tensor, atan2, avg_pool, clamp, concatenate,
    conv_general_dilated, conv_transpose, conv1d, conv2d, dot, dot_general, dynamic_slice,
    dynamic_update_slice, einsum, hypot, keepdims, logaddexp, matmul, max_pool, maximum, minimum,
    outer, pow, segment_sum, select, sort_together, stack, triangular_solve,
};
pub use crate::trace::{TraceError, TraceErrors, Traced, Warning, eval_shape, part, scope, trace};
pub use crate::tree::dtype_specs::*;
pub use crate::tree::{
    AnyTree, ArgumentSpec, IntoTree, Kind, Over, Path, Spec, Step, Tree, Types, axis, expect_types,
    out_axis, rev, tree_map, tree_select, whole,
};
pub use podracer_compiler::ops::Save;
pub use podracer_compiler::ops::{Convolution, TriangularSolve};
pub use podracer_compiler::{Array, DType, TensorType};
pub use podracer_derive::Tree;
