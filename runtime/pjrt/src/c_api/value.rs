//! Named values: a plugin's attributes, and the options of clients and topologies.

use std::collections::BTreeMap;

use super::api::{rest, slice, text};
use super::ffi;

/// A value with a name in the C API.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum NamedValue {
    String(String),
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Bool(bool),
}

/// Copies a list of named values out of the C API.
///
/// # Safety
/// `values` is null or points to `count` values that live during the call.
pub(super) unsafe fn read(
    values: *const ffi::PJRT_NamedValue,
    count: usize,
) -> BTreeMap<String, NamedValue> {
    // SAFETY: the caller's promise.
    let values = unsafe { slice(values, count) };
    let one = |value: &ffi::PJRT_NamedValue| {
        // SAFETY: `type_` says which member of the union is set, and `value_size` how long a string or list is.
        let (name, read) = unsafe {
            let name = text(value.name, value.name_size);
            let member = &value.__bindgen_anon_1;
            let read = match value.type_ {
                ffi::PJRT_NamedValue_kString => {
                    NamedValue::String(text(member.string_value, value.value_size))
                }
                ffi::PJRT_NamedValue_kInt64 => NamedValue::Int(member.int64_value),
                ffi::PJRT_NamedValue_kInt64List => {
                    NamedValue::Ints(slice(member.int64_array_value, value.value_size).to_vec())
                }
                ffi::PJRT_NamedValue_kFloat => NamedValue::Float(member.float_value),
                ffi::PJRT_NamedValue_kBool => NamedValue::Bool(member.bool_value),
                _ => return None,
            };
            (name, read)
        };
        Some((name, read))
    };
    values.iter().filter_map(one).collect()
}

/// Named values in the C API's form, which point into `values`.
pub(super) fn write(values: &[(String, NamedValue)]) -> Vec<ffi::PJRT_NamedValue> {
    let one = |(name, value): &(String, NamedValue)| {
        let mut written =
            ffi::PJRT_NamedValue { name: name.as_ptr().cast(), name_size: name.len(), ..rest() };
        let member = &mut written.__bindgen_anon_1;
        (written.type_, written.value_size) = match value {
            NamedValue::String(string) => {
                member.string_value = string.as_ptr().cast();
                (ffi::PJRT_NamedValue_kString, string.len())
            }
            NamedValue::Int(int) => {
                member.int64_value = *int;
                (ffi::PJRT_NamedValue_kInt64, 1)
            }
            NamedValue::Ints(ints) => {
                member.int64_array_value = ints.as_ptr();
                (ffi::PJRT_NamedValue_kInt64List, ints.len())
            }
            NamedValue::Float(float) => {
                member.float_value = *float;
                (ffi::PJRT_NamedValue_kFloat, 1)
            }
            NamedValue::Bool(bool) => {
                member.bool_value = *bool;
                (ffi::PJRT_NamedValue_kBool, 1)
            }
        };
        written
    };
    values.iter().map(one).collect()
}
