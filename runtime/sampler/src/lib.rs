//! Samples of the code that a child process's threads execute.
//!
//! `ptrace` stops a running thread for some microseconds, and its registers and the top of its
//! stack are copied. Waiting threads are left alone. This crate knows nothing about XLA's programs:
//! the reader of the samples interprets the words, with [`Memory`] for the memory that they point
//! to.
//!
//! A timer's signals inside the process would be simpler, but would end it. Kernels of matrix
//! products in the plugin keep numbers in the stack register, and the system writes a signal's
//! frame to the address in it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[path = "linux.rs"]
mod system;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "elsewhere.rs"]
mod system;

mod memory;

use std::io;
use std::time::Duration;

pub use memory::{Memory, Region};

/// Registers of a sample, before the words of the stack. The first is the instruction pointer.
pub const REGISTERS: usize = 8;
/// Words that a sample copies from the top of the stack, at most: 64 KiB.
pub const STACK_WORDS: usize = 8192;

/// A child process with sampled threads.
#[derive(Debug)]
pub struct Sampler {
    process: u32,
    words: Vec<u64>,
    memory: Memory,
    stacks: system::Stacks,
}

/// The reasons why nothing is sampled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// There is no sampler for this system.
    #[error("samples are taken on Linux with an x86-64 processor, and this is another system")]
    System,
    /// The system refuses to stop threads of a child process.
    #[error(
        "the system does not let a process look at its child (`{call}` failed): it must allow `ptrace`, which \
         /proc/sys/kernel/yama/ptrace_scope restricts with 2 and 3, and containers by their seccomp profile"
    )]
    Refused {
        /// Name of the call.
        call: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The process has ended, or the system's data about it is not readable.
    #[error("cannot look at process {process}")]
    Gone {
        /// The process's number.
        process: u32,
        /// The system's reason.
        source: io::Error,
    },
}

impl Sampler {
    /// A sampler of a child process.
    ///
    /// # Errors
    /// [`SamplerError::Gone`] and [`SamplerError::System`].
    pub fn new(process: u32) -> Result<Self, SamplerError> {
        system::supported()?;
        let memory =
            Memory::of(process).map_err(|source| SamplerError::Gone { process, source })?;
        Ok(Sampler { process, words: Vec::new(), memory, stacks: system::Stacks::default() })
    }

    /// Passes each running thread to `see`: its number, its instruction pointer, the callee-saved
    /// registers, and words of its stack, the innermost first. The thread continues meanwhile. One
    /// thread takes all samples of a process.
    ///
    /// # Errors
    /// [`SamplerError`].
    pub fn sample(&mut self, mut see: impl FnMut(u32, &[u64])) -> Result<(), SamplerError> {
        let process = self.process;
        let gone = |source| SamplerError::Gone { process, source };
        for thread in memory::threads(process).map_err(gone)? {
            if memory::is_running(process, thread)
                && system::copy(thread, (&self.memory, &mut self.stacks), &mut self.words)?
            {
                see(thread, &self.words);
            }
        }
        Ok(())
    }

    /// The process's memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The name of a thread; empty for one that has ended.
    #[must_use]
    pub fn name(&self, thread: u32) -> String {
        memory::name(self.process, thread)
    }

    /// The time that all threads of the process have computed together.
    ///
    /// # Errors
    /// [`SamplerError::Gone`].
    pub fn cpu_time(&self) -> Result<Duration, SamplerError> {
        let process = self.process;
        memory::cpu_time(process).map_err(|source| SamplerError::Gone { process, source })
    }
}
