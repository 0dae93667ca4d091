//! Physics of articulated bodies, with MuJoCo's names, units and numbers.
//!
//! - [`mjcf`]: MJCF text as checked elements. The crate's own `spec` makes bodies, joints and geoms of them, with default classes.
//! - [`model`]: the compiled model. Its arrays equal the arrays of the same name in `mujoco.MjModel`.
//!
//! A model that asks for dynamics that are not covered is an error with line and column. Nothing that changes the
//! dynamics is ignored.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod dynamics;
mod error;
mod math;
pub mod mjcf;
pub mod model;
mod real;
mod spec;
mod vector;

pub use dynamics::{Data, Forward};
pub use error::{Error, ModelResult, XmlPlace};
pub use model::Model;
