//! Central inference, as in SEED RL (Espeholt et al. 2020). Workers step environments and know no model; acting and learning are here.
//!
//! Inference threads, one for each inference device, gather the steps of workers into batches and answer with actions. All
//! that acting remembers of a lane lives on its inference device. Complete unrolls are taken out there; the prefetch thread
//! divides them over the learner devices, and the learner thread is [`crate::learning`]'s, as are parameters, supply and
//! statuses. What is computed are the functions of a [`HostLoopFunctions`](crate::HostLoopFunctions).
//!
//! # Invariants
//! - A lane belongs to one worker at most, and is put back to its start before it belongs to another.
//! - A padding lane of a batch writes nothing.
//! - A worker that leaves takes its unfinished unrolls with it, and nothing else.
//! - No observation is on the host for longer than its inference. Unrolls and parameters go from device to device.
//! - Threads wait for each other only in [`crate::learning`]'s supply and parameters, and in channels whose other ends are
//!   dropped by a thread that ends: no failure of a thread leaves another one waiting.

mod batch;
mod capacity;
mod check;
mod compile;
mod events;
mod inference;
mod lanes;
mod measure;
mod missing;
mod newcomers;
mod pace;
mod prefetch;
mod programs;
mod run;
mod unrolls;
mod working;

pub use measure::CentralMeasures;
pub use podracer_envs::host::Latencies;
pub use programs::CentralLoop;
pub use run::CentralRun;
