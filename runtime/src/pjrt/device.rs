//! Devices of a client.

use std::fmt;
use std::sync::Arc;

use super::client::Client;
use super::ffi;

/// One addressable device.
#[derive(Clone)]
pub struct Device {
    pub(super) client: Client,
    pub(super) index: usize,
}

/// What is known of a device once and for all.
pub(super) struct DeviceData {
    pub(super) raw: *mut ffi::PJRT_Device,
    pub(super) id: i64,
    pub(super) kind: String,
}

// SAFETY: PJRT's devices may be used from any thread, and live as long as the client that owns this list.
unsafe impl Send for DeviceData {}
// SAFETY: as above.
unsafe impl Sync for DeviceData {}

impl Device {
    /// Its position in [`Client::devices`], which is what placements are written in.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// XLA's number for it.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.data().id
    }

    /// The vendor's name for its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.data().kind
    }

    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn raw(&self) -> *mut ffi::PJRT_Device {
        self.data().raw
    }

    fn data(&self) -> &DeviceData {
        // A `Device` is made only for an index that the client has.
        &self.client.inner.devices[self.index]
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.client.inner, &other.client.inner)
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.client.platform(), self.index)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}
