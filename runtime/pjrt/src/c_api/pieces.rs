//! Large arrays are transferred between host and device in pieces: the host never holds a second
//! copy of the whole.
//!
//! Plugins that cannot transfer pieces, and devices with a memory layout that is not row-major,
//! transfer the whole array at once.

use std::ptr::{self, NonNull};

use podracer_compiler::TensorType;

use super::api::{call, rest, slice};
use super::client::no_value;
use super::device::Device;
use super::event::Event;
use super::{Buffer, ffi, types};
use crate::error::ErrorCode;
use crate::transfers::{Direction, count};
use crate::{Array, ArrayError, RuntimeError, memory};

/// Bytes of a piece. Smaller arrays are transferred as a whole.
pub const PIECE: usize = 8 << 20;

impl Buffer {
    /// Passes the value's bytes to `sink`, in order, after waiting for the value.
    ///
    /// # Errors
    /// The errors of [`Buffer::to_host`], and the errors of `sink`, which end the reading.
    pub fn read<E: From<RuntimeError>>(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = self.ty().bytes();
        if size <= PIECE || !self.is_row_major()? {
            return sink(self.to_host()?.bytes());
        }
        let mut piece = memory::zeros("a piece of an array", PIECE)?;
        for offset in (0..size).step_by(PIECE) {
            let length = PIECE.min(size - offset);
            match self.read_piece(offset, &mut piece[..length]) {
                Err(error) if offset == 0 && is_unimplemented(&error) => {
                    return sink(self.to_host()?.bytes());
                }
                read => read?,
            }
            sink(&piece[..length])?;
        }
        count(self.made_by(), Direction::ToHost, size);
        Ok(())
    }

    fn read_piece(&self, offset: usize, into: &mut [u8]) -> Result<(), RuntimeError> {
        let mut args = ffi::PJRT_Buffer_CopyRawToHost_Args {
            buffer: self.raw(),
            dst: into.as_mut_ptr().cast(),
            offset: offset as i64,
            transfer_size: into.len() as i64,
            ..rest()
        };
        // SAFETY: `into` has as many bytes as it says, and lives until the event below has been waited for.
        let event = unsafe {
            call!(self.api(), PJRT_Buffer_CopyRawToHost, &mut args)?;
            Event::new(args.event, self.client())
        };
        event.map_or(Ok(()), |event| event.wait())
    }

    /// Tells if the device holds the elements as the host does: in order, without tiles or padding.
    fn is_row_major(&self) -> Result<bool, RuntimeError> {
        self.expect_live()?;
        let mut args = ffi::PJRT_Buffer_GetMemoryLayout_Args { buffer: self.raw(), ..rest() };
        let mut size = ffi::PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: self.raw(), ..rest() };
        // SAFETY: the buffer is live.
        let known = unsafe {
            call!(self.api(), PJRT_Buffer_GetMemoryLayout, &mut args)
                .and_then(|()| call!(self.api(), PJRT_Buffer_OnDeviceSizeInBytes, &mut size))
        };
        match known {
            Err(error) if is_unimplemented(&error) => return Ok(false),
            known => known?,
        }
        if args.layout.type_ != ffi::PJRT_Buffer_MemoryLayout_Type_Tiled {
            return Ok(false);
        }
        // SAFETY: the type says which of the union's fields is set; its lists live as long as the buffer.
        let (tiles, minor_to_major) = unsafe {
            let tiled = args.layout.__bindgen_anon_1.tiled;
            (tiled.num_tiles, slice(tiled.minor_to_major, tiled.minor_to_major_size))
        };
        let descending = (0..self.ty().rank() as i64).rev();
        Ok(tiles == 0
            && minor_to_major.iter().copied().eq(descending)
            && size.on_device_size_in_bytes == self.ty().bytes())
    }
}

fn is_unimplemented(error: &RuntimeError) -> bool {
    matches!(error, RuntimeError::Xla { code: ErrorCode::Unimplemented, .. })
}

/// An array on its way to a device: its bytes are sent in order, and [`Upload::finish`] gives the buffer.
pub struct Upload {
    ty: TensorType,
    device: Device,
    sent: usize,
    way: Way,
}

enum Way {
    /// The bytes so far; they go to the device together.
    Together(Vec<u8>),
    /// The bytes go to the device as they come.
    InPieces(TransferManager),
}

impl Upload {
    /// Makes room for an array on a device, or on the host if it is small.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`], for instance where the device's memory is full; [`RuntimeError::OutOfMemory`].
    pub fn begin(ty: &TensorType, device: &Device) -> Result<Self, RuntimeError> {
        let manager = match ty.bytes() {
            0..=PIECE => None,
            _ => match TransferManager::new(ty, device) {
                Err(error) if is_unimplemented(&error) => None,
                manager => Some(manager?),
            },
        };
        let way = match manager {
            Some(manager) => Way::InPieces(manager),
            None => Way::Together(memory::room(&ty.to_string(), ty.bytes())?),
        };
        Ok(Upload { ty: ty.clone(), device: device.clone(), sent: 0, way })
    }

    /// Bytes that are still to be sent.
    pub fn missing(&self) -> usize {
        self.ty.bytes() - self.sent
    }

