//! The machine that a program runs on: its name and its processor, for records of runs.

use std::fs;
#[cfg(any(feature = "central", feature = "plots", test))]
use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread;

/// The machine's network name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The processor's name and its number of cores, such as `AMD EPYC (family 26, model 2), 2 cores`.
/// If the system does not report the name, it is the processor's architecture, such as `aarch64`.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores", name(&text).unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}

/// A name of 32 hexadecimal digits that cannot be guessed: it is hashed with keys that the system
/// has drawn.
#[cfg(any(feature = "central", feature = "plots", test))]
pub fn random_name() -> String {
    let drawn = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", drawn(), drawn())
}

/// Memory in bytes of the process that holds the lock of a file, if a process of this machine does.
#[cfg(feature = "plots")]
pub fn memory_of_holder(path: &std::path::Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{}", fs::metadata(path).ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  WRITE 4242 fe:01:131080 0 EOF`
    let process = locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(3);
        let (kind, process, file) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "WRITE" && file.ends_with(&inode)).then_some(process)
    })?;
    memory_of(process)
}

/// Memory in bytes of a process, by its number or `self`; `None` if there is no such process, or if
/// the system does not report it.
pub(crate) fn memory_of(process: &str) -> Option<u64> {
    let pages = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let resident: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    Some(resident * rustix::param::page_size() as u64)
}

/// The name in Linux's description of its processors.
fn name(text: &str) -> Option<String> {
    let field = |key: &str| {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        let found = fields.into_iter().find(|(name, _)| name.trim() == key);
        found.map(|(_, value)| value.trim().to_owned())
    };
    let name = field("model name")?;
    // The model's name alone does not distinguish generations of server processors.
    Some(match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_name_and_a_processor() {
        assert_ne!(random_name(), random_name());
        assert!(!host().is_empty());
        assert!(processor().ends_with(" cores"), "{}", processor());
        let text = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\n";
        assert_eq!(name(text).as_deref(), Some("AMD EPYC (family 26, model 2)"));
        assert_eq!(name("model name : M\n").as_deref(), Some("M"));
        assert_eq!(name("CPU implementer : 0x41\n"), None);
    }
}
