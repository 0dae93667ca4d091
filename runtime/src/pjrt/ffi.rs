//! The C API as bindgen reads it from the installed plugin's header.
#![allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    clippy::all
)]
#![allow(clippy::undocumented_unsafe_blocks, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/pjrt_c_api.rs"));
