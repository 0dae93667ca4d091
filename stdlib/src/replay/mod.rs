//! Experience replay in the DSL: what lanes saw and did, kept from iteration to iteration, and drawn from again.
//!
//! A [`Replay`] keeps the steps of all lanes in the order of time, each once. What it draws are windows of some steps of one
//! lane: a window of one step is a transition, [`n_step`] makes one of several, [`stack_frames`] joins observations, and a
//! recurrent agent learns from long ones. Nothing that several windows share is kept twice.
//!
//! A store is part of a run's state, which the compiled program is given and changes in place.
//!
//! # Several devices
//! Each device has the steps of its own lanes. All have equally many, so that uniform draws of `B / n` windows on each of `n`
//! devices give every window the probability that one store of all would. Priorities differ: so all devices walk along the
//! running sum of all of them, each gives the windows that are its own, and every device gets its part of the batch: the
//! draws are those of one store, whatever the devices.

mod n_step;
mod ring;
mod sum_tree;
mod windows;

pub use n_step::{NStep, n_step, stack_frames};
pub use sum_tree::SumTree;
pub use windows::{Priorities, Replay, Sample, Stored, StoredPriorities};
