//! Draws by rejection: loops that end when a proposal is accepted. They equal jax's draws as far as
//! their floats do: a proposal on the very edge may be judged differently.

use super::Key;
use super::gamma_slope::gamma_slope;
use crate::control::{vmap, while_loop};
use crate::diff::custom_jvp;
use crate::tensor::{IntoTensor, Shape, Tensor, create, fail, maximum, report, select};
use crate::trace::called;
use podracer_compiler::{DType, TensorType};

/// Draws by rejection. `shape` is the shape of the result.
impl Key {
    /// Draws from the gamma distribution with shape parameter `alpha` and scale 1, in f32; `alpha` is a number or
    /// broadcasts to the shape. `jax.random.gamma`.
    ///
    /// Marsaglia and Tsang 2000, "A simple method for generating gamma variables". The derivative
    /// by `alpha` is implicit reparameterization (Figurnov et al. 2018): how a draw moves at a
    /// fixed quantile. [`Key::loggamma`], [`Key::beta`] and [`Key::dirichlet`] differentiate in the
    /// same way.
    ///
    /// ```
    /// # use podracer_dsl::prelude::*;
    /// # trace(key(), |key| {
    /// let rates = key.gamma([4], 2.5);
    /// # rates })?;
    /// # Ok::<(), TraceErrors>(())
    /// ```
    #[track_caller]
    pub fn gamma(self, shape: impl Shape, alpha: impl IntoTensor) -> Tensor {
        let _call = called("gamma");
        let shape = shape.into_shape();
        let alpha = parameter("gamma", alpha).broadcast_to(&shape);
        self.each(alpha, |key, alpha| {
            let draw = |alpha| {
                let (big, volume, boost) = volume(key.again(), alpha);
                let lifted = (1.0 - boost.uniform([])).pow(1.0 / alpha);
                let (d, _) = squeeze(alpha, big);
                d * volume * select(big, 1.0, lifted)
            };
            custom_jvp(alpha, draw, |alpha, slope| {
                let sample = draw(alpha);
                (sample, slope * gamma_slope(alpha, sample))
            })
        })
    }

    /// Draws the logarithm of [`Key::gamma`], which stays finite where a draw of the gamma distribution would round to
    /// 0. `jax.random.loggamma`.
    #[track_caller]
    pub fn loggamma(self, shape: impl Shape, alpha: impl IntoTensor) -> Tensor {
        let _call = called("loggamma");
        let shape = shape.into_shape();
        let alpha = parameter("loggamma", alpha).broadcast_to(&shape);
        self.each(alpha, |key, alpha| {
            let draw = |alpha| {
                let (big, volume, boost) = volume(key.again(), alpha);
                let log = -boost.exponential([]);
                let boost = select(big | log.eq(0.0), 0.0, log * (1.0 / alpha));
                let (d, _) = squeeze(alpha, big);
                d.log() + volume.log() + boost
            };
            custom_jvp(alpha, draw, |alpha, slope| {
                let log = draw(alpha);
                // A draw that is too small for a float still has a slope.
                let sample = maximum(log.exp(), f64::from(f32::MIN_POSITIVE));
                (log, slope * gamma_slope(alpha, sample) / sample)
            })
        })
    }

    /// Draws from the beta distribution with parameters `a` and `b`, in f32; they are numbers or broadcast to the
    /// shape. `jax.random.beta`.
    ///
    /// ```
    /// # use podracer_dsl::prelude::*;
    /// # trace(key(), |key| {
    /// let share = key.beta([4], 2.0, 3.0);
    /// # share })?;
    /// # Ok::<(), TraceErrors>(())
    /// ```
    #[track_caller]
    pub fn beta(self, shape: impl Shape, a: impl IntoTensor, b: impl IntoTensor) -> Tensor {
        let _call = called("beta");
        let shape = shape.into_shape();
        let (of_a, of_b) = self.split();
        let a = of_a.loggamma(&shape, a);
        let b = of_b.loggamma(&shape, b);
        let greater = maximum(a, b);
        let (a, b) = ((a - greater).exp(), (b - greater).exp());
        a / (a + b)
    }

