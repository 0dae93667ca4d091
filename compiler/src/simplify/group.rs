//! Groups of rewrites, which options refer to by name.

use crate::words;

#[cfg(not(feature = "egraph"))]
words! {
    /// Rewrites that are switched on and off together. The feature `egraph` has more of them.
    Group {
        /// Loops: constant or repeated operands, carries and outputs that never change.
        Loops = "loops",
    }
}

#[cfg(feature = "egraph")]
words! {
    /// Rewrites that are switched on and off together.
    Group {
        /// Arithmetic with neutral elements, inverses and, for integers, combinations of constants.
        Algebra = "algebra",
        /// Choices that are known or repeated; comparisons and their negations.
        Select = "select",
        /// Reshapes, transposes, broadcasts, slices that undo or follow one another.
        Shape = "shape",
        /// Values that are known at compile time.
        Fold = "fold",
        /// Functions of repeated elements, computed before the repetition.
        Sink = "sink",
        /// Loops: constant or repeated operands, carries and outputs that never change.
        Loops = "loops",
    }
}
