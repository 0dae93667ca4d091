//! Networks of agents: torsos, actor-critics, action values, and the settings that choose them.

mod actor_critic;
mod q_network;
mod settings;
mod torso;

pub use actor_critic::{ActorCritic, ActorCriticShape, Memory, Policy};
pub use q_network::{ActionValues, QDense, QHead, QHeadShape, QLayer, QNetwork};
pub use settings::{Core, Networks, Torso};
pub(crate) use torso::scaled;
pub use torso::{TorsoNet, last_action};
