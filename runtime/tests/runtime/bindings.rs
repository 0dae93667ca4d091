//! The checked-in bindings of PJRT's C API (`pjrt/src/c_api/ffi.rs`) equal bindgen's output for the
//! header that the pinned `cpu` plugin ships. `PODRACER_BLESS=1` writes them again.

use podracer_test_support::generated::check_generated;
use podracer_test_support::skip::skip;

const BINDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pjrt/src/c_api/ffi.rs");

const HEAD: &str = "\
//! PJRT's C API, as bindgen reads it from the header that the pinned `cpu` plugin ships. Written by the test
//! `bindings_are_those_of_the_header` under `PODRACER_BLESS=1`, and not by hand.
#![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code, clippy::all)]
#![allow(clippy::undocumented_unsafe_blocks, reason = \"generated\")]

";

#[test]
fn bindings_are_those_of_the_header() {
    let Ok(header) = podracer_plugins::header() else {
        return skip("no header of PJRT's C API: `podracer plugins install cpu`");
    };
    if clang_sys::load().is_err() {
        return skip("no libclang: `make setup-all`");
    }
    let made = HEAD.to_owned() + &bindings(header.to_str().expect("a path in UTF-8"));
    check_generated(BINDINGS, &made);
}

fn bindings(header: &str) -> String {
    let bindings = bindgen::Builder::default()
        .header(header)
        .allowlist_item("(PJRT|GetPjrtApi).*")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(false)
        .generate_comments(false)
        // Not rustfmt, which changes with the toolchain.
        .formatter(bindgen::Formatter::Prettyplease)
        .generate()
        .expect("bindgen reads the header")
        .to_string();
    let sizes = size_impls(&bindings);
    bindings + &sizes
}

/// `size_of` counts the padding after the last field, and the C API's sizes do not: each struct gets the size that its header gives.
fn size_impls(bindings: &str) -> String {
    let has_size = |name: &&str| {
        bindings.contains(&format!("pub struct {name} {{\n    pub struct_size: usize,"))
    };
    bindings
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split(':').next()?.strip_suffix("_STRUCT_SIZE"))
        .filter(has_size)
        .filter(|&name| name != "PJRT_Api")
        .map(|name| {
            format!(
                "impl super::api::Struct for {name} {{\n    fn sized() -> Self {{\n        Self {{ struct_size: \
                 {name}_STRUCT_SIZE as usize, ..Default::default() }}\n    }}\n}}\n"
            )
        })
        .collect()
}
