//! The derivative of a draw of the gamma distribution by its parameter.

use crate::control::while_loop;
use crate::tensor::{Tensor, select};
use podracer_derive::Tree;

/// The derivative of a draw by `alpha` at a fixed quantile: `-(dP/da) / p` at `x`, for the
/// distribution function `P` and its density `p`; f32 scalars. 0 at 0, NaN if `alpha` is not
/// positive. `jax.lax.random_gamma_grad`.
///
/// Figurnov, Mohamed and Mnih 2018, "Implicit Reparameterization Gradients", equation 5; the derivatives of `P` by its
/// series and of `1 - P` by its continued fraction (Moore 1982, "Algorithm AS 187").
#[track_caller]
pub(super) fn gamma_slope(alpha: Tensor, x: Tensor) -> Tensor {
    let by_fraction = x.gt(1.0) & x.gt(alpha);
    // Each method gets only values in its region of convergence.
    let fraction = of_fraction(select(by_fraction, alpha, 1.0), select(by_fraction, x, 2.0));
    let series = of_series(select(by_fraction, 1.0, alpha), select(by_fraction, 1.0, x));
    let slope = select(by_fraction, fraction, series);
    let slope = select(x.eq(0.0), 0.0, slope);
    select(alpha.gt(0.0) & x.ge(0.0), slope, f64::NAN)
}

/// `P(a, x) = x^a e^-x / Gamma(a + 1) (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..)`, where `x` is at most 1 or `a`.
#[track_caller]
fn of_series(a: Tensor, x: Tensor) -> Tensor {
    let begin = (a, 1.0, 1.0, 0.0, 0.0, true);
    let (_, _, sum, _, sum_slope, _) = while_loop(
        begin,
        |(_, _, _, _, _, going)| going,
        |(divisor, term, sum, term_slope, sum_slope, _): SeriesState| {
            let divisor = divisor + 1.0;
            let ratio = x / divisor;
            let term_slope = (term_slope - term / divisor) * ratio;
            let term = term * ratio;
            let next = sum_slope + term_slope;
            let going = term.gt(EPSILON * sum) | term_slope.abs().gt(EPSILON * next.abs());
            (divisor, term, sum + term, term_slope, next, going)
        },
    );
    -x * (sum_slope + sum * (x.log() - (a + 1.0).digamma())) / a
}

/// The divisor, the term and the sum, the derivatives of the term and the sum, and whether a term
/// still counts.
type SeriesState = (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor);

/// `1 - P(a, x) = x^a e^-x / Gamma(a) f`, where `x` is above 1 and `a`; `f` is the limit of the quotients of two
/// sequences with `p(n) = p(n - 1) (x + 2n + 1 - a) - p(n - 2) n (n - a)`.
#[track_caller]
fn of_fraction(a: Tensor, x: Tensor) -> Tensor {
    // The current numerator and denominator, then the previous pair, each with its derivative by
    // `a`.
    let begin = Fraction {
        n: a.zeros_like(),
        last: [a.zeros_like(), a.zeros_like(), a.ones_like(), a.zeros_like()],
        this: [a.ones_like(), a.zeros_like(), x + 1.0 - a, -a.ones_like()],
        going: x.eq(x),
    };
    let end = while_loop(
        begin,
        |state| state.going & state.n.lt(2000.0),
        |state| {
            let n = state.n + 1.0;
            let z = x + 2.0 * n + 1.0 - a;
            let (y, y_slope) = (n * (n - a), -n);
            let ([p, dp, q, dq], [p2, dp2, q2, dq2]) = (state.this, state.last);
            let next = [
                p * z - p2 * y,
                dp * z - p - dp2 * y - p2 * y_slope,
                q * z - q2 * y,
                dq * z - q - dq2 * y - q2 * y_slope,
            ];
            // The sequences grow without bound, but their quotient does not.
            let large = next[2].abs().gt(1e6);
            let scaled = |terms: [Tensor; 4]| terms.map(|term| select(large, term * 1e-6, term));
            let ((old, old_slope), (new, new_slope)) = (quotient(state.this), quotient(next));
            let far = |old: Tensor, new: Tensor| (new - old).abs().gt(EPSILON * new.abs());
            Fraction {
                n,
                last: scaled(state.this),
                this: scaled(next),
                going: far(old, new) | far(old_slope, new_slope),
            }
        },
    );
    let (f, slope) = quotient(end.this);
    x * (slope + f * (x.log() - a.digamma()))
}

#[derive(Tree, Clone)]
struct Fraction {
    n: Tensor,
    last: [Tensor; 4],
    this: [Tensor; 4],
    going: Tensor,
}

/// The quotient of a numerator and a denominator, and its derivative.
#[track_caller]
fn quotient([p, p_slope, q, q_slope]: [Tensor; 4]) -> (Tensor, Tensor) {
    let f = p / q;
    (f, (p_slope - f * q_slope) / q)
}

/// Half the distance from 1 to the next f32.
const EPSILON: f64 = 1.0 / (1 << 24) as f64;
