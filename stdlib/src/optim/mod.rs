//! Optimizers, with the values of optax: they turn gradients of any tree of parameters into updates
//! to add to the parameters.
//!
//! ```
//! use podracer_dsl::prelude::*;
//! use podracer_rl::optim::{Optimizer, Schedule, adam, chain, clip_by_global_norm};
//!
//! let optimizer = chain(clip_by_global_norm(0.5), adam(Schedule::linear(2.5e-4, 0.0, 10_000)).eps(1e-5));
//! let training = trace(f32([3]), |params| {
//!     let state = optimizer.init(&params);
//!     let ((params, _), loss) = scan((params, state), 0..100, |(params, state), _| {
//!         let (loss, grads) = value_and_grad(params, |params| params.square().sum());
//!         (optimizer.step(params, state, grads), loss)
//!     });
//!     (params, loss)
//! })?;
//! assert_eq!(training.results().to_string(), "{0: f32[3], 1: f32[100]}");
//! # Ok::<(), TraceErrors>(())
//! ```

/// Setters of an optimizer's numbers, named like the numbers.
macro_rules! setters {
    ($optimizer:ident: $($field:ident),*) => {
        impl $optimizer {$(
            #[doc = concat!("Sets [`", stringify!($optimizer), "::", stringify!($field), "`].")]
            pub fn $field(self, $field: impl Into<Number>) -> Self {
                $optimizer { $field: $field.into(), ..self }
            }
        )*}
    };
}

mod adagrad;
mod adam;
mod chain;
mod clip;
mod ema;
mod flatten;
mod lamb;
mod lion;
mod multi_steps;
mod partition;
mod radam;
mod rmsprop;
mod schedule;
mod selection;
mod sgd;

pub use adagrad::{Adagrad, AdagradState, adagrad};
pub use adam::{Adam, AdamState, adam, adamw};
pub use chain::{Chain, chain};
pub use clip::{Clip, ClipByGlobalNorm, clip, clip_by_global_norm};
pub use ema::{Ema, EmaState, ema};
pub use flatten::{Flatten, flatten};
pub use lamb::{Lamb, lamb};
pub use lion::{Lion, LionState, lion};
pub use multi_steps::{MultiSteps, MultiStepsState, multi_steps};
pub use partition::{Mask, Masked, Partition, SetToZero, masked, partition, set_to_zero};
pub use radam::{RAdam, radam};
pub use rmsprop::{RmsProp, RmsPropState, rmsprop};
pub use schedule::Schedule;
pub use selection::{Selection, SelectionOf};
pub use sgd::{Sgd, SgdState, sgd};

use crate::Number;
use podracer_dsl::prelude::*;

/// A gradient descent step, or a part of it.
pub trait Optimizer: Clone + 'static {
    /// The optimizer's state between gradient steps, for parameters `P`.
    type State<P: Tree>: Tree;

    /// The state before the first update.
    fn init<P: Tree>(&self, params: &P) -> Self::State<P>;

    /// The update to add to the parameters (its sign is already negative), and the next state.
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>);

    /// One gradient step: the next parameters and the next state.
    #[track_caller]
    fn step<P: Tree>(&self, params: P, state: Self::State<P>, grads: P) -> (P, Self::State<P>) {
        let (updates, state) = self.update(grads, state, &params);
        (apply_updates(params, updates), state)
    }
}

/// The parameters after an update: the sum leaf by leaf, in the parameters' dtypes.
#[track_caller]
pub fn apply_updates<P: Tree>(params: P, updates: P) -> P {
    params.zip_with(&updates, |param, update| param + update.astype(param.dtype()))
}

/// The Euclidean norm over all leaves, `f32[]`. Its derivative is 0 if all leaves are 0.
#[track_caller]
pub fn global_norm<P: Tree>(tree: &P) -> Tensor {
    let squares = tree.leaves().into_iter().map(|leaf| {
        // Squares of f16 overflow at 256.
        leaf.accumulator().square().sum().astype(F32)
    });
    let square = squares.sum::<Tensor>();
    let none = square.eq(0.0);
    // The square root of 0 has no derivative.
    select(none, 0.0, select(none, 1.0, square).sqrt())
}

/// `old` moved towards `new` by the share `step_size`, for target networks: `old + step_size (new -
/// old)`.
#[track_caller]
pub fn incremental_update<P: Tree>(new: &P, old: &P, step_size: impl Into<Number>) -> P {
    let step_size = step_size.into();
    new.zip_with(old, |new, old| step_size * new + (1.0 - step_size) * old)
}

/// `new` if `steps` (i32 `[]`) is a multiple of `period`, otherwise `old`, for target networks that
/// are copied.
#[track_caller]
pub fn periodic_update<P: Tree>(new: &P, old: &P, steps: Tensor, period: usize) -> P {
    tree_select(steps.rem(period as i32).eq(0), new, old)
}

/// Zeros with the parameters' types.
#[track_caller]
fn zeros_like<P: Tree>(params: &P) -> P {
    tree_map(params, Tensor::zeros_like)
}

/// A leaf times an f32 scalar, in the leaf's dtype.
#[track_caller]
fn times(scalar: Tensor, leaf: Tensor) -> Tensor {
    scalar.astype(leaf.dtype()) * leaf
}

/// The counter of a new state, `i32[]`.
#[track_caller]
fn no_updates() -> Tensor {
    zeros(I32, [])
}

/// The ratio `1 - decay^count` of a running mean from 0 to its corrected value after `count`
/// numbers. `f32[]`
#[track_caller]
fn bias_correction(decay: Number, count: Tensor) -> Tensor {
    1.0 - pow(decay.into_tensor(), count.astype(F32))
}