    /// Draws from the Dirichlet distribution with concentrations `alpha`, in f32. Each element of
    /// the shape is a vector along a new last axis that adds up to 1. `jax.random.dirichlet`.
    ///
    /// ```
    /// # use podracer_dsl::prelude::*;
    /// # trace(key(), |key| {
    /// let shares = key.dirichlet([4], constant([0.3, 0.3, 0.4]));
    /// # shares })?;
    /// # Ok::<(), TraceErrors>(())
    /// ```
    #[track_caller]
    pub fn dirichlet(self, shape: impl Shape, alpha: Tensor) -> Tensor {
        let _call = called("dirichlet");
        let ty = alpha.ty();
        let mut shape = shape.into_shape();
        let Some(&last) = ty.shape.last() else {
            let message = format!("expected concentrations along an axis, got {ty}");
            return fail("dirichlet", message, &[alpha], ty);
        };
        shape.push(last);
        self.loggamma(&shape, alpha).softmax(-1)
    }

    /// Draws from the Poisson distribution, in i32; `rate` is a number or broadcasts to the shape.
    /// `jax.random.poisson`.
    ///
    /// Rates below 10 use Knuth's products, rates above use transformed rejection (Hörmann 1993).
    ///
    /// ```
    /// # use podracer_dsl::prelude::*;
    /// # trace(key(), |key| {
    /// let arrivals = key.poisson([4], 2.5);
    /// # arrivals })?;
    /// # Ok::<(), TraceErrors>(())
    /// ```
    #[track_caller]
    pub fn poisson(self, shape: impl Shape, rate: impl IntoTensor) -> Tensor {
        let _call = called("poisson");
        let shape = shape.into_shape();
        let rate = parameter("poisson", rate).broadcast_to(&shape);
        let (few, many) = (self.again(), self);
        let is_small = rate.lt(10.0) | rate.ne(rate);
        // Each method gets only rates that let it end.
        let small = few.products(select(is_small, rate, 0.0));
        let large = many.transformed(select(is_small, 1e5, rate));
        select(rate.eq(0.0), 0, select(is_small, small, large))
    }

    /// The number of uniform draws that can be multiplied before the product is below exp(-rate).
    #[track_caller]
    fn products(self, rate: Tensor) -> Tensor {
        let shape = rate.shape();
        let begin = (create::zeros(DType::I32, &shape), self, rate.zeros_like());
        let going = |log: Tensor| log.gt(-rate);
        let (count, _, _) = while_loop(
            begin,
            |(_, _, log)| going(log).any(),
            |(count, key, log)| {
                let (key, draw) = key.split();
                let count = select(going(log), count + 1, count);
                (count, key, log + draw.uniform(&shape).log())
            },
        );
        count - 1
    }

    /// Hörmann's transformed rejection, for rates of 10 and above.
    #[track_caller]
    fn transformed(self, rate: Tensor) -> Tensor {
        let shape = rate.shape();
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let bound = 0.9277 - 3.6224 / (b - 2.0);
        let begin = (rate.full_like(-1.0), create::zeros(DType::Bool, &shape), self);
        let (count, _, _) = while_loop(
            begin,
            |(_, accepted, _)| (!accepted).any(),
            |(count, accepted, key)| {
                let [key, of_u, of_v] = key.split_into();
                let u = of_u.uniform(&shape) - 0.5;
                let v = of_v.uniform(&shape);
                let shifted = 0.5 - u.abs();
                let k = ((2.0 * a / shifted + b) * u + rate + 0.43).floor();
                let s = (v * inverse_alpha / (a / (shifted * shifted) + b)).log();
                let t = -rate + k * rate.log() - log_factorial(k);
                let surely = shifted.ge(0.07) & v.le(bound);
                let never = k.lt(0.0) | (shifted.lt(0.013) & v.gt(shifted));
                let now = surely | (!never & s.le(t));
                (select(now, k, count), accepted | now, key)
            },
        );
        count.astype(DType::I32)
    }

