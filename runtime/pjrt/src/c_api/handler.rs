//! XLA's interface for functions that a compiled program calls, as far as it is used here, and the
//! registration of such functions.
//!
//! The structs come from XLA's own header, version 0.2. Later versions with the same major version
//! only add fields at the end.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use podracer_compiler::DType;

use super::api::slice;
use super::ffi;
use super::plugin::Plugin;
use crate::RuntimeError;
use crate::error::ErrorCode;

#[repr(C)]
struct Extension {
    struct_size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    struct_size: usize,
    extensions: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// The kind of extension that XLA uses to ask a handler for its metadata.
const METADATA: c_int = 1;
/// The version of the interface that defines these structs.
const VERSION: (c_int, c_int) = (0, 2);
/// XLA's stage of a call for a handler's computation.
const EXECUTE: c_int = 3;
/// XLA's code of an internal error.
const INTERNAL: c_int = 13;

/// Arguments, and likewise results.
#[repr(C)]
struct RawValues {
    struct_size: usize,
    extensions: *mut Extension,
    size: i64,
    kinds: *const c_int,
    values: *const *const RawBuffer,
}

#[repr(C)]
struct RawBuffer {
    struct_size: usize,
    extensions: *mut Extension,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    dims: *const i64,
}

#[repr(C)]
struct CreateError {
    struct_size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct XlaApi {
    struct_size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *const c_void,
    create_error: unsafe extern "C" fn(*mut CreateError) -> *mut c_void,
}

/// A call of a handler, as XLA makes it.
#[repr(C)]
pub(super) struct CallFrame {
    struct_size: usize,
    extensions: *mut Extension,
    api: *const XlaApi,
    context: *mut c_void,
    stage: c_int,
    arguments: RawValues,
    results: RawValues,
}

/// The type of a handler.
pub(super) type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut c_void;

/// An array that a handler reads or writes.
pub(super) struct Operand<'a> {
    pub(super) dtype: DType,
    pub(super) bytes: &'a mut [u8],
}

impl Operand<'_> {
    /// The value of a scalar.
    pub(super) fn scalar(&self) -> Result<usize, String> {
        let value = self.bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        value.filter(|_| self.dtype == DType::U32).ok_or_else(|| "expected a u32 scalar".to_owned())
    }
}

/// The arguments of a call, which are only read, and its results.
pub(super) struct Call<'a> {
    pub(super) arguments: Vec<Operand<'a>>,
    pub(super) results: Vec<Operand<'a>>,
}

/// Answers XLA's call: returns the handler's metadata, or lets `f` compute. An error of `f`,
/// including a panic, becomes the program's error.
///
/// # Safety
/// XLA made the call.
pub(super) unsafe fn answer(
    frame: *mut CallFrame,
    f: impl FnOnce(Call<'_>) -> Result<(), String>,
) -> *mut c_void {
    // SAFETY: XLA's call frame lives as long as the call, and so do the buffers, which have no
    // other writer.
    unsafe {
        let frame = &*frame;
        if let Some(extension) = frame.extensions.cast::<MetadataExtension>().as_ref()
            && extension.base.kind == METADATA
        {
            let metadata = &mut *extension.metadata;
            (metadata.version.major, metadata.version.minor) = VERSION;
            metadata.traits = 0;
            return ptr::null_mut();
        }
        if frame.stage != EXECUTE {
            return ptr::null_mut();
        }
        let result = catch_unwind(AssertUnwindSafe(|| {
            f(Call { arguments: operands(&frame.arguments)?, results: operands(&frame.results)? })
        }));
        match result.unwrap_or_else(|_| Err("it panicked".to_owned())) {
            Ok(()) => ptr::null_mut(),
            Err(message) => {
                let message = message.replace('\0', " ") + "\0";
                let mut args = CreateError {
                    struct_size: size_of::<CreateError>(),
                    extensions: ptr::null_mut(),
                    message: message.as_ptr().cast(),
                    code: INTERNAL,
                };
                ((*frame.api).create_error)(&mut args)
            }
        }
    }
}

/// The arrays of a call.
///
/// # Safety
/// The values are a call's, which lives for `'a`.
unsafe fn operands<'a>(values: &RawValues) -> Result<Vec<Operand<'a>>, String> {
    // SAFETY: the frame has `size` values, and each is a buffer with the given dimensions and
    // bytes.
    let each = unsafe { slice(values.values, values.size as usize) }.iter().map(|&value| unsafe {
        let buffer = &*value;
        let dtype = dtype(buffer.dtype)?;
        let elements: i64 = slice(buffer.dims, buffer.rank as usize).iter().product();
        let bytes = elements as usize * dtype.size();
        let data = if bytes == 0 { ptr::dangling_mut() } else { buffer.data.cast::<u8>() };
        Ok(Operand { dtype, bytes: std::slice::from_raw_parts_mut(data, bytes) })
    });
    each.collect()
}

/// The dtype of XLA's number.
fn dtype(number: c_int) -> Result<DType, String> {
    Ok(match number {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        16 => DType::BF16,
        other => return Err(format!("it is given an array of a dtype with XLA's number {other}")),
    })
}

#[repr(C)]
struct RegisterArgs {
    struct_size: usize,
    target_name: *const c_char,
    target_name_size: usize,
    handler: *mut c_void,
    platform_name: *const c_char,
    platform_name_size: usize,
    traits: c_int,
}

#[repr(C)]
struct FfiExtension {
    base: ffi::PJRT_Extension_Base,
    register_type: *const c_void,
    add_user_data: *const c_void,
    register_handler: Option<unsafe extern "C" fn(*mut RegisterArgs) -> *mut ffi::PJRT_Error>,
}

/// Makes a function known to a plugin's programs for the host's processor, for as long as the process lives.
pub(super) fn register(plugin: Plugin, name: &str, handler: Handler) -> Result<(), RuntimeError> {
    let call = "PJRT_FFI_Register_Handler";
    let absent = || RuntimeError::Xla {
        call,
        code: ErrorCode::Unimplemented,
        message: "the plugin does not have this function".to_owned(),
    };
    let mut next = plugin.api().table().extension_start;
    // SAFETY: the plugin's extensions are a list of static data, and one of this type has these fields.
    let extension = unsafe {
        while let Some(extension) = next.as_ref()
            && extension.type_ != ffi::PJRT_Extension_Type_FFI
        {
            next = extension.next;
        }
        next.cast::<FfiExtension>().as_ref()
    };
    let extension =
        extension.filter(|extension| extension.base.struct_size >= size_of::<FfiExtension>());
    let function = extension.and_then(|extension| extension.register_handler).ok_or_else(absent)?;
    let platform = "Host";
    let mut args = RegisterArgs {
        struct_size: size_of::<RegisterArgs>() - 4,
        target_name: name.as_ptr().cast(),
        target_name_size: name.len(),
        handler: handler as *mut c_void,
        platform_name: platform.as_ptr().cast(),
        platform_name_size: platform.len(),
        traits: 0,
    };
    // SAFETY: the names outlive the call, which copies them; the error is the plugin's.
    unsafe { plugin.api().take_error(call, function(&mut args)) }
}
