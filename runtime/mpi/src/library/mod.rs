//! MPI's functions, loaded from the installed library, behind slices and errors: the only module
//! with unsafe code.
//!
//! The two families of MPI have different binary interfaces. In Open MPI a handle (of a
//! communicator, a type, an operation) is a pointer to a variable of the library. In MPICH and its
//! derivatives a handle is a number. Both fit into a `usize`, and a C function that expects an
//! `int` reads the lower half of the register.

mod symbols;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;

use libloading::Library as Loaded;

use crate::{Launched, MpiError};
use symbols::{Begin, Constants, Functions, find};

/// The most elements in one call of MPI, because its counts are `int`s.
const MOST: usize = 1 << 30;

/// A handle of either family.
type Handle = usize;
type Pointer = *mut c_void;

/// The types of numbers that are combined over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl Number {
    /// Bytes of one number.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 => 8,
        }
    }
}

/// The operations that combine numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Combine {
    Sum,
    Max,
    Min,
}

/// A loaded MPI, which is joined.
pub(crate) struct Library {
    functions: Functions,
    constants: Constants,
}

// SAFETY: the pointers are to functions and static variables of a library that is never unloaded, and MPI grants calls from all
// threads at once, which `join` checks.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// A communicator that contains all processes.
#[derive(Clone, Copy)]
pub(crate) struct Channel(Handle);

impl Library {
    /// Loads the launcher's MPI, and joins the others.
    pub(crate) fn join(launched: Launched) -> Result<(Self, PathBuf), MpiError> {
        let (loaded, path) = find(launched)?;
        // Its threads and static data live on until the process ends.
        let loaded: &'static Loaded = Box::leak(Box::new(loaded));
        let wrong = |problem: String| MpiError::Library { library: path.clone(), problem };
        // SAFETY: a library with all these names is an MPI, and its functions have these types.
        let functions = unsafe { Functions::of(loaded) }.map_err(&wrong)?;
        // SAFETY: as above; the variables of Open MPI are looked for, and never read.
        let constants = unsafe { Constants::of(loaded) }.map_err(wrong)?;
        let library = Library { functions, constants };
        let mut granted = 0;
        // SAFETY: MPI takes no arguments for none, and is joined once: `World::join` holds a lock.
        let code = unsafe {
            (library.functions.init_thread)(ptr::null_mut(), ptr::null_mut(), 3, &mut granted)
        };
        library.check("MPI_Init_thread", code)?;
        if granted < 3 {
            return Err(MpiError::Threads { library: path, granted });
        }
        library.returns_errors(library.world())?;
        Ok((library, path))
    }

    /// MPI's communicator that contains all processes.
    pub(crate) fn world(&self) -> Channel {
        Channel(self.constants.world)
    }

    /// A further communicator that contains all processes, with messages separate from the first
    /// communicator's. All processes create it together.
    pub(crate) fn channel(&self) -> Result<Channel, MpiError> {
        let mut made = 0;
        // SAFETY: the communicator is live; the handle is written where one of either family fits.
        let code = unsafe { (self.functions.dup)(self.constants.world, &mut made) };
        self.check("MPI_Comm_dup", code)?;
        self.returns_errors(Channel(made))?;
        Ok(Channel(made))
    }

