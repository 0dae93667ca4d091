//! The standard library against the values of rlax, optax, flax, jax.nn and distrax, by the reference semantics.

mod action_values;
mod agent_loop;
mod any_agent;
mod composed;
mod distributions;
mod exploration;
mod frames;
mod golden;
mod impala;
mod iterate;
mod lanes;
mod layers;
mod legal_actions;
mod losses;
mod networks;
mod nn;
mod normalized;
mod off_policy;
mod optim;
mod population;
mod recurrent_ppo;
mod replay;
mod replayed;
mod returns;
mod skipped;
