//! Signals that stop a command: Ctrl-C, SIGTERM, and SIGHUP unless `nohup` has started the process.
//!
//! A command that polls the stop flag holds a guard from [`heed`]: the first signal then only sets
//! the flag. Without a guard, a signal ends the process at once: while it installs, traces,
//! compiles or starts environments, which may take minutes, there is nothing to save.

use std::fs;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use nix::sys::signal::{self, SigSet};
use podracer_runtime::pjrt::exit;
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::program::INTERRUPTED;

/// Number of running commands that poll the stop flag.
static HEEDING: AtomicUsize = AtomicUsize::new(0);
/// Sentence that is printed if the process ends at once: the remains of the run.
static LEFT: Mutex<String> = Mutex::new(String::new());
/// The environment variable with the number of a process; this process ends with it.
pub(super) const ENDS_WITH: &str = "PODRACER_ENDS_WITH";

/// Guard of a command that polls the stop flag: while it exists, the command stops by itself soon
/// after the flag is set.
pub(super) struct Heeding;

/// Counts the command as one that polls the stop flag, until the guard is dropped.
pub(super) fn heed() -> Heeding {
    HEEDING.fetch_add(1, Ordering::SeqCst);
    Heeding
}

impl Drop for Heeding {
    fn drop(&mut self) {
        HEEDING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Sets the sentence that is printed if the process ends at once.
pub(super) fn leaves(left: String) {
    *LEFT.lock().unwrap_or_else(PoisonError::into_inner) = left;
}

/// The sentence of [`leaves`].
pub(super) fn left() -> String {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Sets the flag at the first signal if a command polls it, and ends the process at any other
/// signal.
pub(super) fn listen(flag: &'static AtomicBool) -> Result<()> {
    // This comes first: a process that sees this process handle signals can rely on its ending with
    // its parent.
    end_with_parent();
    let hangup = (!ignored(SIGHUP)).then_some(SIGHUP);
    let wanted = || [SIGINT, SIGTERM].into_iter().chain(hangup);
    let mut signals = Signals::new(wanted()).context("cannot listen for Ctrl-C")?;
    // Only the listening thread may be interrupted. Kernels of matrix products in XLA's CPU plugin
    // point the stack register to their own memory, and the system would write the signal's frame
    // next to it. All later threads inherit the mask; `unblocked` starts programs without it.
    let mask: SigSet =
        wanted().filter_map(|number| signal::Signal::try_from(number).ok()).collect();
    mask.thread_block().context("cannot listen for Ctrl-C")?;
    // The system would end the process if a file reached the size limit. With a handler the write
    // fails instead.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot listen for SIGXFSZ")?;
    let hear = move || {
        // Unblocking known signals never fails.
        let _ = mask.thread_unblock();
        signals.forever().for_each(|_| stop(flag));
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(hear).context("cannot listen for Ctrl-C")?;
    Ok(())
}

/// True if this process was started with a signal ignored.
fn ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Handles a signal: sets the flag, or ends the process.
fn stop(flag: &AtomicBool) {
    let first = !flag.swap(true, Ordering::SeqCst);
    // If standard error is closed, no message can be printed.
    let say = |text: &str| drop(writeln!(io::stderr(), "\n{text}"));
    if first && HEEDING.load(Ordering::SeqCst) > 0 {
        return say("stopping after this call; once more to stop at once");
    }
    match &left()[..] {
        "" => say("stopped"),
        left => say(&format!("stopped; {left}")),
    }
    end_children();
    exit(i32::from(INTERRUPTED));
}

/// Ends the child processes, such as pip, because a signal sent to one process does not reach
/// others.
fn end_children() {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        for child in children.filter_map(Pid::from_raw) {
            // An error means that the child has ended.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}

/// Has the kernel end this process when its parent ends, if the parent requests it.
fn end_with_parent() {
    let parent = getppid().map(|parent| parent.to_string());
    let asked = std::env::var(ENDS_WITH).ok();
    if asked.is_none() {
        return;
    }
    // On systems without this feature the process ends as it would otherwise.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The system does not report a parent that ended before.
    if asked != parent {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
