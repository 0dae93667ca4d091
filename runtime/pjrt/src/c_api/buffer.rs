//! Tensors in a device's memory.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use podracer_compiler::TensorType;

use super::api::{Api, call, rest};
use super::client::{Client, no_value};
use super::device::Device;
use super::event::Event;
use super::{ffi, types};
use crate::transfers::{Direction, Transfers, count};
use crate::{Array, ArrayError, RuntimeError, memory};

/// A tensor in a device's memory, freed when dropped.
///
/// The value may still be under computation: [`Buffer::ready`] waits for it, [`Buffer::to_host`] does so by itself, and an error
/// of the computation comes out of either.
pub struct Buffer {
    raw: NonNull<ffi::PJRT_Buffer>,
    ty: TensorType,
    device: Device,
    /// The counts of the executable that produced it.
    made_by: Option<Arc<Transfers>>,
}

// SAFETY: PJRT's buffers may be used from any thread, and from several at once.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Copies host data to a device. The data is read before this returns.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`], for instance where the device's memory is full.
    pub fn from_host(array: &Array, device: &Device) -> Result<Self, RuntimeError> {
        Self::upload(array.ty(), array.bytes(), device, None)
    }

    /// Copies the bytes of a value of type `ty` to a device; `counted_for` counts them too.
    pub(super) fn upload(
        ty: &TensorType,
        bytes: &[u8],
        device: &Device,
        counted_for: Option<&Transfers>,
    ) -> Result<Self, RuntimeError> {
        if bytes.len() != ty.bytes() {
            return Err(ArrayError::wrong_bytes(ty.clone(), bytes.len()).into());
        }
        let client = device.client();
        let dims = types::dims(ty);
        let mut args = ffi::PJRT_Client_BufferFromHostBuffer_Args {
            client: client.raw(),
            data: bytes.as_ptr().cast(),
            type_: types::to_c(ty.dtype),
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            // The only semantics that never alias the caller's memory.
            host_buffer_semantics: ffi::PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
            device: device.raw(),
            ..rest()
        };
        // SAFETY: there are as many bytes as the type has, and they live and stay unchanged during the call.
        let raw = unsafe {
            call!(client.api(), PJRT_Client_BufferFromHostBuffer, &mut args)?;
            drop(Event::new(args.done_with_host_buffer, client));
            args.buffer
        };
        count(counted_for, Direction::ToDevice, bytes.len());
        // SAFETY: the new buffer is ours.
        unsafe { Self::new(raw, ty.clone(), device, None) }
            .ok_or_else(|| no_value("PJRT_Client_BufferFromHostBuffer"))
    }

    /// Owns the plugin's buffer; `None` if it is null.
    ///
    /// # Safety
    /// `raw` is null, or a buffer of this type on this device that has no other owner.
    pub(super) unsafe fn new(
        raw: *mut ffi::PJRT_Buffer,
        ty: TensorType,
        device: &Device,
        made_by: Option<Arc<Transfers>>,
    ) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, ty, device: device.clone(), made_by })
    }

    /// Element type and shape.
    #[must_use]
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The device that holds it in its memory.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Copies the value to the host, waiting for it.
    ///
    /// # Errors
    /// [`RuntimeError::Deleted`], or the error of the computation that was to make the value.
    pub fn to_host(&self) -> Result<Array, RuntimeError> {
        self.expect_live()?;
        let mut bytes = memory::zeros(&self.ty.to_string(), self.ty.bytes())?;
        // The device may hold it in another layout; the host's is row-major, the last axis innermost.
        let minor_to_major: Vec<i64> = (0..self.ty.rank() as i64).rev().collect();
        let mut layout = ffi::PJRT_Buffer_MemoryLayout { ..rest() };
        layout.type_ = ffi::PJRT_Buffer_MemoryLayout_Type_Tiled;
        layout.__bindgen_anon_1.tiled = ffi::PJRT_Buffer_MemoryLayout_Tiled {
            minor_to_major: minor_to_major.as_ptr(),
            minor_to_major_size: minor_to_major.len(),
            ..rest()
        };
        let mut args = ffi::PJRT_Buffer_ToHostBuffer_Args {
            src: self.raw(),
            host_layout: &mut layout,
            dst: bytes.as_mut_ptr().cast(),
            dst_size: bytes.len(),
            ..rest()
        };
        // SAFETY: `bytes` has as many bytes as it says, and lives until the event below has been waited for.
        let event = unsafe {
            call!(self.api(), PJRT_Buffer_ToHostBuffer, &mut args)?;
            Event::new(args.event, self.client())
        };
        event.map_or(Ok(()), |event| event.wait())?;
        count(self.made_by.as_deref(), Direction::ToHost, bytes.len());
        Ok(Array::from_bytes(self.ty.clone(), bytes)?)
    }

    /// Copies the value to another device of the same client, or to another place on the same.
    ///
    /// # Errors
    /// [`RuntimeError::Deleted`]; [`RuntimeError::Options`] for a device of another client; [`RuntimeError::Xla`].
    pub fn copy_to(&self, device: &Device) -> Result<Self, RuntimeError> {
        self.expect_live()?;
        if !Arc::ptr_eq(&self.client().inner, &device.client.inner) {
            let problem = format!(
                "cannot copy from {} to {device} of another client: go through the host",
                self.device
            );
            return Err(RuntimeError::Options(problem));
        }
        // XLA:CPU and others refuse a copy to the device that has the buffer; their memory is what to name then.
        let raw =
            if *device == self.device { self.copy_in_place()? } else { self.copy_across(device)? };
        count(self.made_by.as_deref(), Direction::BetweenDevices, self.ty.bytes());
        // SAFETY: the new buffer is ours, of the same type.
        unsafe { Self::new(raw, self.ty.clone(), device, None) }
            .ok_or_else(|| no_value("PJRT_Buffer_CopyToDevice"))
    }

    fn copy_across(&self, device: &Device) -> Result<*mut ffi::PJRT_Buffer, RuntimeError> {
        let mut args = ffi::PJRT_Buffer_CopyToDevice_Args {
            buffer: self.raw(),
            dst_device: device.raw(),
            ..rest()
        };
        // SAFETY: buffer and device are live and of one client.
        unsafe { call!(self.api(), PJRT_Buffer_CopyToDevice, &mut args) }?;
        Ok(args.dst_buffer)
    }

    fn copy_in_place(&self) -> Result<*mut ffi::PJRT_Buffer, RuntimeError> {
        let mut memory = ffi::PJRT_Buffer_Memory_Args { buffer: self.raw(), ..rest() };
        // SAFETY: the buffer is live.
        unsafe { call!(self.api(), PJRT_Buffer_Memory, &mut memory) }?;
        let mut args = ffi::PJRT_Buffer_CopyToMemory_Args {
            buffer: self.raw(),
            dst_memory: memory.memory,
            ..rest()
        };
        // SAFETY: buffer and memory are live and of one client.
        unsafe { call!(self.api(), PJRT_Buffer_CopyToMemory, &mut args) }?;
        Ok(args.dst_buffer)
    }

    /// The computation or copy that makes the value.
    ///
    /// # Errors
    /// [`RuntimeError::Deleted`], [`RuntimeError::Xla`].
    pub fn ready(&self) -> Result<Event, RuntimeError> {
        self.expect_live()?;
        let mut args = ffi::PJRT_Buffer_ReadyEvent_Args { buffer: self.raw(), ..rest() };
        // SAFETY: the buffer is live, and the event is ours.
        let event = unsafe {
            call!(self.api(), PJRT_Buffer_ReadyEvent, &mut args)?;
            Event::new(args.event, self.client())
        };
        event.ok_or_else(|| no_value("PJRT_Buffer_ReadyEvent"))
    }

    /// Frees the device's memory now, for every borrower of the buffer. Dropping the buffer is the
    /// usual way.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn delete(&self) -> Result<(), RuntimeError> {
        let mut args = ffi::PJRT_Buffer_Delete_Args { buffer: self.raw(), ..rest() };
        // SAFETY: the handle is live; deleting twice is allowed.
        unsafe { call!(self.api(), PJRT_Buffer_Delete, &mut args) }
    }

    /// Tells if the buffer was deleted, or donated to a computation.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn is_deleted(&self) -> Result<bool, RuntimeError> {
        let mut args = ffi::PJRT_Buffer_IsDeleted_Args { buffer: self.raw(), ..rest() };
        // SAFETY: the handle is live.
        unsafe { call!(self.api(), PJRT_Buffer_IsDeleted, &mut args) }?;
        Ok(args.is_deleted)
    }

    /// Address of the value, to see that a donated buffer's memory was reused. It must not be dereferenced.
    ///
    /// # Errors
    /// [`RuntimeError::Deleted`], [`RuntimeError::Xla`].
    pub fn address(&self) -> Result<usize, RuntimeError> {
        self.expect_live()?;
        let mut args = ffi::PJRT_Buffer_UnsafePointer_Args { buffer: self.raw(), ..rest() };
        // SAFETY: the handle is live.
        unsafe { call!(self.api(), PJRT_Buffer_UnsafePointer, &mut args) }?;
        Ok(args.buffer_pointer)
    }

    pub(super) fn raw(&self) -> *mut ffi::PJRT_Buffer {
        self.raw.as_ptr()
    }

    pub(super) fn client(&self) -> &Client {
        self.device.client()
    }

    pub(super) fn api(&self) -> Api {
        self.client().api()
    }

    /// The counts of transfers that include this buffer's, in addition to the process's counts.
    pub(super) fn made_by(&self) -> Option<&Transfers> {
        self.made_by.as_deref()
    }

    pub(super) fn expect_live(&self) -> Result<(), RuntimeError> {
        if self.is_deleted()? { Err(RuntimeError::Deleted(self.ty.clone())) } else { Ok(()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut args = ffi::PJRT_Buffer_Destroy_Args { buffer: self.raw(), ..rest() };
        // SAFETY: `self` owned the handle. Computations that still read the memory keep it by themselves.
        let destroyed = unsafe { call!(self.api(), PJRT_Buffer_Destroy, &mut args) };
        if let Err(error) = destroyed {
            tracing::warn!(%error, "cannot free a buffer");
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} on {})", self.ty, self.device)
    }
}
