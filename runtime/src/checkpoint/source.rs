//! The arrays of a checkpoint, at any location: fetched on demand, in pieces.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use podracer_compiler::TensorType;
use podracer_dsl::prelude::{Path, Tree};

use super::error::{CheckpointError, failed};
use crate::pjrt::memory;
use crate::pjrt::{self, PIECE, Upload};
use crate::tree::{Device, DeviceArray, OnDevice, Placement};
use crate::{Array, Buffer, RuntimeError, World};

/// An array of a checkpoint: on the host, on devices, or in a file. Its bytes are fetched on
/// demand.
///
/// An array on devices borrows their buffers, so that no program can take over their memory before
/// it is written:
///
/// ```compile_fail,E0505
/// # use podracer_runtime::{AnakinProgram, AnakinState, Checkpoint, CheckpointError, Checkpoints};
/// # fn save(
/// #     anakin: AnakinProgram<(), (), (), ()>,
/// #     state: AnakinState<(), ()>,
/// #     checkpoints: Checkpoints,
/// # ) -> Result<(), CheckpointError> {
/// let mut checkpoint = Checkpoint::default();
/// checkpoint.insert("state.", state.named_sources());
/// let _ = anakin.run(state);
/// checkpoints.save(&checkpoint)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ArraySource<'a> {
    ty: TensorType,
    place: DataSource<'a>,
}

