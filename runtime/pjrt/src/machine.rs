//! The machine that code is compiled for: the processor, and the number of its cores that XLA splits work for.

use std::env::consts;
use std::fs;
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use sha2::{Digest, Sha256};

/// A hash of the processor's model and features, and of the number of cores that this process may use.
pub(crate) fn fingerprint() -> &'static str {
    static FINGERPRINT: OnceLock<String> = OnceLock::new();
    FINGERPRINT.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let text = format!("{} {} {cores} {}", consts::OS, consts::ARCH, processor());
        format!("{:x}", Sha256::digest(text))
    })
}

/// The lines of the first processor that LLVM's choice of instructions depends on. Where there is no such file, the plugin's
/// fingerprint and the architecture alone must do.
fn processor() -> String {
    let fields = [
        "vendor_id",
        "cpu family",
        "model",
        "stepping",
        "flags",
        "Features",
        "CPU implementer",
        "CPU part",
    ];
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let first = text.lines().take_while(|line| !line.is_empty());
    let wanted = first
        .filter(|line| line.split(':').next().is_some_and(|name| fields.contains(&name.trim())));
    wanted.collect::<Vec<_>>().join("\n")
}
