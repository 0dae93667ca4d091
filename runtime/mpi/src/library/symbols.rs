//! The search for an MPI library, and its exports: functions, and the constants of its family.

use std::env;
use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library as Loaded;

use super::{Handle, Pointer};
use crate::{Launched, MpiError};

/// The variable that names the library.
const MPI: &str = "PODRACER_MPI";

/// Names under which the system's loader may know an MPI: Open MPI's, and the name in MPICH and its
/// relatives.
const NAMES: [&str; 3] = ["libmpi.so.40", "libmpi.so.12", "libmpi.so"];

/// A function that begins a message.
pub(super) type Begin =
    unsafe extern "C" fn(Pointer, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;

/// The functions that are called, with the types that they have in both families.
pub(super) struct Functions {
    pub(super) init_thread: unsafe extern "C" fn(*mut c_int, Pointer, c_int, *mut c_int) -> c_int,
    pub(super) finalize: unsafe extern "C" fn() -> c_int,
    pub(super) abort: unsafe extern "C" fn(Handle, c_int) -> c_int,
    pub(super) version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
    pub(super) error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
    pub(super) set_errhandler: unsafe extern "C" fn(Handle, Handle) -> c_int,
    pub(super) size: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(super) rank: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    pub(super) dup: unsafe extern "C" fn(Handle, *mut Handle) -> c_int,
    pub(super) all_reduce:
        unsafe extern "C" fn(Pointer, Pointer, c_int, Handle, Handle, Handle) -> c_int,
    pub(super) all_gather:
        unsafe extern "C" fn(Pointer, c_int, Handle, Pointer, c_int, Handle, Handle) -> c_int,
    pub(super) send: unsafe extern "C" fn(Pointer, c_int, Handle, c_int, c_int, Handle) -> c_int,
    pub(super) receive:
        unsafe extern "C" fn(Pointer, c_int, Handle, c_int, c_int, Handle, Pointer) -> c_int,
    pub(super) send_later: Begin,
    pub(super) receive_later: Begin,
    pub(super) test: unsafe extern "C" fn(*mut Handle, *mut c_int, Pointer) -> c_int,
}

/// The constants of a family.
pub(super) struct Constants {
    pub(super) world: Handle,
    pub(super) errors_return: Handle,
    pub(super) byte: Handle,
    /// The types of numbers, in the order of [`Number`](super::Number).
    pub(super) numbers: [Handle; 10],
    /// The operations, in the order of [`Combine`](super::Combine).
    pub(super) operations: [Handle; 3],
    pub(super) in_place: Pointer,
    pub(super) ignore_status: Pointer,
}

impl Functions {
    /// The functions of a library.
    ///
    /// # Safety
    /// The library is an MPI.
    pub(super) unsafe fn of(library: &'static Loaded) -> Result<Self, String> {
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the caller's promise; MPI's functions have these types.
                match unsafe { library.get(concat!($name, "\0").as_bytes()) } {
                    Ok(found) => *found,
                    Err(_) => return Err(concat!("it has no function ", $name).to_owned()),
                }
            };
        }
        Ok(Functions {
            init_thread: function!("MPI_Init_thread"),
            finalize: function!("MPI_Finalize"),
            abort: function!("MPI_Abort"),
            version: function!("MPI_Get_library_version"),
            error_string: function!("MPI_Error_string"),
            set_errhandler: function!("MPI_Comm_set_errhandler"),
            size: function!("MPI_Comm_size"),
            rank: function!("MPI_Comm_rank"),
            dup: function!("MPI_Comm_dup"),
            all_reduce: function!("MPI_Allreduce"),
            all_gather: function!("MPI_Allgather"),
            send: function!("MPI_Send"),
            receive: function!("MPI_Recv"),
            send_later: function!("MPI_Isend"),
            receive_later: function!("MPI_Irecv"),
            test: function!("MPI_Test"),
        })
    }
}