    /// Sends the next bytes, at most [`Upload::missing`]. They are read before this returns.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), RuntimeError> {
        assert!(bytes.len() <= self.missing(), "more bytes than {} has", self.ty);
        match &mut self.way {
            Way::Together(all) => all.extend(bytes),
            Way::InPieces(manager) => {
                let last = self.sent + bytes.len() == self.ty.bytes();
                manager.send(self.sent, bytes, last)?;
            }
        }
        self.sent += bytes.len();
        Ok(())
    }

    /// The buffer, after all bytes were sent.
    ///
    /// # Errors
    /// [`RuntimeError::Array`] where bytes are missing; [`RuntimeError::Xla`].
    pub fn finish(self) -> Result<Buffer, RuntimeError> {
        let manager = match self.way {
            Way::Together(bytes) => {
                return Buffer::from_host(&Array::from_bytes(self.ty, bytes)?, &self.device);
            }
            Way::InPieces(manager) => manager,
        };
        if self.sent != self.ty.bytes() {
            return Err(ArrayError::wrong_bytes(self.ty, self.sent).into());
        }
        let buffer = manager.buffer(self.ty)?;
        count(None, Direction::ToDevice, self.sent);
        Ok(buffer)
    }
}

/// PJRT's handle of a buffer that is being filled.
struct TransferManager {
    raw: NonNull<ffi::PJRT_AsyncHostToDeviceTransferManager>,
    device: Device,
    /// True once all bytes were sent.
    complete: bool,
}

impl TransferManager {
    fn new(ty: &TensorType, device: &Device) -> Result<Self, RuntimeError> {
        let client = device.client();
        let mut memory = ffi::PJRT_Device_DefaultMemory_Args { device: device.raw(), ..rest() };
        // SAFETY: the device is live.
        unsafe { call!(client.api(), PJRT_Device_DefaultMemory, &mut memory) }?;
        let dims = types::dims(ty);
        let mut shape = ffi::PJRT_ShapeSpec {
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            element_type: types::to_c(ty.dtype),
            ..rest()
        };
        let mut args = ffi::PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
            client: client.raw(),
            shape_specs: &mut shape,
            num_shape_specs: 1,
            // Row-major, the last axis innermost.
            device_layouts: ptr::null_mut(),
            memory: memory.memory,
            ..rest()
        };
        // SAFETY: the shape outlives the call; client and memory are live.
        unsafe { call!(client.api(), PJRT_Client_CreateBuffersForAsyncHostToDevice, &mut args) }?;
        let raw = NonNull::new(args.transfer_manager)
            .ok_or_else(|| no_value("PJRT_Client_CreateBuffersForAsyncHostToDevice"))?;
        Ok(TransferManager { raw, device: device.clone(), complete: false })
    }

    fn send(&mut self, offset: usize, bytes: &[u8], last: bool) -> Result<(), RuntimeError> {
        let client = self.device.client();
        let mut args = ffi::PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
            transfer_manager: self.raw.as_ptr(),
            buffer_index: 0,
            data: bytes.as_ptr().cast(),
            offset: offset as i64,
            transfer_size: bytes.len() as i64,
            is_last_transfer: last,
            ..rest()
        };
        // SAFETY: the bytes lie within the buffer, and live until the event below has been waited for.
        let event = unsafe {
            call!(client.api(), PJRT_AsyncHostToDeviceTransferManager_TransferData, &mut args)?;
            Event::new(args.done_with_h2d_transfer, client)
        };
        self.complete |= last;
        event.map_or(Ok(()), |event| event.wait())
    }

    /// The buffer that was filled.
    fn buffer(&self, ty: TensorType) -> Result<Buffer, RuntimeError> {
        let mut args = ffi::PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
            transfer_manager: self.raw.as_ptr(),
            buffer_index: 0,
            ..rest()
        };
        let api = self.device.client().api();
        // SAFETY: the manager is live and has one buffer.
        unsafe { call!(api, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, &mut args) }?;
        // SAFETY: the buffer is ours; it was made for this type and device.
        unsafe { Buffer::new(args.buffer_out, ty, &self.device, None) }
            .ok_or_else(|| no_value("PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer"))
    }
}

impl Drop for TransferManager {
    fn drop(&mut self) {
        let api = self.device.client().api();
        let transfer_manager = self.raw.as_ptr();
        if !self.complete {
            // A waiting reader must not hang because the rest of the bytes never arrives.
            let message = "the upload was given up";
            let mut args = ffi::PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
                transfer_manager,
                buffer_index: 0,
                error_code: ffi::PJRT_Error_Code_CANCELLED,
                error_message: message.as_ptr().cast(),
                error_message_size: message.len(),
                ..rest()
            };
            // SAFETY: the manager is live, and the message outlives the call.
            let set = unsafe {
                call!(api, PJRT_AsyncHostToDeviceTransferManager_SetBufferError, &mut args)
            };
            if let Err(error) = set {
                tracing::warn!(%error, "cannot give up an upload");
            }
        }
        let mut args =
            ffi::PJRT_AsyncHostToDeviceTransferManager_Destroy_Args { transfer_manager, ..rest() };
        // SAFETY: `self` owned the handle.
        let freed = unsafe { call!(api, PJRT_AsyncHostToDeviceTransferManager_Destroy, &mut args) };
        if let Err(error) = freed {
            tracing::warn!(%error, "cannot free an upload");
        }
    }
}
