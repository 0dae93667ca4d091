//! Intervals as settings, with ends that may be infinite.

use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lower and the upper end of an interval.
pub type Interval = [Bound; 2];

/// Bound of an interval: a number, `"inf"` or `"-inf"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A finite end of the interval.
    Number(f64),
    /// The absence of an end.
    Infinite(Infinity),
}

/// The absence of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Infinity {
    /// The absence of an upper end.
    #[serde(rename = "inf")]
    Positive,
    /// The absence of a lower end.
    #[serde(rename = "-inf")]
    Negative,
}

impl Bound {
    /// The number, which may be infinite.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Bound::Number(number) => number,
            Bound::Infinite(Infinity::Positive) => f64::INFINITY,
            Bound::Infinite(Infinity::Negative) => f64::NEG_INFINITY,
        }
    }
}

/// The interval from `low` to `high`.
pub(super) fn interval(low: f64, high: f64) -> Interval {
    [low, high].map(|end| match end {
        f64::INFINITY => Bound::Infinite(Infinity::Positive),
        f64::NEG_INFINITY => Bound::Infinite(Infinity::Negative),
        end => Bound::Number(end),
    })
}

/// True where numbers are within an interval without its ends. NaN is outside.
#[track_caller]
pub(super) fn inside(x: Tensor, interval: Interval) -> Tensor {
    let [low, high] = interval.map(Bound::value);
    x.gt(low) & x.lt(high)
}

/// Numbers, clipped to an interval.
#[track_caller]
pub(super) fn clipped(x: Tensor, interval: Interval) -> Tensor {
    let [low, high] = interval.map(Bound::value);
    x.clamp(low, high)
}
