//! Calls into a plugin: sized argument structs in, errors out.

use super::ffi;
use crate::RuntimeError;
use crate::error::ErrorCode;

/// A struct of the C API that carries its own size. The generated bindings implement it for each.
pub(super) trait Struct: Default {
    /// A zeroed struct, except for its size field.
    fn sized() -> Self;
}

/// The zeroed rest of an argument struct: `Args { client, ..rest() }`.
pub(super) fn rest<A: Struct>() -> A {
    A::sized()
}

/// A plugin's table of functions. Plugins are never unloaded, so it lives as long as the process.
#[derive(Clone, Copy)]
pub(super) struct Api(&'static ffi::PJRT_Api);

// SAFETY: the table is written before `GetPjrtApi` returns it and never again, and its functions may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// A function of the C API, as all but three of them look.
type CFunction<A> = Option<unsafe extern "C" fn(*mut A) -> *mut ffi::PJRT_Error>;

/// Calls a function of the table: `call!(api, PJRT_Client_Destroy, &mut args)`, in an unsafe block that says why the handles and
/// pointers in `args` are valid.
macro_rules! call {
    ($api:expr, $function:ident, $args:expr) => {
        $api.call(stringify!($function), $api.table().$function, $args)
    };
}
pub(super) use call;

impl Api {
    /// Wraps the plugin's table of functions.
    ///
    /// # Safety
    /// `table` is a complete table of this header's version or a later one of the same major version.
    pub(super) unsafe fn new(table: &'static ffi::PJRT_Api) -> Self {
        Self(table)
    }

    pub(super) fn table(self) -> &'static ffi::PJRT_Api {
        self.0
    }

    /// Calls a function of the plugin; its error becomes a [`RuntimeError`].
    ///
    /// # Safety
    /// `args` are valid for `function`: live handles of this plugin, and pointers to as much memory
    /// as their size fields state.
    pub(super) unsafe fn call<A>(
        self,
        name: &'static str,
        function: CFunction<A>,
        args: &mut A,
    ) -> Result<(), RuntimeError> {
        let Some(function) = function else {
            let message = "the plugin does not have this function".to_owned();
            return Err(RuntimeError::Xla { call: name, code: ErrorCode::Unimplemented, message });
        };
        // SAFETY: the caller's promise.
        let error = unsafe { function(args) };
        // SAFETY: the error was returned by a function of this plugin, and we own it.
        unsafe { self.take_error(name, error) }
    }

    /// Turns the C API's error into ours and frees it. Null is success.
    ///
    /// # Safety
    /// `error` is null, or an error of this plugin that has not been freed.
    pub(super) unsafe fn take_error(
        self,
        call: &'static str,
        error: *mut ffi::PJRT_Error,
    ) -> Result<(), RuntimeError> {
        if error.is_null() {
            return Ok(());
        }
        let mut message = ffi::PJRT_Error_Message_Args { error, ..rest() };
        let mut code = ffi::PJRT_Error_GetCode_Args { error, ..rest() };
        let mut destroy = ffi::PJRT_Error_Destroy_Args { error, ..rest() };
        // SAFETY: `error` is live until the last of the three calls; the message is copied before it.
        unsafe {
            if let Some(function) = self.0.PJRT_Error_Message {
                function(&mut message);
            }
            let message = text(message.message, message.message_size);
            if let Some(function) = self.0.PJRT_Error_GetCode {
                // Its own error could only be about its arguments; the code then stays 0 and reads as unknown.
                let _ = function(&mut code);
            }
            if let Some(function) = self.0.PJRT_Error_Destroy {
                function(&mut destroy);
            }
            // The code is `Internal` on a CPU. (That a TPU's compiler *ran* out of memory says more than this.)
            if let Some((_, what)) = message.split_once("Out of memory ") {
                let what = what.lines().next().unwrap_or_default().trim_end_matches('.');
                return Err(RuntimeError::OutOfMemory(format!("{call} failed {what}")));
            }
            Err(RuntimeError::Xla { call, code: ErrorCode::from_c(code.code), message })
        }
    }
}

/// Copies a string of the C API.
///
/// # Safety
/// `start` is null or points to `size` bytes.
pub(super) unsafe fn text(start: *const std::ffi::c_char, size: usize) -> String {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { slice(start.cast::<u8>(), size) }).into_owned()
}

/// A slice of the C API, where an empty one may be null.
///
/// # Safety
/// `start` is null, or points to `size` values that live and stay unchanged for `'a`.
pub(super) unsafe fn slice<'a, T>(start: *const T, size: usize) -> &'a [T] {
    if start.is_null() || size == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, size) }
}
