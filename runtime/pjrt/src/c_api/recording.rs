//! A plugin that records how its clients are created. It finds the other processes' devices like
//! the CUDA plugin: each client puts its own devices into the store, and waits for every other
//! client's.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::api::{Api, rest, slice, text};
use super::client::{ClientOptions, Inner};
use super::ffi;
use super::key_value::{KeyValueStore, node_options};
use super::plugin::Plugin;
use super::value::{NamedValue, read};
use crate::error::ErrorCode;

/// Devices of each process.
const DEVICES: usize = 2;

struct RecordingClient {
    /// The device numbers of this process, and as which they are handles.
    own: Vec<i64>,
    handles: Vec<*mut ffi::PJRT_Device>,
}

struct RecordedError(ffi::PJRT_Error_Code, String);

fn failed(code: ffi::PJRT_Error_Code, message: &str) -> *mut ffi::PJRT_Error {
    Box::into_raw(Box::new(RecordedError(code, message.to_owned()))).cast()
}

unsafe extern "C" fn callback_error(
    code: ffi::PJRT_Error_Code,
    message: *const c_char,
    size: usize,
) -> *mut ffi::PJRT_Error {
    // SAFETY: the caller of the callback passes a text.
    failed(code, &unsafe { text(message, size) })
}

unsafe extern "C" fn error_message(args: *mut ffi::PJRT_Error_Message_Args) {
    // SAFETY: the caller's arguments; the error is one of `failed`.
    unsafe {
        let error = &*(*args).error.cast::<RecordedError>();
        ((*args).message, (*args).message_size) = (error.1.as_ptr().cast(), error.1.len());
    }
}

unsafe extern "C" fn error_code(args: *mut ffi::PJRT_Error_GetCode_Args) -> *mut ffi::PJRT_Error {
    // SAFETY: as above.
    unsafe { (*args).code = (*(*args).error.cast::<RecordedError>()).0 };
    std::ptr::null_mut()
}

unsafe extern "C" fn error_destroy(args: *mut ffi::PJRT_Error_Destroy_Args) {
    // SAFETY: as above, and the error is not used afterwards.
    drop(unsafe { Box::from_raw((*args).error.cast::<RecordedError>()) });
}

/// A value that a callback gives, which is copied before it is given back.
macro_rules! got {
    ($callback:expr, $key:expr, $args:expr) => {{
        let mut error = Some(callback_error as unsafe extern "C" fn(_, _, _) -> _);
        let (key, key_size) = ($key.as_ptr().cast(), $key.len());
        let mut args = $args;
        (args.key, args.key_size, args.callback_error) = (key, key_size, &mut error);
        // SAFETY: the client was created with a store, and these are the store's functions.
        unsafe {
            let failed = ($callback.expect("a store"))(&mut args);
            if !failed.is_null() {
                return Err(failed);
            }
            let value = slice(args.value.cast::<u8>(), args.value_size).to_vec();
            (args.value_deleter_callback.expect("a deleter"))(args.value);
            Ok(value)
        }
    }};
}

/// The functions that connect a client to the store.
struct StoreCalls<'a>(&'a ffi::PJRT_Client_Create_Args);

impl StoreCalls<'_> {
    unsafe fn put(&self, key: &str, value: &[u8]) -> *mut ffi::PJRT_Error {
        let mut error = Some(callback_error as unsafe extern "C" fn(_, _, _) -> _);
        let mut args = ffi::PJRT_KeyValuePutCallback_Args {
            key: key.as_ptr().cast(),
            key_size: key.len(),
            value: value.as_ptr().cast(),
            value_size: value.len(),
            callback_error: &mut error,
            user_arg: self.0.kv_put_user_arg,
            ..rest()
        };
        // SAFETY: the client was created with a store.
        unsafe { (self.0.kv_put_callback.expect("a store"))(&mut args) }
    }

    unsafe fn get(&self, key: &str, timeout_in_ms: i32) -> Result<Vec<u8>, *mut ffi::PJRT_Error> {
        let user_arg = self.0.kv_get_user_arg;
        let args = ffi::PJRT_KeyValueGetCallback_Args { timeout_in_ms, user_arg, ..rest() };
        got!(self.0.kv_get_callback, key, args)
    }

    unsafe fn try_get(&self, key: &str) -> Result<Vec<u8>, *mut ffi::PJRT_Error> {
        let user_arg = self.0.kv_try_get_user_arg;
        let args = ffi::PJRT_KeyValueTryGetCallback_Args { user_arg, ..rest() };
        got!(self.0.kv_try_get_callback, key, args)
    }
}

