//! Running a program: everything is checked, then all replicas are launched by one call.

use std::fmt;
use std::ptr;
use std::sync::PoisonError;

use super::api::{call, rest};
use super::client::no_value;
use super::event::Event;
use super::{Buffer, Executable, ffi};
use crate::transfers::count_launch;
use crate::{RuntimeError, memory};

/// One argument of one replica.
///
/// Moved means donated, borrowed means kept. A donated argument is gone after the call, and where the module allows it
/// (`tf.aliasing_output` or `jax.buffer_donor` on the argument) a result takes over its memory. So nothing can be donated twice:
///
/// ```compile_fail,E0382
/// # fn twice(executable: &podracer_runtime::Executable, buffer: podracer_runtime::Buffer) {
/// use podracer_runtime::Argument::Donated;
/// let _ = executable.execute(vec![vec![Donated(buffer), Donated(buffer)]]);
/// # }
/// ```
#[derive(Debug)]
pub enum Argument<'a> {
    /// A buffer that is given away.
    Donated(Buffer),
    /// A buffer that stays the caller's, unchanged.
    Kept(&'a Buffer),
}

impl Argument<'_> {
    fn buffer(&self) -> &Buffer {
        match self {
            Self::Donated(buffer) => buffer,
            Self::Kept(buffer) => buffer,
        }
    }
}

impl From<Buffer> for Argument<'_> {
    fn from(buffer: Buffer) -> Self {
        Self::Donated(buffer)
    }
}

impl<'a> From<&'a Buffer> for Argument<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        Self::Kept(buffer)
    }
}

/// The error of a program that was not launched, and the buffers that were to be donated and still live: all of them, unless
/// XLA itself failed half-way.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ExecuteError {
    /// The error. It is boxed because it is rare, and every result would otherwise have its size.
    pub error: Box<RuntimeError>,
    /// The donated arguments, with `(replica, index)` in front.
    pub donated: Vec<((usize, usize), Buffer)>,
}

impl From<ExecuteError> for RuntimeError {
    fn from(error: ExecuteError) -> Self {
        *error.error
    }
}

impl Executable {
    /// Runs the program on all its devices: `arguments[replica][index]` in, `results[replica][index]` out.
    ///
    /// It may return before the computation is done. An error *of the computation* comes out when a result is waited for; a
    /// program without results is waited for here.
    ///
    /// # Errors
    /// Before anything is launched: [`RuntimeError::ReplicaCount`], [`RuntimeError::ArgumentCount`],
    /// [`RuntimeError::ArgumentType`], [`RuntimeError::ArgumentDevice`], [`RuntimeError::ArgumentDeleted`],
    /// [`RuntimeError::OutOfMemory`]. Then [`RuntimeError::Xla`].
    pub fn execute(
        &self,
        arguments: Vec<Vec<Argument<'_>>>,
    ) -> Result<Vec<Vec<Buffer>>, ExecuteError> {
        match self.check(&arguments).and_then(|()| self.launch(&arguments)) {
            Ok(results) => Ok(results),
            Err(error) => {
                Err(ExecuteError { error: Box::new(error), donated: survivors(arguments) })
            }
        }
    }

