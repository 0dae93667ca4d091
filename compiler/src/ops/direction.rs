//! The direction of a comparison.

use crate::words;

words! {
    /// The relation that [`Compare`](super::Compare) tests.
    Direction {
        /// Equal: `x == y`.
        Eq = "EQ",
        /// Not equal: `x != y`.
        Ne = "NE",
        /// Less: `x < y`.
        Lt = "LT",
        /// Less or equal: `x <= y`.
        Le = "LE",
        /// Greater: `x > y`.
        Gt = "GT",
        /// Greater or equal: `x >= y`.
        Ge = "GE",
    }
}
