//! Episodes to watch: environments on the host that draw every state, and the ways to show a
//! picture.
//!
//! # Invariants
//! - An environment draws one kind of picture
//!   ([`Environment::render`](podracer_envs::Environment::render), or Gymnasium's `rgb_array`);
//!   terminal text and files are made from it.
//! - Drawing changes nothing in an episode: an evaluation with the same draws has the same states.

mod animation;
#[cfg(feature = "plots")]
mod panel;
mod picture;
mod reel;
mod rows;
mod stage;
mod versus;

pub use animation::{Animation, Format};
#[cfg(feature = "plots")]
pub use panel::{Panel, captioned};
pub use picture::{Colours, Picture};
pub use reel::{End, Frame, Reel, Shown};
pub use rows::Lines;
pub use stage::of_servers;
pub use stage::{Pictures, of_dsl, of_observations};
pub use versus::Versus;
