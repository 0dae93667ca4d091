//! The standard library against the values of rlax, optax, flax, jax.nn and distrax, by the reference semantics.

mod agent_loop;
mod distributions;
mod golden;
mod impala;
mod losses;
mod networks;
mod nn;
mod normalized;
mod optim;
mod recurrent_ppo;
mod returns;
mod skipped;
