//! Free memory of the host. Linux promises more memory than there is, and then ends a process
//! without a message. So the free memory is checked before a program runs on the host's processor.

use std::fs;
use std::hint::black_box;

use crate::RuntimeError;

/// The number of bytes that this process can still allocate: limited by the machine, its control
/// group, and its address space. `None` if the system does not report it.
pub fn available() -> Option<u64> {
    let of_machine = fs::read_to_string("/proc/meminfo").ok();
    let of_machine = of_machine.and_then(|text| {
        let kib = |name| number_after(&text, name);
        Some((kib("MemAvailable:")? + kib("SwapFree:").unwrap_or(0)) * 1024)
    });
    let limits = [of_machine, of_group(), of_address_space()];
    limits.into_iter().flatten().min()
}

/// Bytes that are left of the control group's limit. The files that it has cached give way.
fn of_group() -> Option<u64> {
    let read = |name| fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok();
    let limit: u64 = read("max")?.trim().parse().ok()?;
    let used: u64 = read("current")?.trim().parse().ok()?;
    let cached = number_after(&read("stat")?, "file ").unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// Bytes that are left of the limit that `ulimit -v` sets.
fn of_address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let limit = number_after(&limits, "Max address space")?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(limit.saturating_sub(number_after(&status, "VmSize:")? * 1024))
}

/// The number after the name that a line begins with.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// An empty vector with room for `bytes` bytes, or an error in cases that would end the process in
/// Rust.
pub fn room(what: &str, bytes: usize) -> Result<Vec<u8>, RuntimeError> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| {
        RuntimeError::OutOfMemory(format!("{what} takes {} on the host", size(bytes as u64)))
    })?;
    Ok(room)
}

/// A vector of zeros, or an error where Rust would end the process.
pub fn zeros(what: &str, bytes: usize) -> Result<Vec<u8>, RuntimeError> {
    let mut zeros = room(what, bytes)?;
    zeros.resize(bytes, 0);
    Ok(zeros)
}

/// Bytes that XLA's kernels allocate in addition to the arrays of a program: the packed operands of
/// products.
pub const SCRATCH: u64 = 64 << 20;

/// Asks for [`SCRATCH`] bytes and gives them back: where XLA does not get them, it ends the process.
pub fn scratch() -> Result<(), RuntimeError> {
    // Memory that is not inspected would be optimized away.
    room("the work of XLA's kernels", SCRATCH as usize).map(|room| drop(black_box(room)))
}

/// The number of bytes as text for people, in GiB.
pub fn size(bytes: u64) -> String {
    const GIB: f64 = (1u64 << 30) as f64;
    format!("{:.2} GiB", bytes as f64 / GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_how_much_there_is() {
        let available = available().expect("Linux says it");
        assert!(available > 1 << 20, "{available}");
        let limits =
            "Limit      Soft Limit  Hard Limit  Units\nMax address space  4096  unlimited  bytes\n";
        assert_eq!(number_after(limits, "Max address space"), Some(4096));
        assert_eq!(number_after("Max address space  unlimited", "Max address space"), None);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert_eq!(zeros("a test", 3).unwrap(), [0; 3]);
        let error = zeros("f32[9]", isize::MAX as usize / 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not enough memory: f32[9] takes 4294967296.00 GiB on the host; smaller batches, replays or networks, or shorter \
             trajectories need less"
        );
    }
}
