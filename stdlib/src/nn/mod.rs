//! Networks: layers as trees of parameters, and their initialisation. A layer acts on one example;
//! `vmap` batches it.

mod activation;
mod attention;
mod conv2d;
mod conv_net;
mod dueling;
mod embedding;
mod ensemble;
mod gru;
mod initializer;
mod linear;
mod lstm;
mod mlp;
mod noisy_linear;
mod norm;
mod orthogonal;
mod residual_net;

pub use activation::Activation;
pub use attention::{MultiHeadAttention, causal_mask, dot_product_attention, episode_mask};
pub use conv_net::ConvNet;
pub use conv2d::Conv2d;
pub use dueling::{DuelingHead, dueling};
pub use embedding::Embedding;
pub use ensemble::Ensemble;
pub use gru::Gru;
pub use initializer::{Fan, Initializer, Law};
pub use linear::Linear;
pub use lstm::{Lstm, LstmState};
pub use mlp::Mlp;
pub use noisy_linear::NoisyLinear;
pub use norm::{LayerNorm, RmsNorm};
pub use residual_net::{ResidualBlock, ResidualNet, ResidualSection};
