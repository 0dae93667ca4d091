//! Waiting for asynchronous work.

use std::ptr::NonNull;

use super::api::{Api, call, rest};
use super::client::Client;
use super::ffi;
use crate::RuntimeError;

/// Asynchronous work of a client: a computation or a copy.
pub struct Event {
    raw: NonNull<ffi::PJRT_Event>,
    client: Client,
}

// SAFETY: PJRT's objects may be used from any thread, and from several at once.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Owns the plugin's event; `None` if it is null.
    ///
    /// # Safety
    /// `raw` is null, or an event of this client's plugin that has no other owner.
    pub(super) unsafe fn new(raw: *mut ffi::PJRT_Event, client: &Client) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, client: client.clone() })
    }

    fn api(&self) -> Api {
        self.client.api()
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    /// The error that the work ended in.
    pub fn wait(&self) -> Result<(), RuntimeError> {
        let mut args = ffi::PJRT_Event_Await_Args { event: self.raw.as_ptr(), ..rest() };
        // SAFETY: the event lives as long as `self`.
        unsafe { call!(self.api(), PJRT_Event_Await, &mut args) }
    }

    /// Tells if the work is done, be it in an error.
    ///
    /// # Errors
    /// The plugin's, of the question and not of the work.
    pub fn is_ready(&self) -> Result<bool, RuntimeError> {
        let mut args = ffi::PJRT_Event_IsReady_Args { event: self.raw.as_ptr(), ..rest() };
        // SAFETY: the event lives as long as `self`.
        unsafe { call!(self.api(), PJRT_Event_IsReady, &mut args) }?;
        Ok(args.is_ready)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let mut args = ffi::PJRT_Event_Destroy_Args { event: self.raw.as_ptr(), ..rest() };
        // SAFETY: `self` owned the event, and it is not used after this.
        let destroyed = unsafe { call!(self.api(), PJRT_Event_Destroy, &mut args) };
        if let Err(error) = destroyed {
            tracing::warn!(%error, "cannot free an event");
        }
    }
}
