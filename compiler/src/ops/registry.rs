//! The list of all ops: how the parser finds them by mnemonic and how the generic tests reach their samples.
//!
//! An op is one line here, under its family, in alphabetical order. Nothing else in the compiler lists ops.

use super::*;

/// What the registry knows of one op.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in the IR's text.
    pub mnemonic: &'static str,
    /// The op from its attributes, or what is missing or wrong.
    pub parse: fn(&crate::Attributes) -> Result<OpRef, String>,
    /// Examples that drive the generic tests.
    pub samples: fn() -> Vec<Sample>,
}

/// Each line is a mnemonic and a type with `parse(&Attributes) -> Result<Self, String>` (as `op_struct!` writes it) and
/// `samples() -> Vec<Sample>`.
macro_rules! registry {
    ($($mnemonic:literal => $op:ident),* $(,)?) => {
        static ENTRIES: &[Entry] = &[
            $(Entry {
                mnemonic: $mnemonic,
                parse: |attributes| $op::parse(attributes).map(OpRef::new),
                samples: || $op::samples(),
            }),*
        ];
    };
}

registry! {
    // constant
    "constant" => Constant,
    "iota" => Iota,
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
}

/// The op with this mnemonic, if there is one.
pub fn find(mnemonic: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.mnemonic == mnemonic)
}

/// Every op, by family.
pub fn all() -> &'static [Entry] {
    ENTRIES
}
