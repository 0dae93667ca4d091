//! The list of ops: the parser finds an op by its mnemonic here, and the generic tests find its
//! samples.
//!
//! An op is one line here, under its family, in alphabetical order. Nothing else in the compiler lists ops.

use super::*;

/// An op of the registry: its name, attributes, parser and samples.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in the IR's text.
    pub mnemonic: &'static str,
    /// The names of its attributes, in printing order.
    pub attributes: &'static [&'static str],
    /// Makes the op from its attributes, or returns an error that names the missing or wrong
    /// attribute.
    pub parse: fn(&crate::Attributes) -> Result<OpRef, String>,
    /// Examples that drive the generic tests.
    pub samples: fn() -> Vec<Sample>,
}

/// Each line names an op that `op_struct!` declares and that has `samples() -> Vec<Sample>`.
macro_rules! registry {
    ($($op:ident),* $(,)?) => {
        static ENTRIES: &[Entry] = &[
            $(Entry {
                mnemonic: $op::MNEMONIC,
                attributes: $op::ATTRIBUTES,
                parse: |attributes| $op::parse(attributes).map(OpRef::new),
                samples: || $op::samples(),
            }),*
        ];
    };
}

registry! {
    // arithmetic
    Abs,
    Add,
    Atan2,
    Divide,
    LogAddExp,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Power,
    Remainder,
    Sign,
    Subtract,
    // barrier
    OptimizationBarrier,
    // bits
    And,
    CountLeadingZeros,
    Not,
    Or,
    Popcnt,
    ShiftLeft,
    ShiftRightArithmetic,
    ShiftRightLogical,
    Xor,
    // collective
    AllGather,
    AllReduce,
    AxisIndex,
    CollectivePermute,
    // compare
    Clamp,
    Compare,
    Select,
    StopGradient,
    // control flow
    AnyExample,
    Call,
    Cond,
    Launched,
    Rarely,
    Scan,
    Tile,
    While,
    // rules for transforms
    Checkpoint,
    CustomJvp,
    CustomVjp,
    Named,
    // constant
    Constant,
    Iota,
    // convert
    BitcastConvert,
    Convert,
    // convolution
    Convolution,
    // cumulative
    CumLogSumExp,
    CumMax,
    CumMin,
    CumProd,
    CumSum,
    // dot
    DotGeneral,
    // gamma
    Digamma,
    Lgamma,
    Polygamma,
    // linalg
    Cholesky,
    TriangularSolve,
    // math
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cbrt,
    Ceil,
    Cosh,
    Cosine,
    Erf,
    ErfInv,
    Erfc,
    Exponential,
    ExponentialMinusOne,
    Floor,
    IsFinite,
    Log,
    LogPlusOne,
    Logistic,
    RoundNearestAfz,
    RoundNearestEven,
    Rsqrt,
    Sine,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
    // reduce
    ArgMax,
    ArgMin,
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceSum,
    // reduce_window
    ReduceWindowMax,
    ReduceWindowMin,
    ReduceWindowSum,
    SelectAndGather,
    SelectAndScatter,
    // shape
    BroadcastInDim,
    Concatenate,
    Pad,
    Reshape,
    Reverse,
    Transpose,
    // slice
    DynamicSlice,
    DynamicUpdateSlice,
    Gather,
    Scatter,
    Slice,
    // sort
    Sort,
    TopK,
}

/// The op with this mnemonic, if there is one.
pub fn find(mnemonic: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.mnemonic == mnemonic)
}

/// Every op in the registry, by family.
pub fn all() -> &'static [Entry] {
    ENTRIES
}
