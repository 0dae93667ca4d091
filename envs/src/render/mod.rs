//! Pictures of states, drawn in the DSL: [`Environment::render`](crate::Environment::render) makes
//! a picture of a state, in any program. A terminal and a GIF show the same picture, each with its
//! own scaling.
//!
//! A picture is u8 `[height, width, 3]`: red, green and blue. A [`Canvas`] has coordinates in the
//! units of the environment, such as metres or cells. A [`Shape`] is a signed distance, so that
//! edges are smooth in any size.
//!
//! ```
//! use podracer_dsl::prelude::*;
//! use podracer_envs::render::{Align, Canvas, Colour, Shape};
//!
//! let picture = eval_shape(f32([]), |angle| {
//!     let pole = Shape::rectangle(0.0, -0.5, 0.1, 1.0).rotate(angle);
//!     Canvas::new(2.0, 4.0, Colour::BOARD)
//!         .fill(&pole.translate(2.0, 1.5), Colour::ORANGE)
//!         .fill(&Shape::disc(2.0, 1.5, 0.1), Colour::BLACK)
//!         .text("a pole", (2.0, 1.8), 0.1, Align::Center, Colour::TEXT)
//!         .finish()
//! })?;
//! assert_eq!(picture.leaves()[0].1, TensorType::new(U8, [160, 320, 3]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod board;
mod canvas;
mod colour;
mod glyphs;
pub(crate) mod scenery;
mod shape;
mod text;

pub use canvas::Canvas;
pub use colour::{Colour, Paint};
pub use glyphs::CHARACTERS;
pub use shape::Shape;
pub use text::Align;