    /// Draws one number for each parameter, each with a key of its own.
    #[track_caller]
    fn each(self, parameters: Tensor, draw: impl FnOnce(Key, Tensor) -> Tensor) -> Tensor {
        let ty = parameters.ty();
        if ty.elements() == 0 {
            return parameters;
        }
        let keys = self.split_n(ty.elements());
        let drawn = vmap((keys, parameters.flatten()), |(key, parameter)| draw(key, parameter));
        drawn.reshape(ty.shape)
    }
}

/// A parameter of a distribution, in f32.
#[track_caller]
fn parameter(op: &str, value: impl IntoTensor) -> Tensor {
    let value = value.into_tensor();
    match value.dtype() {
        DType::F32 => value,
        dtype if dtype.is_integer() && value.rank() == 0 => value.astype(DType::F32),
        _ => {
            let ty = value.ty();
            report(op, format!("expected f32 parameters, got {ty}"), &[value]);
            crate::tensor::poison(TensorType::new(DType::F32, ty.shape))
        }
    }
}

/// Marsaglia and Tsang's d and c; below 1 the parameter is raised by 1.
#[track_caller]
fn squeeze(alpha: Tensor, big: Tensor) -> (Tensor, Tensor) {
    let d = select(big, alpha, alpha + 1.0) - 1.0 / 3.0;
    (d, 1.0 / 3.0 / d.sqrt())
}

/// `(alpha >= 1, v^3, key)`: the accepted proposal, and a key for the factor that compensates for
/// raising an `alpha` below 1.
#[track_caller]
fn volume(key: Key, alpha: Tensor) -> (Tensor, Tensor, Key) {
    let big = alpha.ge(1.0);
    let (d, c) = squeeze(alpha, big);
    let (key, boost) = key.split();
    let (_, _, volume, _) = while_loop(
        (key, 0.0, 1.0, 2.0),
        |(_, x, v, u): (Key, Tensor, Tensor, Tensor)| {
            u.ge(1.0 - 0.0331 * (x * x)) & u.log().ge(x * 0.5 + d * (1.0 - v + v.log()))
        },
        |(key, _, _, _)| {
            let [key, of_x, of_u] = key.split_into();
            let (_, x, v) = while_loop(
                (of_x, 0.0, -1.0),
                |(_, _, v): (Key, Tensor, Tensor)| v.le(0.0),
                |(key, _, _)| {
                    let (key, draw) = key.split();
                    let x = draw.normal([]);
                    (key, x, 1.0 + x * c)
                },
            );
            (key, x * x, v * v * v, of_u.uniform([]))
        },
    );
    (big, volume, boost)
}

/// log(k!) for k of 0 and above, by Lanczos' approximation with g = 7, as XLA computes it.
#[track_caller]
fn log_factorial(k: Tensor) -> Tensor {
    const COEFFICIENTS: [f64; 8] = [
        676.5203681218851,
        -1259.1392167224028,
        771.3234287776531,
        -176.6150291621406,
        12.507343278686905,
        -0.13857109526572012,
        9.984369578019572e-6,
        1.5056327351493116e-7,
    ];
    let mut x = k.full_like(0.9999999999998099);
    for (i, coefficient) in COEFFICIENTS.into_iter().enumerate() {
        x += coefficient / (k + (i + 1) as f64);
    }
    let half = 7.5;
    let log_t = f64::ln(half) + (k / half).log1p();
    let t = k + half;
    0.5 * f64::ln(2.0 * std::f64::consts::PI) + (k + 0.5 - t / log_t) * log_t + x.log()
}
