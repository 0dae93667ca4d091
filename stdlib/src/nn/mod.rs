//! Networks: layers as trees of parameters, and how they are initialised. A layer acts on one example; `vmap` batches it.

mod activation;
mod initializer;
mod linear;
mod mlp;
mod orthogonal;

pub use activation::Activation;
pub use initializer::{Fan, Initializer, Law};
pub use linear::Linear;
pub use mlp::Mlp;
