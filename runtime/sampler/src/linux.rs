//! Sampling on Linux with x86-64: `ptrace` stops the threads.

use std::ops::Range;

use nix::errno::Errno;
use nix::libc::user_regs_struct;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::{Memory, REGISTERS, STACK_WORDS, SamplerError};

pub(crate) fn supported() -> Result<(), SamplerError> {
    Ok(())
}

/// Copies registers and stack of a thread. False if the thread has ended.
pub(crate) fn copy(
    thread: u32,
    (memory, stacks): (&Memory, &mut Stacks),
    words: &mut Vec<u64>,
) -> Result<bool, SamplerError> {
    match stopped(Pid::from_raw(thread as i32), (memory, stacks), words) {
        Ok(copied) => Ok(copied),
        // It has ended in the meantime.
        Err((_, Errno::ESRCH | Errno::ECHILD)) => Ok(false),
        Err((call, errno)) => Err(SamplerError::Refused { call, source: errno.into() }),
    }
}

fn stopped(
    thread: Pid,
    (memory, stacks): (&Memory, &mut Stacks),
    words: &mut Vec<u64>,
) -> Result<bool, (&'static str, Errno)> {
    ptrace::seize(thread, Options::empty()).map_err(|errno| ("PTRACE_SEIZE", errno))?;
    // These fail only for a thread that has ended, which needs not be let go.
    let status =
        ptrace::interrupt(thread).map_err(|errno| ("PTRACE_INTERRUPT", errno)).and_then(|()| {
            waitpid(thread, Some(WaitPidFlag::__WALL)).map_err(|errno| ("waitpid", errno))
        })?;
    let signal = match status {
        WaitStatus::PtraceEvent(..) => None,
        // A signal for the thread came first; it is delivered to the thread.
        WaitStatus::Stopped(_, signal) => Some(signal),
        _ => return Ok(false),
    };
    let copied = ptrace::getregs(thread).map(|registers| fill(&registers, (memory, stacks), words));
    let let_go = ptrace::detach(thread, signal);
    copied.map_err(|errno| ("PTRACE_GETREGS", errno))?;
    let_go.map_err(|errno| ("PTRACE_DETACH", errno))?;
    Ok(true)
}

fn fill(
    registers: &user_regs_struct,
    (memory, stacks): (&Memory, &mut Stacks),
    words: &mut Vec<u64>,
) {
    let user_regs_struct { rip, rsp, rbp, rbx, r12, r13, r14, r15, fs_base, .. } = *registers;
    words.clear();
    words.extend([rip, rsp, rbp, rbx, r12, r13, r14, r15]);
    debug_assert_eq!(words.len(), REGISTERS);
    memory.words(rsp, STACK_WORDS, words);
    // A kernel of oneDNN works in its own memory: it points the register to this memory, and stores
    // the stack's address in it.
    let stack = stacks.of(memory, fs_base);
    if let Some(stack) = stack.filter(|stack| !stack.contains(&rsp)) {
        let kept = words[REGISTERS..].iter().copied().find(|word| stack.contains(word));
        if let Some(top) = kept {
            words.truncate(REGISTERS);
            memory.words(top, STACK_WORDS, words);
        }
    }
}

/// Stacks of threads: the memory around the address in the register `fs` of a thread, which the
/// system's library places in its stack. The first thread has its stack in another place.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    regions: Vec<Range<u64>>,
}

impl Stacks {
    fn of(&mut self, memory: &Memory, thread: u64) -> Option<Range<u64>> {
        let find =
            |stacks: &Stacks| stacks.regions.iter().find(|one| one.contains(&thread)).cloned();
        if let Some(found) = find(self) {
            return Some(found);
        }
        let regions = memory.regions().ok()?.into_iter();
        self.regions = regions.filter(|one| one.path.is_empty()).map(|one| one.addresses).collect();
        find(self)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use crate::Sampler;

    /// A shell that computes, and one that waits.
    fn child(script: &str) -> std::process::Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn threads_that_run_are_seen_and_go_on() {
        let mut running = child("while true; do :; done");
        let mut waiting = child("exec sleep 60");
        thread::sleep(Duration::from_millis(100));
        let [mut of_running, mut of_waiting] =
            [&running, &waiting].map(|child| Sampler::new(child.id()).unwrap());
        let before = of_running.cpu_time().unwrap();
        let code = of_running.memory().regions().unwrap();
        let (mut seen, mut idle) = (0, 0);
        let start = Instant::now();
        while seen < 100 && start.elapsed() < Duration::from_secs(20) {
            of_running
                .sample(|thread, words| {
                    assert_eq!(thread, running.id());
                    // The shell's own code, or the system's code on its behalf.
                    let at = code.iter().find(|region| region.addresses.contains(&words[0]));
                    assert!(at.is_some_and(|region| region.executable), "{:x}", words[0]);
                    assert!(words.len() > 100, "{}", words.len());
                    seen += 1;
                })
                .unwrap();
            of_waiting.sample(|_, _| idle += 1).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((seen, idle), (100, 0));
        assert_eq!(of_running.name(running.id()), "sh");
        // It has run between the samples.
        assert!(of_running.cpu_time().unwrap() > before);
        assert!(running.try_wait().unwrap().is_none());
        for child in [&mut running, &mut waiting] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        of_running.sample(|_, _| panic!("it has ended")).unwrap_err();
        assert!(Sampler::new(running.id()).is_err());
    }
}