    /// This process's number and the number of processes, in a communicator.
    pub(crate) fn place(&self, channel: Channel) -> Result<(usize, usize), MpiError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the communicator is live.
        let code = unsafe { (self.functions.rank)(channel.0, &mut rank) };
        self.check("MPI_Comm_rank", code)?;
        // SAFETY: as above.
        let code = unsafe { (self.functions.size)(channel.0, &mut size) };
        self.check("MPI_Comm_size", code)?;
        Ok((rank as usize, size as usize))
    }

    /// The library's name for itself, its first line.
    pub(crate) fn version(&self) -> String {
        // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, which is the greater one.
        let mut text = vec![0; 8192];
        let mut length = 0;
        // SAFETY: the text has the room that MPI asks for.
        unsafe { (self.functions.version)(text.as_mut_ptr(), &mut length) };
        let text = read(&text);
        text.lines().next().unwrap_or_default().trim().to_owned()
    }

    /// Combines the numbers in `from` over all processes, into `into`. Without `from`, it combines
    /// the numbers in `into` in place.
    pub(crate) fn all_reduce(
        &self,
        channel: Channel,
        (number, combine): (Number, Combine),
        from: Option<&[u8]>,
        into: &mut [u8],
    ) -> Result<(), MpiError> {
        assert!(from.is_none_or(|from| from.len() == into.len()), "as many bytes go as come");
        let most = MOST * number.size();
        // MPI recognizes in-place numbers by an address that an empty slice may have by chance.
        for start in (0..into.len()).step_by(most) {
            let part = start..into.len().min(start + most);
            let sent = match from {
                Some(from) => from[part.clone()].as_ptr().cast_mut().cast(),
                None => self.constants.in_place,
            };
            let into = &mut into[part];
            // SAFETY: both buffers have `count` numbers; MPI only reads the sent buffer.
            let code = unsafe {
                (self.functions.all_reduce)(
                    sent,
                    into.as_mut_ptr().cast(),
                    (into.len() / number.size()) as c_int,
                    self.constants.numbers[number as usize],
                    self.constants.operations[combine as usize],
                    channel.0,
                )
            };
            self.check("MPI_Allreduce", code)?;
        }
        Ok(())
    }

    /// Gathers the bytes from all processes, equally many from each, one process after another.
    pub(crate) fn all_gather(
        &self,
        channel: Channel,
        from: &[u8],
        into: &mut [u8],
    ) -> Result<(), MpiError> {
        if from.is_empty() {
            return Ok(());
        }
        let count = self.count("MPI_Allgather", from.len())?;
        let (_, size) = self.place(channel)?;
        assert_eq!(into.len(), size * from.len(), "there is room for the bytes of all processes");
        let byte = self.constants.byte;
        let (from, into) = (from.as_ptr().cast_mut().cast(), into.as_mut_ptr().cast());
        // SAFETY: checked above; MPI only reads the sent bytes.
        let code =
            unsafe { (self.functions.all_gather)(from, count, byte, into, count, byte, channel.0) };
        self.check("MPI_Allgather", code)
    }

    /// Sends bytes to another process, which receives as many.
    pub(crate) fn send(&self, channel: Channel, to: usize, bytes: &[u8]) -> Result<(), MpiError> {
        let count = self.count("MPI_Send", bytes.len())?;
        let (from, byte) = (bytes.as_ptr().cast_mut().cast(), self.constants.byte);
        // SAFETY: the slice has `count` bytes, which MPI only reads.
        let code = unsafe { (self.functions.send)(from, count, byte, to as c_int, 0, channel.0) };
        self.check("MPI_Send", code)
    }

    /// Receives as many bytes as another process sends.
    pub(crate) fn receive(
        &self,
        channel: Channel,
        from: usize,
        bytes: &mut [u8],
    ) -> Result<(), MpiError> {
        let count = self.count("MPI_Recv", bytes.len())?;
        let (into, byte) = (bytes.as_mut_ptr().cast(), self.constants.byte);
        let ignore = self.constants.ignore_status;
        // SAFETY: the slice has room for `count` bytes.
        let code = unsafe {
            (self.functions.receive)(into, count, byte, from as c_int, 0, channel.0, ignore)
        };
        self.check("MPI_Recv", code)
    }

    /// Leaves, together with all others.
    pub(crate) fn finalize(&self) -> Result<(), MpiError> {
        // SAFETY: `World::leave` is the last to use MPI.
        self.check("MPI_Finalize", unsafe { (self.functions.finalize)() })
    }

    /// Asks the launcher to end all processes. Comes back only where it cannot.
    pub(crate) fn abort(&self, code: u8) {
        // SAFETY: MPI is joined; it may be called at any time.
        unsafe { (self.functions.abort)(self.constants.world, c_int::from(code)) };
    }

    /// Errors are returned, and do not end the process.
    fn returns_errors(&self, channel: Channel) -> Result<(), MpiError> {
        // SAFETY: both handles are live.
        let code =
            unsafe { (self.functions.set_errhandler)(channel.0, self.constants.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)
    }

    fn count(&self, call: &'static str, bytes: usize) -> Result<c_int, MpiError> {
        c_int::try_from(bytes).map_err(|_| MpiError::Call {
            call,
            message: format!("{bytes} bytes are more than it sends at once"),
        })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), MpiError> {
        if code == 0 {
            return Ok(());
        }
        // MPI_MAX_ERROR_STRING of MPICH, which is the greater one.
        let mut text = vec![0; 512];
        let mut length = 0;
        // SAFETY: the text has the room that MPI asks for.
        let status = unsafe { (self.functions.error_string)(code, text.as_mut_ptr(), &mut length) };
        let message = if status == 0 { read(&text) } else { format!("code {code}") };
        Err(MpiError::Call { call, message })
    }
}