    /// Checks everything that XLA crashes on or silently accepts, and mistakes that XLA reports
    /// less clearly.
    fn check(&self, arguments: &[Vec<Argument<'_>>]) -> Result<(), RuntimeError> {
        if arguments.len() != self.devices.len() {
            return Err(RuntimeError::ReplicaCount {
                expected: self.devices.len(),
                got: arguments.len(),
            });
        }
        for (replica, (arguments, device)) in arguments.iter().zip(&self.devices).enumerate() {
            let (expected, got) = (self.arguments.len(), arguments.len());
            if expected != got {
                return Err(RuntimeError::ArgumentCount { replica, expected, got });
            }
            for (index, (argument, expected)) in arguments.iter().zip(&self.arguments).enumerate() {
                let buffer = argument.buffer();
                if buffer.ty() != expected {
                    let (expected, got) = (expected.clone(), buffer.ty().clone());
                    return Err(RuntimeError::ArgumentType { replica, index, expected, got });
                }
                if buffer.device() != device {
                    let same_name = buffer.device().to_string() == device.to_string();
                    let got = format!(
                        "{}{}",
                        buffer.device(),
                        if same_name { " of another client" } else { "" }
                    );
                    return Err(RuntimeError::ArgumentDevice {
                        replica,
                        index,
                        expected: device.to_string(),
                        got,
                    });
                }
                if buffer.is_deleted()? {
                    return Err(RuntimeError::ArgumentDeleted {
                        replica,
                        index,
                        ty: expected.clone(),
                    });
                }
            }
        }
        self.check_memory()
    }

    /// Checks that the host's memory suffices for a launch on the host's processor. XLA itself
    /// reports a single allocation that exceeds the machine's memory. Many smaller allocations end
    /// in a SIGKILL, so they are added up before the first launch. XLA also ends the process if its
    /// kernels find no memory for themselves, so a program with large arrays checks that before
    /// every launch.
    fn check_memory(&self) -> Result<(), RuntimeError> {
        if self.client.platform() != "cpu" {
            return Ok(());
        }
        let takes = match self.takes.get() {
            Some(&takes) => takes,
            None => self.first_takes()?,
        };
        if takes >= memory::SCRATCH { memory::scratch() } else { Ok(()) }
    }

    /// The bytes that a launch takes in addition to its arguments, kept once this much memory was
    /// free.
    fn first_takes(&self) -> Result<u64, RuntimeError> {
        let per_device = self.compiled.memory_stats().map_or(0, |stats| stats.beside_arguments());
        let takes = u64::try_from(per_device).unwrap_or(0) * self.devices.len() as u64;
        if let Some(available) = memory::available().filter(|&available| takes > available) {
            return Err(RuntimeError::OutOfMemory(format!(
                "in addition to its arguments the program takes {} in all on {} device(s), and {} are free",
                memory::size(takes),
                self.devices.len(),
                memory::size(available)
            )));
        }
        Ok(*self.takes.get_or_init(|| takes))
    }

    fn launch(&self, arguments: &[Vec<Argument<'_>>]) -> Result<Vec<Vec<Buffer>>, RuntimeError> {
        let kept = self.kept(arguments);
        let mut options = ffi::PJRT_ExecuteOptions {
            non_donatable_input_indices: kept.as_ptr(),
            num_non_donatable_input_indices: kept.len(),
            ..rest()
        };
        let inputs: Vec<Vec<*mut ffi::PJRT_Buffer>> = arguments
            .iter()
            .map(|list| list.iter().map(|argument| argument.buffer().raw()).collect())
            .collect();
        let input_lists: Vec<*const *mut ffi::PJRT_Buffer> =
            inputs.iter().map(|list| list.as_ptr()).collect();
        let mut outputs =
            vec![vec![ptr::null_mut::<ffi::PJRT_Buffer>(); self.results.len()]; self.devices.len()];
        let output_lists: Vec<*mut *mut ffi::PJRT_Buffer> =
            outputs.iter_mut().map(|list| list.as_mut_ptr()).collect();
        // Without results, only these events report the end and errors.
        let mut events =
            vec![ptr::null_mut(); if self.results.is_empty() { self.devices.len() } else { 0 }];
        let mut args = ffi::PJRT_LoadedExecutable_Execute_Args {
            executable: self.raw.as_ptr(),
            options: &mut options,
            argument_lists: input_lists.as_ptr(),
            num_devices: self.devices.len(),
            num_args: self.arguments.len(),
            output_lists: output_lists.as_ptr(),
            device_complete_events: if events.is_empty() {
                ptr::null_mut()
            } else {
                events.as_mut_ptr()
            },
            ..rest()
        };
        let launched = {
            let replicated = self.devices.len() > 1;
            let _turn = replicated
                .then(|| self.client.inner.launch.lock().unwrap_or_else(PoisonError::into_inner));
            // SAFETY: `check` has verified that every argument of every replica is a live buffer
            // with the right type and device. The lists have the given sizes and outlive the call.
            unsafe { call!(self.client.api(), PJRT_LoadedExecutable_Execute, &mut args) }
        };
        launched?;
        count_launch(&self.transfers);
        // SAFETY: a successful call fills in the events, and they are ours.
        let events: Vec<Event> =
            events.into_iter().filter_map(|raw| unsafe { Event::new(raw, &self.client) }).collect();
        events.iter().try_for_each(Event::wait)?;
        self.results_of(outputs)
    }

    /// The arguments that XLA must not reuse. XLA takes a single list for every replica: if one
    /// replica keeps an argument, all replicas keep it. Moved arguments are nevertheless freed
    /// after the launch.
    fn kept(&self, arguments: &[Vec<Argument<'_>>]) -> Vec<i64> {
        let is_kept =
            |index: &usize| arguments.iter().any(|list| matches!(list[*index], Argument::Kept(_)));
        (0..self.arguments.len()).filter(is_kept).map(|index| index as i64).collect()
    }

    fn results_of(
        &self,
        outputs: Vec<Vec<*mut ffi::PJRT_Buffer>>,
    ) -> Result<Vec<Vec<Buffer>>, RuntimeError> {
        let own = |(list, device): (Vec<*mut ffi::PJRT_Buffer>, _)| {
            let own = |(raw, ty): (_, &podracer_compiler::TensorType)| {
                // SAFETY: a successful call fills in buffers of the compiled types, and they are ours.
                unsafe { Buffer::new(raw, ty.clone(), device, Some(self.transfers.clone())) }
            };
            // Every handle gets an owner before the first missing one is complained about.
            let owned: Vec<Option<Buffer>> = list.into_iter().zip(&self.results).map(own).collect();
            owned
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| no_value("PJRT_LoadedExecutable_Execute"))
        };
        let owned: Vec<_> = outputs.into_iter().zip(&self.devices).map(own).collect();
        owned.into_iter().collect()
    }
}

/// The donated buffers that still exist.
fn survivors(arguments: Vec<Vec<Argument<'_>>>) -> Vec<((usize, usize), Buffer)> {
    let mut survivors = Vec::new();
    for (replica, list) in arguments.into_iter().enumerate() {
        for (index, argument) in list.into_iter().enumerate() {
            if let Argument::Donated(buffer) = argument
                && matches!(buffer.is_deleted(), Ok(false))
            {
                survivors.push(((replica, index), buffer));
            }
        }
    }
    survivors
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[podracer_compiler::TensorType]| {
            types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        write!(
            f,
            "Executable({}) -> ({}) on {:?}",
            list(&self.arguments),
            list(&self.results),
            self.devices
        )
    }
}
