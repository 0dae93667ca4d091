//! The interface to StableHLO. Ops lower themselves through the trait [`Hlo`], which
//! [`crate::stablehlo`] implements. Nothing here knows MLIR: an op is a name, operands, attributes
//! of fixed kinds, result types and regions.

mod func;
mod helpers;

pub use func::{lower_func, lower_region};
pub use helpers::*;

use crate::array::Array;
use crate::ir::{Func, Loc};
use crate::ops::CallForm;
use crate::types::TensorType;
use std::sync::Arc;

/// A value in the module under construction: an opaque index that the emitter hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HloValue(pub u32);

/// The results of an op, in order.
pub type HloResults = Vec<HloValue>;

/// A finished region, an argument of the next op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HloRegion(pub u32);

/// An attribute of a StableHLO op, typed so that it cannot be misspelled or have the wrong form.
#[derive(Clone, Debug, PartialEq)]
pub enum HloAttribute {
    /// `array<i64: ...>`: axes, permutations, sizes.
    I64Array(Vec<i64>),
    /// `dense<...> : tensor<...xi64>` with the given shape, for example replica groups.
    I64Tensor(Vec<usize>, Vec<i64>),
    /// The i64 integer `n : i64`.
    I64(i64),
    /// The i32 integer `n : i32`.
    I32(i32),
    /// `true` or `false`.
    Bool(bool),
    /// A string, `"text"`.
    Text(&'static str),
    /// A dictionary of strings, `{key = "text"}`, in the order of the keys.
    Texts(Vec<(&'static str, &'static str)>),
    /// A constant's value.
    Dense(Arc<Array>),
    /// `#stablehlo<comparison_direction LT>`, `#stablehlo<comparison_type TOTALORDER>`: kind and value.
    Enum(&'static str, &'static str),
    /// `#stablehlo.dot<...>`.
    Dot {
        /// Batch axes of the left operand.
        lhs_batch: Vec<usize>,
        /// Batch axes of the right operand.
        rhs_batch: Vec<usize>,
        /// Contracted axes of the left operand.
        lhs_contract: Vec<usize>,
        /// Contracted axes of the right operand.
        rhs_contract: Vec<usize>,
    },
    /// `#stablehlo.conv<...>`: the meaning of each axis. The lists have batch and feature (for the
    /// kernel: output and input feature) first, then the spatial axes.
    Convolution {
        /// Axes of the input.
        lhs: Vec<usize>,
        /// Axes of the kernel.
        rhs: Vec<usize>,
        /// Axes of the result.
        out: Vec<usize>,
    },
    /// `#stablehlo.gather<...>`.
    Gather {
        /// Result axes that come from the window.
        offset_dims: Vec<usize>,
        /// Operand axes of window size one that the result leaves out.
        collapsed_slice_dims: Vec<usize>,
        /// Operand axes batched together with `start_indices_batching_dims`.
        operand_batching_dims: Vec<usize>,
        /// Index axes batched together with `operand_batching_dims`.
        start_indices_batching_dims: Vec<usize>,
        /// For each component of an index vector, the operand axis along which it gives the start.
        start_index_map: Vec<usize>,
        /// The axis of the indices that holds the components.
        index_vector_dim: usize,
    },
    /// `#stablehlo.scatter<...>`.
    Scatter {
        /// Update axes that go into the window.
        update_window_dims: Vec<usize>,
        /// Operand axes of window size one that the updates leave out.
        inserted_window_dims: Vec<usize>,
        /// Operand axes batched together with `scatter_indices_batching_dims`.
        input_batching_dims: Vec<usize>,
        /// Index axes batched together with `input_batching_dims`.
        scatter_indices_batching_dims: Vec<usize>,
        /// For each component of an index vector, the operand axis along which it gives the start.
        scatter_dims_to_operand_dims: Vec<usize>,
        /// The axis of the indices that holds the components.
        index_vector_dim: usize,
    },
    /// `#stablehlo.channel_handle<handle = n, type = t>`.
    Channel(i64, i64),
}

/// One StableHLO op to emit. `name` is the full name, `stablehlo.add`.
#[derive(Clone, Debug)]
pub struct HloOp<'a> {
    /// The full name, such as `stablehlo.add`.
    pub name: &'static str,
    /// The operands, in order.
    pub operands: &'a [HloValue],
    /// The attributes, by name.
    pub attributes: Vec<(&'static str, HloAttribute)>,
    /// The regions, in order.
    pub regions: Vec<HloRegion>,
    /// The result types.
    pub results: &'a [TensorType],
}

impl<'a> HloOp<'a> {
    /// An op without attributes and regions.
    pub fn new(name: &'static str, operands: &'a [HloValue], results: &'a [TensorType]) -> Self {
        HloOp { name, operands, attributes: Vec::new(), regions: Vec::new(), results }
    }

    /// The op with these attributes.
    pub fn attributes(self, attributes: Vec<(&'static str, HloAttribute)>) -> Self {
        HloOp { attributes, ..self }
    }

    /// The op with these regions.
    pub fn regions(self, regions: Vec<HloRegion>) -> Self {
        HloOp { regions, ..self }
    }
}

/// A module emitter. Values belong to the emitter that returned them.
pub trait Hlo {
    /// Emits an op at the current place; returns its results.
    fn op(&mut self, op: HloOp<'_>) -> HloResults;

    /// Opens a region with block arguments of these types; ops are emitted into it until
    /// [`Hlo::end_region`]. Regions nest.
    fn begin_region(&mut self, arguments: &[TensorType]) -> HloResults;

    /// Closes the innermost region with `stablehlo.return` of these values.
    fn end_region(&mut self, results: &[HloValue]) -> HloRegion;

    /// Emits `func.call` of a function. The function is emitted once, as a private function of the
    /// module, regardless of the number of calls. The form says what XLA's CPU
    /// compiler makes of the call.
    fn call(&mut self, func: &Arc<Func>, form: CallForm, arguments: &[HloValue]) -> HloResults;

    /// The type of a value.
    fn ty(&self, value: HloValue) -> TensorType;

    /// The source location of the ops emitted from now on.
    fn set_loc(&mut self, loc: Loc);

    /// The current source location.
    fn loc(&self) -> Loc;

    /// The number of replicas, over all processes, that run the module together.
    fn replicas(&self) -> usize;

    /// The number of processes, which have equally many replicas each, and exchange values by calls
    /// of the runtime.
    fn processes(&self) -> usize;

    /// True if loops with library ops must not become kernels
    /// ([`ModuleSpec::whole_loops`](crate::stablehlo::ModuleSpec::whole_loops)).
    fn whole_loops(&self) -> bool;

    /// Reports that `op` cannot be part of this module, and the reason. No module is produced;
    /// everything that is emitted afterwards is discarded.
    fn refuse(&mut self, op: &'static str, message: String);
}
