//! Generates the bindings of PJRT's C API from the header that the installed `cpu` plugin ships.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs, io::Write as _, process};

fn main() {
    if let Err(error) = generate() {
        let _ = writeln!(
            std::io::stderr(),
            "podracer-runtime cannot generate its bindings of PJRT: {error}\nRun `make setup`."
        );
        process::exit(1);
    }
}

fn generate() -> Result<(), Box<dyn Error>> {
    for variable in
        [podracer_plugins::PLUGIN_PATH_VARIABLE, "XDG_CACHE_HOME", "HOME", "LIBCLANG_PATH"]
    {
        cargo(&format!("rerun-if-env-changed={variable}"));
    }
    let header = podracer_plugins::header()?;
    cargo(&format!("rerun-if-changed={}", header.display()));
    cargo("rerun-if-changed=build.rs");

    let header = header.to_str().ok_or("the header's path is not UTF-8")?;
    let bindings = bindgen::Builder::default()
        .header(header)
        .allowlist_item("(PJRT|GetPjrtApi).*")
        .prepend_enum_name(false)
        .derive_default(true)
        .layout_tests(false)
        .generate_comments(false)
        .generate()?
        .to_string();
    let structs = size_impls(&bindings);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    Ok(fs::write(out.join("pjrt_c_api.rs"), bindings + &structs)?)
}

/// `size_of` counts the padding after the last field, and the C API's sizes do not: each struct gets the size that its header gives.
fn size_impls(bindings: &str) -> String {
    bindings
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split(':').next()?.strip_suffix("_STRUCT_SIZE"))
        .filter(|name| bindings.contains(&format!("pub struct {name} {{\n    pub struct_size: usize,")) && *name != "PJRT_Api")
        .map(|name| {
            format!(
                "impl super::api::Struct for {name} {{\n    fn sized() -> Self {{\n        Self {{ struct_size: \
                 {name}_STRUCT_SIZE as usize, ..Default::default() }}\n    }}\n}}\n"
            )
        })
        .collect()
}

#[allow(clippy::print_stdout, reason = "how a build script talks to cargo")]
fn cargo(instruction: &str) {
    println!("cargo:{instruction}");
}