impl Constants {
    /// The constants of a library.
    ///
    /// # Safety
    /// The library is an MPI.
    pub(super) unsafe fn of(library: &'static Loaded) -> Result<Self, String> {
        // SAFETY: the variable is looked for, and never read.
        if unsafe { library.get::<Pointer>(b"ompi_mpi_comm_world\0") }.is_err() {
            return Ok(Self::mpich());
        }
        let handle = |name: &str| {
            // SAFETY: as above: the handle is the variable's address.
            let found = unsafe { library.get::<Pointer>(name.as_bytes()) };
            let found = found.map_err(|_| format!("it has no variable {name}"))?;
            // SAFETY: the library is never unloaded.
            Ok::<_, String>(unsafe { found.into_raw() }.into_raw() as Handle)
        };
        let number = |name: &str| handle(&format!("ompi_mpi_{name}"));
        Ok(Constants {
            world: handle("ompi_mpi_comm_world")?,
            errors_return: handle("ompi_mpi_errors_return")?,
            byte: handle("ompi_mpi_byte")?,
            numbers: [
                number("int8_t")?,
                number("int16_t")?,
                number("int32_t")?,
                number("int64_t")?,
                number("uint8_t")?,
                number("uint16_t")?,
                number("uint32_t")?,
                number("uint64_t")?,
                number("float")?,
                number("double")?,
            ],
            operations: [number("op_sum")?, number("op_max")?, number("op_min")?],
            in_place: ptr::without_provenance_mut(1),
            ignore_status: ptr::null_mut(),
        })
    }

    /// The numbers in MPICH's header, which its relatives share.
    fn mpich() -> Self {
        Constants {
            world: 0x4400_0000,
            errors_return: 0x5400_0001,
            byte: 0x4c00_010d,
            numbers: [
                0x4c00_0137,
                0x4c00_0238,
                0x4c00_0439,
                0x4c00_083a,
                0x4c00_013b,
                0x4c00_023c,
                0x4c00_043d,
                0x4c00_083e,
                0x4c00_040a,
                0x4c00_080b,
            ],
            operations: [0x5800_0003, 0x5800_0001, 0x5800_0002],
            in_place: ptr::without_provenance_mut(usize::MAX),
            ignore_status: ptr::without_provenance_mut(1),
        }
    }
}

/// Finds and loads the library: the library that `PODRACER_MPI` names, otherwise the library next
/// to the launcher, otherwise the system's.
pub(super) fn find(launched: Launched) -> Result<(Loaded, PathBuf), MpiError> {
    if let Some(named) = env::var_os(MPI) {
        let library = PathBuf::from(named);
        return match load(&library) {
            Ok(loaded) => Ok((loaded, library)),
            Err(problem) => Err(MpiError::Library { library, problem }),
        };
    }
    let folders = env::var_os("PATH").into_iter().flat_map(|path| {
        let folders: Vec<PathBuf> = env::split_paths(&path).collect();
        folders
    });
    // The folder `lib` next to the launcher's `bin`: the launcher's own library, which the loader
    // may not search.
    let beside = folders.filter(|folder| folder.join("mpirun").is_file());
    let beside: Vec<PathBuf> = beside
        .filter_map(|folder| Some(folder.canonicalize().ok()?.parent()?.join("lib")))
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .filter(|file| file.is_file())
        .collect();
    let candidates = beside.into_iter().chain(NAMES.map(PathBuf::from));
    let mut searched = Vec::new();
    for candidate in candidates {
        match load(&candidate) {
            Ok(loaded) => return Ok((loaded, candidate)),
            Err(problem) => searched.push(problem),
        }
    }
    let Launched { launcher, size } = launched;
    Err(MpiError::NotFound { launcher, size, searched: searched.join("; ") })
}

fn load(path: &Path) -> Result<Loaded, String> {
    #[cfg(unix)]
    {
        use libloading::os::unix::{Library as Unix, RTLD_GLOBAL, RTLD_NOW};
        // MPI's own plugins look for its names among the process's symbols. SAFETY: the
        // initialisers of an MPI are safe to run; its name or the user states that the file is an
        // MPI.
        let loaded = unsafe { Unix::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        loaded.map(Loaded::from).map_err(|error| error.to_string())
    }
    #[cfg(not(unix))]
    {
        Err(format!("`{}` cannot be loaded on this system", path.display()))
    }
}
