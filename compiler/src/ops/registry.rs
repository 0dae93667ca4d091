//! The list of all ops: how the parser finds them by mnemonic and how the generic tests reach their samples.
//!
//! An op is one line here, under its family, in alphabetical order. Nothing else in the compiler lists ops.

use super::*;

/// What the registry knows of one op.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in the IR's text.
    pub mnemonic: &'static str,
    /// The names of its attributes, in printing order.
    pub attributes: &'static [&'static str],
    /// The op from its attributes, or what is missing or wrong.
    pub parse: fn(&crate::Attributes) -> Result<OpRef, String>,
    /// Examples that drive the generic tests.
    pub samples: fn() -> Vec<Sample>,
}

/// Each line is a mnemonic and an [`OpStruct`] (as `op_struct!` writes it) with `samples() -> Vec<Sample>`.
macro_rules! registry {
    ($($mnemonic:literal => $op:ident),* $(,)?) => {
        static ENTRIES: &[Entry] = &[
            $(Entry {
                mnemonic: $mnemonic,
                attributes: <$op as OpStruct>::ATTRIBUTES,
                parse: |attributes| $op::parse(attributes).map(OpRef::new),
                samples: || $op::samples(),
            }),*
        ];
    };
}

registry! {
    // arithmetic
    "abs" => Abs,
    "add" => Add,
    "atan2" => Atan2,
    "divide" => Divide,
    "log_add_exp" => LogAddExp,
    "maximum" => Maximum,
    "minimum" => Minimum,
    "multiply" => Multiply,
    "negate" => Negate,
    "power" => Power,
    "remainder" => Remainder,
    "sign" => Sign,
    "subtract" => Subtract,
    // barrier
    "optimization_barrier" => OptimizationBarrier,
    // bits
    "and" => And,
    "count_leading_zeros" => CountLeadingZeros,
    "not" => Not,
    "or" => Or,
    "popcnt" => Popcnt,
    "shift_left" => ShiftLeft,
    "shift_right_arithmetic" => ShiftRightArithmetic,
    "shift_right_logical" => ShiftRightLogical,
    "xor" => Xor,
    // collective
    "all_gather" => AllGather,
    "all_reduce" => AllReduce,
    "axis_index" => AxisIndex,
    "collective_permute" => CollectivePermute,
    // compare
    "clamp" => Clamp,
    "compare" => Compare,
    "select" => Select,
    "stop_gradient" => StopGradient,
    // control flow
    "call" => Call,
    "cond" => Cond,
    "scan" => Scan,
    "while" => While,
    // rules for transforms
    "checkpoint" => Checkpoint,
    "custom_jvp" => CustomJvp,
    "custom_vjp" => CustomVjp,
    "named" => Named,
    // constant
    "constant" => Constant,
    "iota" => Iota,
    // convert
    "bitcast_convert" => BitcastConvert,
    "convert" => Convert,
    // convolution
    "convolution" => Convolution,
    // cumulative
    "cumlogsumexp" => CumLogSumExp,
    "cummax" => CumMax,
    "cummin" => CumMin,
    "cumprod" => CumProd,
    "cumsum" => CumSum,
    // dot
    "dot_general" => DotGeneral,
    // gamma
    "digamma" => Digamma,
    "lgamma" => Lgamma,
    "polygamma" => Polygamma,
    // linalg
    "cholesky" => Cholesky,
    "triangular_solve" => TriangularSolve,
    // math
    "cbrt" => Cbrt,
    "ceil" => Ceil,
    "cosine" => Cosine,
    "erf" => Erf,
    "erf_inv" => ErfInv,
    "erfc" => Erfc,
    "exponential" => Exponential,
    "exponential_minus_one" => ExponentialMinusOne,
    "floor" => Floor,
    "is_finite" => IsFinite,
    "log" => Log,
    "log_plus_one" => LogPlusOne,
    "logistic" => Logistic,
    "round_nearest_afz" => RoundNearestAfz,
    "round_nearest_even" => RoundNearestEven,
    "rsqrt" => Rsqrt,
    "sine" => Sine,
    "sqrt" => Sqrt,
    "tan" => Tan,
    "tanh" => Tanh,
    // reduce
    "argmax" => ArgMax,
    "argmin" => ArgMin,
    "reduce_and" => ReduceAnd,
    "reduce_max" => ReduceMax,
    "reduce_min" => ReduceMin,
    "reduce_or" => ReduceOr,
    "reduce_prod" => ReduceProd,
    "reduce_sum" => ReduceSum,
    // reduce_window
    "reduce_window_max" => ReduceWindowMax,
    "reduce_window_min" => ReduceWindowMin,
    "reduce_window_sum" => ReduceWindowSum,
    "select_and_gather" => SelectAndGather,
    "select_and_scatter" => SelectAndScatter,
    // shape
    "broadcast_in_dim" => BroadcastInDim,
    "concatenate" => Concatenate,
    "pad" => Pad,
    "reshape" => Reshape,
    "reverse" => Reverse,
    "transpose" => Transpose,
    // slice
    "dynamic_slice" => DynamicSlice,
    "dynamic_update_slice" => DynamicUpdateSlice,
    "gather" => Gather,
    "scatter" => Scatter,
    "slice" => Slice,
    // sort
    "sort" => Sort,
    "top_k" => TopK,
}

/// The op with this mnemonic, if there is one.
pub fn find(mnemonic: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.mnemonic == mnemonic)
}

/// Every op, by family.
pub fn all() -> &'static [Entry] {
    ENTRIES
}
