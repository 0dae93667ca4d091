//! Groups of rewrites, which options name.

use crate::words;

#[cfg(not(feature = "egraph"))]
words! {
    /// Rewrites that are switched on and off together. The feature `egraph` has more of them.
    Group {
        /// Loops: operands that are constants or given twice, carries and outputs that never change.
        Loops = "loops",
    }
}

#[cfg(feature = "egraph")]
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
