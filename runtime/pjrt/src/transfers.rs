//! Counters of transfers between host and devices.
//!
//! "The loop never leaves the device" is a claim that a test can check: take [`Transfers::counts`] before and after, and subtract.
//!
//! # What is counted, and for whom
//! - *To a device*: [`crate::Buffer::from_host`] and [`crate::Executable::upload`]. The latter counts for that executable too.
//! - *To the host*: [`crate::Buffer::to_host`]. It also counts for the executable that produced the
//!   buffer, regardless of the caller.
//! - *Between devices*: [`crate::Buffer::copy_to`]; it counts for the executable in the same way.
//!   The copy has no executable.
//!
//! - *Launches*: calls of [`crate::Executable::execute`] that were launched, regardless of the
//!   number of replicas.
//!
//! Everything counts for the process ([`process_transfers`]). Transfers inside a program (infeed,
//! outfeed, send, recv, host callbacks) are not counted: [`crate::HloModule::host_transfers`] lists
//! them.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that only grow.
#[derive(Debug, Default)]
pub struct Transfers {
    to_device: Counter,
    to_host: Counter,
    between_devices: Counter,
    launches: AtomicU64,
}

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    const fn new() -> Self {
        Self { calls: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    fn add(&self, bytes: usize) {
        self.calls.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn count(&self) -> Count {
        Count { calls: self.calls.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// Calls and bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of transfers.
    pub calls: u64,
    /// Bytes in all of them.
    pub bytes: u64,
}

/// Transfers and launches up to some moment. The difference of two are those between the moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Host to device.
    pub to_device: Count,
    /// Device to host.
    pub to_host: Count,
    /// Device to device.
    pub between_devices: Count,
    /// Programs launched.
    pub launches: u64,
}

static PROCESS: Transfers = Transfers {
    to_device: Counter::new(),
    to_host: Counter::new(),
    between_devices: Counter::new(),
    launches: AtomicU64::new(0),
};

/// Transfers and launches of this process so far, through all clients.
#[must_use]
pub fn process_transfers() -> TransferCounts {
    PROCESS.counts()
}

#[derive(Clone, Copy)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
    BetweenDevices,
}

/// Counts one transfer for the process and for `executable`, if there is one to count it for.
pub(crate) fn count(executable: Option<&Transfers>, direction: Direction, bytes: usize) {
    for transfers in executable.into_iter().chain([&PROCESS]) {
        match direction {
            Direction::ToDevice => &transfers.to_device,
            Direction::ToHost => &transfers.to_host,
            Direction::BetweenDevices => &transfers.between_devices,
        }
        .add(bytes);
    }
}

/// Counts one launch for the process and for `executable`.
pub(crate) fn count_launch(executable: &Transfers) {
    for transfers in [executable, &PROCESS] {
        transfers.launches.fetch_add(1, Relaxed);
    }
}

impl Transfers {
    /// The counts as of now.
    #[must_use]
    pub fn counts(&self) -> TransferCounts {
        TransferCounts {
            to_device: self.to_device.count(),
            to_host: self.to_host.count(),
            between_devices: self.between_devices.count(),
            launches: self.launches.load(Relaxed),
        }
    }
}

macro_rules! fieldwise {
    ($($trait:ident::$method:ident $op:tt $type:ident { $($field:ident),+ })+) => {$(
        impl $trait for $type {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self { $($field: self.$field $op other.$field),+ }
            }
        }
    )+};
}

fieldwise! {
    Add::add + Count { calls, bytes }
    Sub::sub - Count { calls, bytes }
    Add::add + TransferCounts { to_device, to_host, between_devices, launches }
    Sub::sub - TransferCounts { to_device, to_host, between_devices, launches }
}
