//! The key-value store that a plugin's processes use to exchange information about their devices,
//! as the functions that the plugin calls.

use std::any::Any;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use podracer_mpi::World;

use super::api::slice;
use super::ffi;
use super::value::NamedValue;

/// A store that all processes of a [`World`] share. The plugin calls it from its own threads,
/// several at once.
pub trait KeyValueStore: Send + Sync {
    /// Puts the value of a key.
    ///
    /// # Errors
    /// A sentence that says why it cannot.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String>;

    /// Gets a value once a process has put it; `None` if no process has put it within the time.
    ///
    /// # Errors
    /// A sentence that says why it cannot.
    fn get(&self, key: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>, String>;
}

/// The number of this process, the number of processes, and the GPU that it takes. The GPU is set
/// if the launcher started several processes on this machine without assigning GPUs to them.
pub(super) fn node(world: World, chosen: bool) -> Vec<(String, NamedValue)> {
    let host = &world.members()[world.rank()].host;
    let here = world.members().iter().filter(|member| member.host == *host).count();
    let own = (here > 1 && !chosen).then(|| world.earlier_on_host());
    node_options((world.rank(), world.size()), own)
}

pub(super) fn node_options(
    (rank, size): (usize, usize),
    gpu: Option<usize>,
) -> Vec<(String, NamedValue)> {
    let option = |name: &str, value| (name.to_owned(), value);
    let gpu = gpu.map(|gpu| option("visible_devices", NamedValue::Ints(vec![gpu as i64])));
    [
        option("node_id", NamedValue::Int(rank as i64)),
        option("num_nodes", NamedValue::Int(size as i64)),
    ]
    .into_iter()
    .chain(gpu)
    .collect()
}

/// Has a client that is about to be created use the store. The store is kept as long as the process lives: the client's threads call it
/// whenever they like.
pub(super) fn attach(args: &mut ffi::PJRT_Client_Create_Args, store: &'static dyn KeyValueStore) {
    let user: *mut &'static dyn KeyValueStore = Box::leak(Box::new(store));
    args.kv_get_callback = Some(get);
    args.kv_get_user_arg = user.cast();
    args.kv_put_callback = Some(put);
    args.kv_put_user_arg = user.cast();
    args.kv_try_get_callback = Some(try_get);
    args.kv_try_get_user_arg = user.cast();
}

unsafe extern "C" fn put(args: *mut ffi::PJRT_KeyValuePutCallback_Args) -> *mut ffi::PJRT_Error {
    // SAFETY: the plugin passes its arguments, and what `attach` gave it.
    unsafe {
        let args = &mut *args;
        let (key, value) = (bytes(args.key, args.key_size), bytes(args.value, args.value_size));
        let put = guarded(|| store(args.user_arg).put(key, value));
        callback_result(
            args.callback_error,
            put.map_err(|problem| (ffi::PJRT_Error_Code_INTERNAL, problem)),
        )
    }
}

unsafe extern "C" fn get(args: *mut ffi::PJRT_KeyValueGetCallback_Args) -> *mut ffi::PJRT_Error {
    // SAFETY: as in `put`.
    unsafe {
        let args = &mut *args;
        let timeout = Duration::from_millis(args.timeout_in_ms.max(0) as u64);
        let key = bytes(args.key, args.key_size);
        let got = guarded(|| store(args.user_arg).get(key, timeout));
        let got = found(got, key, ffi::PJRT_Error_Code_DEADLINE_EXCEEDED);
        let place = (&mut args.value, &mut args.value_size, &mut args.value_deleter_callback);
        callback_result(args.callback_error, got.map(|value| give(value, place)))
    }
}

unsafe extern "C" fn try_get(
    args: *mut ffi::PJRT_KeyValueTryGetCallback_Args,
) -> *mut ffi::PJRT_Error {
    // SAFETY: as in `put`.
    unsafe {
        let args = &mut *args;
        let key = bytes(args.key, args.key_size);
        let got = guarded(|| store(args.user_arg).get(key, Duration::ZERO));
        let got = found(got, key, ffi::PJRT_Error_Code_NOT_FOUND);
        let place = (&mut args.value, &mut args.value_size, &mut args.value_deleter_callback);
        callback_result(args.callback_error, got.map(|value| give(value, place)))
    }
}

/// A failure as the plugin takes it: its code, and a sentence.
type Failure = (ffi::PJRT_Error_Code, String);

fn found(
    got: Result<Option<Vec<u8>>, String>,
    key: &[u8],
    missing: ffi::PJRT_Error_Code,
) -> Result<Vec<u8>, Failure> {
    let nobody = || (missing, format!("no process has put `{}`", String::from_utf8_lossy(key)));
    got.map_err(|problem| (ffi::PJRT_Error_Code_INTERNAL, problem))?.ok_or_else(nobody)
}

/// Calls the store; its panic, which must not reach the plugin, is a failure.
fn guarded<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let panicked = |_: Box<dyn Any + Send>| Err("the processes' store panicked".to_owned());
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(panicked)
}

/// The store of a callback.
///
/// # Safety
/// `user` is what `attach` gave.
unsafe fn store(user: *mut c_void) -> &'static dyn KeyValueStore {
    // SAFETY: the caller's promise; it was leaked.
    unsafe { *user.cast::<&'static dyn KeyValueStore>() }
}

/// A key or a value of the plugin's.
///
/// # Safety
/// As [`slice`].
unsafe fn bytes<'a>(start: *const c_char, size: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { slice(start.cast(), size) }
}

/// The outcome of a callback as the plugin takes it: null, or an error that its own function makes.
///
/// # Safety
/// `make` is the plugin's.
unsafe fn callback_result(
    make: *mut ffi::PJRT_CallbackError,
    outcome: Result<(), Failure>,
) -> *mut ffi::PJRT_Error {
    let Err((code, problem)) = outcome else { return std::ptr::null_mut() };
    // SAFETY: the caller's promise.
    let Some(make) = (unsafe { make.as_ref() }).copied().flatten() else {
        return std::ptr::null_mut();
    };
    // SAFETY: the plugin copies the text.
    unsafe { make(code, problem.as_ptr().cast(), problem.len()) }
}

/// Room for the number of bytes of a value, before it.
const LENGTH: usize = size_of::<usize>();

/// The place of a value in a call's arguments: its start, its size, and what frees it.
type ValueOut<'a> =
    (&'a mut *mut c_char, &'a mut usize, &'a mut Option<unsafe extern "C" fn(*mut c_char)>);

/// Gives a value away, until [`free`] is called with it.
fn give(value: Vec<u8>, (start, size, deleter): ValueOut<'_>) {
    let kept: Box<[u8]> = [&value.len().to_ne_bytes(), &value[..]].concat().into();
    // SAFETY: the value is behind its length.
    *start = unsafe { Box::into_raw(kept).cast::<u8>().add(LENGTH) }.cast();
    *size = value.len();
    *deleter = Some(free);
}

unsafe extern "C" fn free(value: *mut c_char) {
    // SAFETY: `give` made it, so that its length is before it.
    unsafe {
        let start = value.cast::<u8>().sub(LENGTH);
        let size = usize::from_ne_bytes(*start.cast::<[u8; LENGTH]>());
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, LENGTH + size)));
    }
}
