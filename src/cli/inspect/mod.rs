//! The commands that look at a run or at a training: its metrics, its episodes, its time and its memory.

#[cfg(feature = "plots")]
mod curves;
pub(super) mod explain;
mod memory;
pub(super) mod play;
#[cfg(feature = "plots")]
pub(super) mod plot;
pub(super) mod profile;
#[cfg(feature = "plots")]
pub(super) mod report;
mod versus;
#[cfg(feature = "plots")]
pub(super) mod watch;
