//! Signals that programs are started with.

use std::io;

use nix::sys::signal::{SigSet, SigmaskHow};

/// Starts a program, by `start`, with no signal blocked. A program inherits the signals that the calling thread blocks, and so do all
/// programs that it starts: none of them would end by SIGTERM.
///
/// # Errors
/// Errors of `start`.
pub fn unblocked<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let blocked = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started = start();
    blocked.thread_set_mask()?;
    started
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use nix::sys::signal::Signal;

    use super::*;

    #[test]
    fn a_program_that_is_started_was_deaf_to_sigterm() {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.thread_block().unwrap();
        let mut command = Command::new("grep");
        command.args(["SigBlk", "/proc/self/status"]).stdout(Stdio::piped());
        let blocked = |child: std::process::Child| -> u64 {
            let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
            u64::from_str_radix(said.trim_start_matches("SigBlk:").trim(), 16).unwrap()
        };
        assert_ne!(blocked(command.spawn().unwrap()), 0);
        assert_eq!(blocked(unblocked(|| command.spawn()).unwrap()), 0);
        assert!(SigSet::thread_get_mask().unwrap().contains(Signal::SIGTERM));
    }
}
