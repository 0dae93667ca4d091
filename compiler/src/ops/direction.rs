//! The direction of a comparison.

use crate::words;

words! {
    /// What [`Compare`](super::Compare) asks.
    Direction {
        /// Whether both are equal.
        Eq = "EQ",
        /// Whether they differ.
        Ne = "NE",
        /// Whether the first is less.
        Lt = "LT",
        /// Whether the first is less or equal.
        Le = "LE",
        /// Whether the first is greater.
        Gt = "GT",
        /// Whether the first is greater or equal.
        Ge = "GE",
    }
}
