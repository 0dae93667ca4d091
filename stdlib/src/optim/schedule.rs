//! Learning rates that change over the updates.

use crate::Number;
use podracer_dsl::prelude::*;
use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// A number as a function of the number of earlier updates, `i32[]`, from 0. A plain `f64` is a
/// constant.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// A constant number.
    Constant(Number),
    /// A power of the remaining time: `(init - end) (1 - fraction)^power + end`, where `fraction`
    /// rises from 0 at `begin` to 1 at `begin + steps` and stays at 1.
    Polynomial {
        /// Value until `begin`.
        init: Number,
        /// Value from `begin + steps` on.
        end: Number,
        /// Exponent of the remaining time; 1 is linear.
        power: f64,
        /// Number of updates from `init` to `end`; with 0 the value stays `init`.
        steps: usize,
        /// Number of updates before the change begins.
        begin: usize,
    },
    /// A cosine: `init ((1 - alpha) cosine^exponent + alpha)`, where `cosine` falls from 1 to 0 over `steps` along half a wave:
    /// Loshchilov and Hutter, "SGDR", 2017, eq. 5.
    Cosine {
        /// Value at update 0.
        init: f64,
        /// Number of updates until the end.
        steps: usize,
        /// Share of `init` at the end.
        alpha: f64,
        /// Exponent of the cosine; 1 is the plain cosine.
        exponent: f64,
    },
    /// An exponential: `init rate^(count / steps)`.
    Exponential {
        /// Value at update 0.
        init: f64,
        /// Number of updates per factor `rate`.
        steps: usize,
        /// Factor of the value in each `steps` updates.
        rate: f64,
        /// True if the value changes only once every `steps` updates.
        staircase: bool,
        /// Bound of the value, if there is one.
        end: Option<f64>,
    },
    /// Consecutive schedules. At each boundary the next schedule begins, and counts from that
    /// boundary.
    Joined {
        /// Schedules of the pieces, one more than there are boundaries.
        schedules: Vec<Schedule>,
        /// Counts where the next schedule begins, ascending.
        boundaries: Vec<usize>,
    },
    /// A function of the count, `i32[]` to `f32[]`.
    Custom(Function),
}

/// A function from the number of earlier updates, i32 `[]`, to the value, f32 `[]`.
#[derive(Clone)]
pub struct Function(Arc<dyn Fn(Tensor) -> Tensor + Send + Sync>);

impl<N: Into<Number>> From<N> for Schedule {
    fn from(value: N) -> Self {
        Schedule::Constant(value.into())
    }
}

impl Schedule {
    /// The constant schedule of a number; a plain `f64` converts to it as well.
    pub fn constant(value: impl Into<Number>) -> Schedule {
        Schedule::Constant(value.into())
    }

    /// A linear schedule from `init` to `end` over `steps` updates.
    pub fn linear(init: impl Into<Number>, end: impl Into<Number>, steps: usize) -> Schedule {
        Schedule::polynomial(init, end, 1.0, steps)
    }

    /// [`Schedule::Polynomial`] from the first update on.
    pub fn polynomial(
        init: impl Into<Number>,
        end: impl Into<Number>,
        power: f64,
        steps: usize,
    ) -> Schedule {
        Schedule::Polynomial { init: init.into(), end: end.into(), power, steps, begin: 0 }
    }

    /// [`Schedule::Cosine`] down to 0.
    pub fn cosine(init: f64, steps: usize) -> Schedule {
        Schedule::Cosine { init, steps, alpha: 0.0, exponent: 1.0 }
    }

    /// A linear schedule from `init` to `peak` over `warmup` updates, then half a cosine to `end`
    /// at `steps`.
    pub fn warmup_cosine(init: f64, peak: f64, warmup: usize, steps: usize, end: f64) -> Schedule {
        let alpha = if peak == 0.0 { 0.0 } else { end / peak };
        let decay = Schedule::Cosine {
            init: peak,
            steps: steps.saturating_sub(warmup),
            alpha,
            exponent: 1.0,
        };
        Schedule::Joined {
            schedules: vec![Schedule::linear(init, peak, warmup), decay],
            boundaries: vec![warmup],
        }
    }

    /// The number `init`, multiplied at each boundary by the boundary's factor.
    pub fn piecewise_constant(init: f64, factors: &[(usize, f64)]) -> Schedule {
        let mut value = init;
        let mut schedules = vec![Schedule::constant(init)];
        for &(_, factor) in factors {
            value *= factor;
            schedules.push(Schedule::constant(value));
        }
        Schedule::Joined {
            schedules,
            boundaries: factors.iter().map(|&(boundary, _)| boundary).collect(),
        }
    }

    /// A function of the count, `i32[]` to `f32[]`.
    pub fn custom(f: impl Fn(Tensor) -> Tensor + Send + Sync + 'static) -> Schedule {
        Schedule::Custom(Function(Arc::new(f)))
    }

    /// The value after `count` updates, `f32[]`.
    #[track_caller]
    pub fn value(&self, count: Tensor) -> Tensor {
        match self {
            Schedule::Constant(value) => value.into_tensor(),
            Schedule::Polynomial { init, steps: 0, .. } => init.into_tensor(),
            &Schedule::Polynomial { init, end, power, steps, begin } => {
                let passed = (count - begin).clamp(0, steps).astype(F32);
                let left = 1.0 - passed / steps as f64;
                let left = if power == 1.0 { left } else { left.pow(power) };
                (init - end) * left + end
            }
            &Schedule::Cosine { init, steps, alpha, exponent } => {
                let steps = steps.max(1);
                let passed = count.clamp(0, steps).astype(F32);
                let cosine = 0.5 * (1.0 + (passed * (PI / steps as f64)).cos());
                let cosine = if exponent == 1.0 { cosine } else { cosine.pow(exponent) };
                init * ((1.0 - alpha) * cosine + alpha)
            }
            &Schedule::Exponential { init, steps, rate, staircase, end } => {
                let passed = count.astype(F32) / steps.max(1) as f64;
                let passed = if staircase { passed.floor() } else { passed };
                let value = init * (passed * rate.ln()).exp();
                match end {
                    Some(end) if rate < 1.0 => value.maximum(end),
                    Some(end) => value.minimum(end),
                    None => value,
                }
            }
            Schedule::Joined { schedules, boundaries } => {
                let mut pieces = schedules.iter();
                let mut value =
                    pieces.next().map_or_else(|| scalar(0.0), |first| first.value(count));
                for (piece, &boundary) in pieces.zip(boundaries) {
                    value = select(count.lt(boundary), value, piece.value(count - boundary));
                }
                value
            }
            Schedule::Custom(Function(f)) => f(count),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function of the count")
    }
}
