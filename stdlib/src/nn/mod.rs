//! Networks: layers as trees of parameters, and how they are initialised. A layer acts on one example; `vmap` batches it.

mod activation;
mod conv2d;
mod conv_net;
mod initializer;
mod linear;
mod lstm;
mod mlp;
mod orthogonal;
mod residual_net;

pub use activation::Activation;
pub use conv_net::ConvNet;
pub use conv2d::Conv2d;
pub use initializer::{Fan, Initializer, Law};
pub use linear::Linear;
pub use lstm::{Lstm, LstmState};
pub use mlp::Mlp;
pub use residual_net::{ResidualBlock, ResidualNet, ResidualSection};
