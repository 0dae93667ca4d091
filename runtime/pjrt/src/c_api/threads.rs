//! The threads of XLA's CPU client.
//!
//! A client starts one thread for its programs per core that the opening thread may use, or per
//! device if there are more devices. No option of the client changes that. The variable `NPROC`
//! does, but it cannot be set safely while other threads may read it. So the client is opened by a
//! thread that may use fewer cores.

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// Calls `open` on a thread that may use only `cores` cores. The threads that `open` starts may use
/// all cores once it is done. If the system does not let a thread choose its cores, `open` is
/// called directly.
#[cfg(target_os = "linux")]
pub(super) fn with_cores<T: Send>(cores: usize, open: impl FnOnce() -> T + Send) -> T {
    let Ok(all) = sched_getaffinity(None) else { return open() };
    let mut few = CpuSet::new();
    let allowed = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core));
    allowed.take(cores).for_each(|core| few.set(core));
    let before = threads();
    let opened = std::thread::scope(|scope| {
        let restricted = scope.spawn(|| {
            let _ = sched_setaffinity(None, &few);
            open()
        });
        restricted.join()
    });
    for thread in threads().into_iter().filter(|thread| !before.contains(thread)) {
        // A thread that ended in between needs no core.
        let _ = sched_setaffinity(Some(thread), &all);
    }
    opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Calls `open`: here a thread cannot choose its cores.
#[cfg(not(target_os = "linux"))]
pub(super) fn with_cores<T: Send>(_: usize, open: impl FnOnce() -> T + Send) -> T {
    open()
}

/// This process's threads.
#[cfg(target_os = "linux")]
fn threads() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}