/// A message that is under way, with its bytes.
pub(crate) struct Message<const N: usize> {
    /// In a box of their own, where MPI finds them until the message is done.
    bytes: Box<[u8; N]>,
    request: Handle,
}

impl<const N: usize> Message<N> {
    /// Begins to send to another process.
    pub(crate) fn send(
        library: &Library,
        channel: Channel,
        to: usize,
        bytes: [u8; N],
    ) -> Result<Self, MpiError> {
        Self::begin(library, channel, to, bytes, ("MPI_Isend", library.functions.send_later))
    }

    /// Begins to receive from another process.
    pub(crate) fn receive(
        library: &Library,
        channel: Channel,
        from: usize,
    ) -> Result<Self, MpiError> {
        let call = ("MPI_Irecv", library.functions.receive_later);
        Self::begin(library, channel, from, [0; N], call)
    }

    /// Begins one or the other: a function of MPI by its name.
    fn begin(
        library: &Library,
        channel: Channel,
        other: usize,
        bytes: [u8; N],
        (name, call): (&'static str, Begin),
    ) -> Result<Self, MpiError> {
        let mut message = Message { bytes: Box::new(bytes), request: 0 };
        let (bytes, byte) = (message.bytes.as_mut_ptr().cast(), library.constants.byte);
        let (other, request) = (other as c_int, &mut message.request);
        // SAFETY: the bytes stay where they are until the message is done, or for ever: see `Drop`.
        let code = unsafe { call(bytes, N as c_int, byte, other, 0, channel.0, request) };
        library.check(name, code)?;
        Ok(message)
    }

    /// The bytes, once all have gone or come; the message otherwise.
    pub(crate) fn done(mut self, library: &Library) -> Result<Result<[u8; N], Self>, MpiError> {
        let mut done = 0;
        let ignore = library.constants.ignore_status;
        // SAFETY: the request is live until MPI reports its completion.
        let code = unsafe { (library.functions.test)(&mut self.request, &mut done, ignore) };
        let checked = library.check("MPI_Test", code);
        if checked.is_ok() && done == 0 {
            return Ok(Err(self));
        }
        let bytes = *self.bytes;
        if done != 0 {
            self.request = 0;
        }
        checked.map(|()| Ok(bytes))
    }
}

impl<const N: usize> Drop for Message<N> {
    fn drop(&mut self) {
        if self.request != 0 {
            // MPI may still read or write the bytes.
            Box::leak(std::mem::replace(&mut self.bytes, Box::new([0; N])));
        }
    }
}

/// The text that MPI has written, up to its end.
fn read(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|&byte| byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes)
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_default()
}