#[derive(Clone, Debug)]
enum DataSource<'a> {
    Host(Cow<'a, Array>),
    /// Parts of the leading axis, in order, and the processes that have equally many parts each.
    /// The parts of a process follow the parts of the previous process.
    Devices(Vec<&'a Buffer>, Option<World>),
    /// The bytes from `start` on.
    File {
        file: Arc<File>,
        path: Arc<PathBuf>,
        start: u64,
    },
}

impl<'a> ArraySource<'a> {
    /// A leaf with one buffer on every device; the devices of each other process have as many.
    pub(crate) fn of_devices(
        buffers: impl ExactSizeIterator<Item = &'a Buffer>,
        placement: Placement,
        world: Option<World>,
    ) -> Self {
        let count = placement.parts(buffers.len());
        let parts: Vec<&Buffer> = buffers.take(count).collect();
        let first = parts.first().expect("a leaf has a buffer on every device");
        let world = world.filter(|_| placement == Placement::Sharded);
        let members = count * world.map_or(1, World::size);
        let ty = placement.global(first.ty().clone(), members);
        ArraySource { ty, place: DataSource::Devices(parts, world) }
    }

    /// Sends this process's parts to the first process, which reads the array. If the first process
    /// has the whole array, nothing is sent.
    pub(super) fn give(&self) -> Result<(), CheckpointError> {
        match &self.place {
            DataSource::Devices(parts, Some(world)) => parts.iter().try_for_each(|part| {
                part.read(&mut |piece: &[u8]| match piece.len() {
                    0 => Ok(()),
                    _ => Ok::<_, CheckpointError>(
                        world.send_to_first(piece).map_err(RuntimeError::from)?,
                    ),
                })
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn in_file(
        ty: TensorType,
        (file, path): (Arc<File>, Arc<PathBuf>),
        start: u64,
    ) -> Self {
        ArraySource { ty, place: DataSource::File { file, path, start } }
    }

    /// Element type and shape.
    #[must_use]
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Copies the whole array to the host.
    ///
    /// # Errors
    /// [`CheckpointError::Io`] for its file; [`CheckpointError::Runtime`] for its devices.
    pub fn to_host(&self) -> Result<Array, CheckpointError> {
        if let DataSource::Host(array) = &self.place {
            return Ok(Array::clone(array));
        }
        let mut bytes = memory::room(&self.ty.to_string(), self.ty.bytes())?;
        self.read(&mut |piece| {
            bytes.extend(piece);
            Ok(())
        })?;
        Ok(Array::from_bytes(self.ty.clone(), bytes)?)
    }

    /// Passes the array's bytes to `sink`, in order.
    pub(super) fn read(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        match &self.place {
            DataSource::Host(array) => sink(array.bytes()),
            DataSource::Devices(parts, world) => {
                parts.iter().try_for_each(|part| part.read(sink))?;
                let Some(world) = world else { return Ok(()) };
                let of_one: usize = parts.iter().map(|part| part.ty().bytes()).sum();
                for rank in 1..world.size() {
                    let mut missing = of_one;
                    while missing > 0 {
                        let piece = world.receive(rank).map_err(RuntimeError::from)?;
                        missing = missing.saturating_sub(piece.len());
                        sink(&piece)?;
                    }
                }
                Ok(())
            }
            DataSource::File { file, path, start } => {
                let size = self.ty.bytes();
                let mut piece = memory::zeros("a piece of an array", size.min(PIECE))?;
                for offset in (0..size).step_by(PIECE) {
                    let piece = &mut piece[..PIECE.min(size - offset)];
                    let read = file.read_exact_at(piece, start + offset as u64);
                    read.map_err(failed("read", path))?;
                    sink(piece)?;
                }
                Ok(())
            }
        }
    }

    /// Puts the array on devices; each device gets a part of type `ty`; in a world, every process
    /// does this separately.
    pub(crate) fn upload(
        &self,
        ty: &TensorType,
        placement: Placement,
        (devices, world): (&[pjrt::Device], Option<World>),
    ) -> Result<DeviceArray, CheckpointError> {
        let mut buffers = Vec::with_capacity(devices.len());
        match placement {
            Placement::Replicated => {
                let uploads = devices.iter().map(|device| Upload::begin(ty, device));
                let mut uploads = uploads.collect::<Result<Vec<_>, _>>()?;
                self.read(&mut |piece| {
                    Ok(uploads.iter_mut().try_for_each(|upload| upload.send(piece))?)
                })?;
                for upload in uploads {
                    buffers.push(upload.finish()?);
                }
            }
            Placement::Sharded => {
                // The parts of the processes before this process.
                let mut before = world.map_or(0, World::rank) * devices.len() * ty.bytes();
                let mut devices = devices.iter();
                let mut begin =
                    || devices.next().map(|device| Upload::begin(ty, device)).transpose();
                let mut current = begin()?;
                let mut share = |mut piece: &[u8]| {
                    let passed = before.min(piece.len());
                    before -= passed;
                    piece = &piece[passed..];
                    while let Some(upload) = &mut current {
                        let (part, beyond) = piece.split_at(piece.len().min(upload.missing()));
                        upload.send(part)?;
                        piece = beyond;
                        if upload.missing() > 0 {
                            break;
                        }
                        buffers.extend(current.take().map(Upload::finish).transpose()?);
                        current = begin()?;
                    }
                    Ok(())
                };
                self.read(&mut share)?;
                // Arrays without elements have no piece.
                share(&[])?;
            }
        }
        Ok(DeviceArray { buffers, placement, world })
    }
}

impl From<Array> for ArraySource<'_> {
    fn from(array: Array) -> Self {
        ArraySource { ty: array.ty().clone(), place: DataSource::Host(Cow::Owned(array)) }
    }
}

impl<'a> From<&'a Array> for ArraySource<'a> {
    fn from(array: &'a Array) -> Self {
        ArraySource { ty: array.ty().clone(), place: DataSource::Host(Cow::Borrowed(array)) }
    }
}

impl<'a> From<&'a DeviceArray> for ArraySource<'a> {
    fn from(array: &'a DeviceArray) -> Self {
        ArraySource::of_devices(array.buffers.iter(), array.placement, array.world)
    }
}

impl<T: Tree> Device<T> {
    /// Key path and array of every leaf, in order, for [`Checkpoint::insert`](super::Checkpoint::insert). Nothing is copied
    /// before the checkpoint is written.
    pub fn named_sources(&self) -> Vec<(String, ArraySource<'_>)> {
        let mut named = Vec::new();
        T::visit_kind::<OnDevice>(&self.0, &mut Path::root(), &mut |path, leaf| {
            named.push((path.to_string(), ArraySource::from(leaf)));
        });
        named
    }
}
