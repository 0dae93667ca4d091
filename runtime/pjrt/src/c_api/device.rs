//! Devices of a client.

use std::fmt;
use std::sync::Arc;

use super::client::{Client, DeviceData};
use super::ffi;
use crate::RuntimeError;

/// A device of a client.
#[derive(Clone)]
pub struct Device {
    pub(super) client: Client,
    pub(super) index: usize,
}

impl Client {
    /// The devices of this process, in XLA's order.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        (0..self.inner.devices.len()).map(|index| Device { client: self.clone(), index }).collect()
    }

    /// The device at `index` of [`Client::devices`].
    ///
    /// # Errors
    /// [`RuntimeError::NoDevice`].
    pub fn device(&self, index: usize) -> Result<Device, RuntimeError> {
        let devices = self.inner.devices.len();
        if index >= devices {
            return Err(RuntimeError::NoDevice { index, devices });
        }
        Ok(Device { client: self.clone(), index })
    }
}

impl Device {
    /// The device's position in [`Client::devices`], which placements use as its name.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// XLA's number of the device.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.data().id
    }

    /// The vendor's name of the device's kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.data().kind
    }

    /// The client that the device belongs to.
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
