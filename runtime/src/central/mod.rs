//! Central inference, as in SEED RL (Espeholt et al. 2020). Workers step environments and know no model; acting and learning are here.
//!
//! Inference threads, one for each inference device, gather the steps of workers into batches and
//! answer with actions. The agent's memory of a lane is on the lane's inference device. Complete
//! unrolls are taken out on that device, and the prefetch thread divides them over the learner
//! devices. The learner thread, parameters, supply and statuses come from [`crate::learning`]. The
//! computations are the functions of a [`HostLoopFunctions`](crate::HostLoopFunctions).
//!
//! # Invariants
//! - A lane belongs to at most one worker, and is reset to its start before it belongs to another
//!   worker.
//! - A padding lane of a batch writes nothing.
//! - A worker that leaves takes with it its unfinished unrolls, and nothing else.
//! - An observation is on the host only during its inference. Unrolls and parameters go from device
//!   to device.
//! - Threads wait for each other only in [`crate::learning`]'s supply and parameters, and in
//!   channels. A thread that ends drops its ends of the channels, so no failure of a thread leaves
//!   another thread waiting.

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
