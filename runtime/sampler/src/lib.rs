//! Samples of what the threads of a child process compute.
//!
//! A thread that runs is stopped for some microseconds by `ptrace`, and its registers and the top of its stack are copied. Threads that wait are
//! left alone. Nothing here knows programs of XLA: who reads the samples finds out what the words mean, with [`Memory`] for what they point
//! to.
//!
//! A timer's signals inside of the process would be simpler, and end it: kernels of matrix products in the plugin keep numbers in the register of
//! the stack, and the system writes a signal's frame to where that points.
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

/// A child process whose threads are sampled.
#[derive(Debug)]
pub struct Sampler {
    process: u32,
    words: Vec<u64>,
    memory: Memory,
    stacks: system::Stacks,
}

/// The reasons for which nothing is sampled.
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
    /// The process has ended, or what the system says of it is not readable.
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

    /// Gives each thread that runs to `see`: its number, and its instruction pointer, the registers that a function keeps for its caller, and words
    /// of its stack from the innermost on. The thread goes on meanwhile. All samples of a process are taken by one thread.
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
