//! Groups of rewrites, which options name and region ops are asked for.

use crate::words;

words! {
    /// Rewrites that are switched on and off together.
    Group {
        /// Arithmetic with neutral elements, inverses and, for integers, constants that meet.
        Algebra = "algebra",
        /// Choices that are known or made twice; comparisons and their negations.
        Select = "select",
        /// Reshapes, transposes, broadcasts, slices that undo or follow one another.
        Shape = "shape",
        /// Values that are known at compile time.
        Fold = "fold",
        /// Functions of repeated elements, computed before they are repeated.
        Sink = "sink",
        /// Loops: operands that are constants or given twice, carries and outputs that never change.
        Loops = "loops",
    }
}

impl Group {
    /// The groups whose rewrites stand with region ops.
    pub(super) const OF_REGIONS: [Group; 1] = [Group::Loops];
}
