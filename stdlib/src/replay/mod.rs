//! Experience replay in the DSL: data of lanes that is kept across iterations and drawn in batches.
//!
//! A [`Replay`] keeps every lane's steps in the order of time, each once. It draws windows of
//! consecutive steps of one lane. A window of one step is a transition, [`n_step`] makes a
//! transition from several steps, [`stack_frames`] joins observations, and a recurrent agent learns
//! from long windows. Data that several windows share is stored once.
//!
//! A store is part of a run's state, which the compiled program receives and updates in place.
//!
//! # Several devices
//! Each device has the steps of its own lanes. All devices have equally many steps, so uniform
//! draws of `B / n` windows on each of `n` devices give every window the same probability as in a
//! single store. Priorities differ between devices. So all devices search the running sum over all
//! priorities, each provides its own windows, and every device gets its part of the batch. The
//! draws equal those from a single store, for any number of devices.

mod n_step;
mod ring;
mod sum_tree;
mod windows;

pub use n_step::{NStep, n_step, stack_frames};
pub use sum_tree::SumTree;
pub use windows::{Priorities, Replay, Sample, Stored, StoredPriorities};