unsafe extern "C" fn create(args: *mut ffi::PJRT_Client_Create_Args) -> *mut ffi::PJRT_Error {
    // SAFETY: the caller's arguments.
    unsafe {
        let args = &mut *args;
        let options = read(args.create_options, args.num_options);
        let number = |name: &str| match options.get(name) {
            Some(NamedValue::Int(number)) => *number,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(options["preallocate"], NamedValue::Bool(false));
        let (node, nodes) = (number("node_id"), number("num_nodes"));
        assert_eq!(options.get("visible_devices"), Some(&NamedValue::Ints(vec![node])));
        let calls = StoreCalls(args);
        // The key has no value yet: `try_get` reports that at once, with its own code.
        let missing = calls.try_get(&format!("ready:{node}")).expect_err("nobody has put it");
        assert_eq!((*missing.cast::<RecordedError>()).0, ffi::PJRT_Error_Code_NOT_FOUND);
        drop(Box::from_raw(missing.cast::<RecordedError>()));
        let error = calls.put(&format!("devices:{node}"), &[DEVICES as u8]);
        if !error.is_null() {
            return error;
        }
        let mut before = 0;
        for other in 0..nodes {
            match calls.get(&format!("devices:{other}"), 2_000) {
                Ok(devices) if other < node => before += i64::from(devices[0]),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
        assert_eq!(calls.try_get("devices:0").ok(), Some(vec![DEVICES as u8]));
        let own: Vec<i64> = (before..).take(DEVICES).collect();
        let mut client = Box::new(RecordingClient { own, handles: Vec::new() });
        let handles: Vec<_> =
            client.own.iter().map(|id| std::ptr::from_ref(id).cast_mut().cast()).collect();
        client.handles = handles;
        args.client = Box::into_raw(client).cast();
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn destroy(args: *mut ffi::PJRT_Client_Destroy_Args) -> *mut ffi::PJRT_Error {
    // SAFETY: `create` made it.
    drop(unsafe { Box::from_raw((*args).client.cast::<RecordingClient>()) });
    std::ptr::null_mut()
}

unsafe extern "C" fn platform(
    args: *mut ffi::PJRT_Client_PlatformName_Args,
) -> *mut ffi::PJRT_Error {
    const NAME: &str = "cuda";
    // SAFETY: the caller's arguments.
    unsafe {
        ((*args).platform_name, (*args).platform_name_size) = (NAME.as_ptr().cast(), NAME.len())
    };
    std::ptr::null_mut()
}

unsafe extern "C" fn version(
    _: *mut ffi::PJRT_Client_PlatformVersion_Args,
) -> *mut ffi::PJRT_Error {
    std::ptr::null_mut()
}

unsafe extern "C" fn devices(
    args: *mut ffi::PJRT_Client_AddressableDevices_Args,
) -> *mut ffi::PJRT_Error {
    // SAFETY: `create` made the client, which lives longer than the list.
    unsafe {
        let handles = &(*(*args).client.cast::<RecordingClient>()).handles;
        ((*args).addressable_devices, (*args).num_addressable_devices) =
            (handles.as_ptr(), handles.len());
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn description(
    args: *mut ffi::PJRT_Device_GetDescription_Args,
) -> *mut ffi::PJRT_Error {
    // SAFETY: the caller's arguments. A device is its own description.
    unsafe { (*args).device_description = (*args).device.cast() };
    std::ptr::null_mut()
}

unsafe extern "C" fn id(args: *mut ffi::PJRT_DeviceDescription_Id_Args) -> *mut ffi::PJRT_Error {
    // SAFETY: a device is its number.
    unsafe { (*args).id = *(*args).device_description.cast::<i64>() as i32 };
    std::ptr::null_mut()
}

unsafe extern "C" fn kind(_: *mut ffi::PJRT_DeviceDescription_Kind_Args) -> *mut ffi::PJRT_Error {
    std::ptr::null_mut()
}

fn plugin() -> Plugin {
    let table = ffi::PJRT_Api {
        PJRT_Error_Message: Some(error_message),
        PJRT_Error_GetCode: Some(error_code),
        PJRT_Error_Destroy: Some(error_destroy),
        PJRT_Client_Create: Some(create),
        PJRT_Client_Destroy: Some(destroy),
        PJRT_Client_PlatformName: Some(platform),
        PJRT_Client_PlatformVersion: Some(version),
        PJRT_Client_AddressableDevices: Some(devices),
        PJRT_Device_GetDescription: Some(description),
        PJRT_DeviceDescription_Id: Some(id),
        PJRT_DeviceDescription_Kind: Some(kind),
        ..ffi::PJRT_Api::default()
    };
    // SAFETY: the table has the functions for creating a client, and no others are called.
    Plugin::of_table("cuda13", unsafe { Api::new(Box::leak(Box::new(table))) })
}

/// A store within this process, which may be out of order.
#[derive(Default)]
struct LocalStore {
    values: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    put: Condvar,
    broken: bool,
}

impl KeyValueStore for LocalStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        if self.broken {
            return Err("the connection is broken".to_owned());
        }
        self.values.lock().unwrap().insert(key.to_owned(), value.to_owned());
        self.put.notify_all();
        Ok(())
    }

    fn get(&self, key: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>, String> {
        let values = self.values.lock().unwrap();
        let missing = |values: &mut HashMap<Vec<u8>, Vec<u8>>| !values.contains_key(key);
        let waited = self.put.wait_timeout_while(values, timeout, missing);
        Ok(waited.unwrap_or_else(PoisonError::into_inner).0.get(key).cloned())
    }
}

fn open(
    node: usize,
    nodes: usize,
    store: &'static LocalStore,
) -> Result<Inner, crate::RuntimeError> {
    let preallocate = ("preallocate".to_owned(), NamedValue::Bool(false));
    let create = [vec![preallocate], node_options((node, nodes), Some(node))].concat();
    Inner::create(
        plugin(),
        &create,
        ClientOptions { store: Some(store), ..ClientOptions::default() },
    )
}

#[test]
fn processes_find_each_others_devices_by_the_store() {
    let store: &'static LocalStore = Box::leak(Box::default());
    let clients = thread::scope(|scope| {
        let opened: Vec<_> = [2, 0, 1].map(|node| scope.spawn(move || open(node, 3, store))).into();
        opened.into_iter().map(|client| client.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    let ids = |client: &Inner| client.devices.iter().map(|device| device.id).collect::<Vec<_>>();
    assert_eq!(clients.iter().map(ids).collect::<Vec<_>>(), [[4, 5], [0, 1], [2, 3]]);
}

#[test]
fn a_process_that_does_not_come_and_a_broken_store_are_errors() {
    let store: &'static LocalStore = Box::leak(Box::default());
    let error = open(0, 2, store).err().unwrap();
    assert!(
        matches!(&error, crate::RuntimeError::Xla { code: ErrorCode::DeadlineExceeded, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("no process has put `devices:1`"), "{error}");
    let broken: &'static LocalStore =
        Box::leak(Box::new(LocalStore { broken: true, ..LocalStore::default() }));
    let error = open(0, 1, broken).err().unwrap().to_string();
    assert!(error.contains("the connection is broken"), "{error}");
}
