//! One server process: its start, its lines, its shared memory, its end.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::iter;
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::ServerOptions;
use super::protocol::{Introduction, Layout, Tail, read_failure, read_hello, shortened};

/// Greatest length of a line in bytes.
const LONGEST_LINE: usize = 16 << 20;
/// Time that the output of an ended server may take to come to its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Faults of a server.
#[derive(Debug)]
pub(super) enum Fault {
    /// The process has ended.
    Died,
    /// The process ends by an error that it names.
    Failed(String),
    /// No answer came within the timeout.
    Silent { seconds: f64 },
    /// An answer against the protocol, with the reason.
    Nonsense(String),
    /// A system call failed, with the action that needed it.
    System(&'static str, io::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => write!(f, "it died"),
            Self::Failed(error) => write!(f, "{error}"),
            Self::Silent { seconds } => write!(f, "it did not answer for {seconds} s"),
            Self::Nonsense(what) => write!(f, "it answers nonsense: {what}"),
            Self::System(action, error) => write!(f, "cannot {action}: {error}"),
        }
    }
}

/// A running server. Dropping this kills it, with all processes that it started.
pub(super) struct Process {
    child: Child,
    ended: Option<ExitStatus>,
    /// Deadline for closing the environments, once the server was asked to.
    closes_by: Option<Instant>,
    /// While this is open the server lives: when this process is gone, however it went, the kernel ends the server.
    _hold: Option<ChildStdin>,
    doorbell: UnixStream,
    /// Bytes read from the doorbell after the last whole line.
    heard: Vec<u8>,
    errors: Option<ChildStderr>,
    tail: Tail,
    /// Set once the server has sent its spaces.
    memory: Option<Memory>,
}

/// The memory that is shared with a server. It is read and written by system calls, which copy: a slice of it would be
/// one that another process may change at any time.
struct Memory {
    file: File,
    layout: Layout,
}

impl Process {
    /// Starts a server with this number of environments. It may take long to answer.
    pub(super) fn start(options: &ServerOptions, environments: usize) -> Result<Self, Fault> {
        let (doorbell, theirs) =
            UnixStream::pair().map_err(|error| Fault::System("make a socket", error))?;
        let mut configuration = options.configuration.clone();
        configuration.insert("environments".to_owned(), environments.into());
        configuration.insert("pictures".to_owned(), options.pictures.into());
        let mut command = Command::new(&options.python);
        if let Some(folder) = &options.modules {
            let users = env::var_os("PYTHONPATH").filter(|path| !path.is_empty());
            let users = users.iter().flat_map(env::split_paths);
            let all = env::join_paths(iter::once(folder.clone()).chain(users))
                .map_err(|error| Fault::System("name the modules", io::Error::other(error)))?;
            command.env("PYTHONPATH", all);
        }
        command
            // `-P`: modules come from the interpreter and PYTHONPATH, and never from the current folder.
            .args(["-uP", "-c", &options.source])
            .arg(serde_json::Value::Object(configuration).to_string())
            .stdin(Stdio::piped())
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::piped())
            // A group of its own: a Ctrl-C is the client's to answer, and the server ends with all that it starts.
            .process_group(0);
        let mut child =
            spawn(&mut command).map_err(|error| Fault::System("start the server", error))?;
        let process = Process {
            _hold: child.stdin.take(),
            errors: child.stderr.take(),
            child,
            ended: None,
            closes_by: None,
            doorbell,
            heard: Vec::new(),
            tail: Tail::default(),
            memory: None,
        };
        let nonblocking = |fd: BorrowedFd<'_>| rustix::io::ioctl_fionbio(fd, true);
        let errors = process.errors.as_ref().map(AsFd::as_fd).map(nonblocking);
        [Some(nonblocking(process.doorbell.as_fd())), errors]
            .into_iter()
            .flatten()
            .collect::<Result<(), _>>()
            .map_err(|error| Fault::System("set up the server's output", error.into()))?;
        Ok(process)
    }

    /// Reads the server's spaces and description, and shares memory with it.
    pub(super) fn shake_hands(
        &mut self,
        environments: usize,
        timeout: Duration,
    ) -> Result<Introduction, Fault> {
        let line = self.hear(timeout)?;
        let introduction = read_hello(&line, environments).map_err(Fault::Nonsense)?;
        let picture = introduction.picture.as_ref().ok().copied();
        let layout = Layout::of(&introduction.spec, picture);
        let shared = |error: Errno| Fault::System("share memory", error.into());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("podracer-environments", flags).map_err(shared)?;
        rustix::fs::ftruncate(&file, layout.bytes as u64).map_err(shared)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(shared)?;

        let message = serde_json::json!(layout).to_string() + "\n";
        let descriptors = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let parts = [IoSlice::new(message.as_bytes())];
        match sendmsg(&self.doorbell, &parts, &mut control, SendFlags::NOSIGNAL) {
            Ok(sent) if sent == message.len() => {}
            Ok(_) => return Err(Fault::Nonsense("it does not listen".to_owned())),
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(Fault::Died),
            Err(error) => return Err(shared(error)),
        }
        self.expect("ready", timeout)?;
        self.memory = Some(Memory { file: File::from(file), layout });
        Ok(introduction)
    }

    /// Sends a line to the server.
    pub(super) fn say(&mut self, line: &str) -> Result<(), Fault> {
        // A server that waits for a message leaves room in the socket for it; a full socket means that the server is out of step.
        match self.doorbell.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(Fault::Nonsense("it does not listen".to_owned()))
            }
            Err(_) => Err(Fault::Died),
        }
    }

    /// Waits for a line, which must be `expected`.
    pub(super) fn expect(&mut self, expected: &str, timeout: Duration) -> Result<(), Fault> {
        let line = self.hear(timeout)?;
        if line == expected {
            return Ok(());
        }
        Err(Fault::Nonsense(format!("expected `{expected}`, got {}", shortened(&line))))
    }

    /// Waits for the next line. Reads the server's output meanwhile, so that the server never blocks on a full pipe.
    pub(super) fn hear(&mut self, timeout: Duration) -> Result<String, Fault> {
        let began = Instant::now();
        let mut searched = 0;
        loop {
            if let Some(line) = self.next_line(searched) {
                let line = String::from_utf8(line).map_err(|error| {
                    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    Fault::Nonsense(format!("expected text, got {}", shortened(&text)))
                })?;
                return read_failure(&line).map_or(Ok(line), |error| Err(Fault::Failed(error)));
            }
            searched = self.heard.len();
            if searched > LONGEST_LINE {
                return Err(Fault::Nonsense(format!("a line of more than {LONGEST_LINE} bytes")));
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                let seconds = timeout.as_secs_f64();
                return Err(Fault::Silent { seconds });
            }
            if self.wait(left)? {
                let mut block = [0; 4096];
                match self.doorbell.read(&mut block) {
                    Ok(0) => return Err(Fault::Died),
                    Ok(read) => self.heard.extend(&block[..read]),
                    Err(error) if again(&error) => {}
                    Err(_) => return Err(Fault::Died),
                }
            }
        }
    }

    /// Takes the next whole line that was read, if there is one; its end is not before `searched`.
    fn next_line(&mut self, searched: usize) -> Option<Vec<u8>> {
        let at = self.heard[searched..].iter().position(|&byte| byte == b'\n')?;
        let rest = self.heard.split_off(searched + at + 1);
        let mut line = std::mem::replace(&mut self.heard, rest);
        line.pop();
        Some(line)
    }

    /// Waits for input of any kind, and reads the server's output. True if the doorbell has input.
    fn wait(&mut self, timeout: Duration) -> Result<bool, Fault> {
        let doorbell = PollFd::new(&self.doorbell, PollFlags::IN);
        let errors = self.errors.as_ref();
        let mut polled: Vec<PollFd<'_>> = [doorbell]
            .into_iter()
            .chain(errors.map(|errors| PollFd::new(errors, PollFlags::IN)))
            .collect();
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Fault::System("wait for the server", error.into())),
        }
        let came: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if came.get(1) == Some(&true) {
            self.read_errors();
        }
        Ok(came[0])
    }

    /// Reads the output that is there, without waiting.
    fn read_errors(&mut self) {
        let mut block = [0; 4096];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut block) {
                Ok(read) if read > 0 => self.tail.push(&block[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The end of its output.
                _ => self.errors = None,
            }
        }
    }

    /// Process id of the server.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn memory(&self) -> Result<&Memory, Fault> {
        let unshared = || Fault::Nonsense("it shares no memory".to_owned());
        self.memory.as_ref().ok_or_else(unshared)
    }

    pub(super) fn layout(&self) -> Result<&Layout, Fault> {
        Ok(&self.memory()?.layout)
    }

    /// Copies bytes from the shared memory, from this offset on.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Fault> {
        let read = self.memory()?.file.read_exact_at(bytes, offset as u64);
        read.map_err(|error| Fault::System("read the shared memory", error))
    }

    /// Copies bytes into the shared memory, from this offset on.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Fault> {
        let written = self.memory()?.file.write_all_at(bytes, offset as u64);
        written.map_err(|error| Fault::System("write the shared memory", error))
    }

    /// Ends the server after a fault. Returns its exit status if it had ended by itself, and the end of its output, as text. A server
    /// that ends by an error of its own has `patience` to close its environments.
    pub(super) fn end(mut self, fault: &Fault, patience: Duration) -> String {
        let died = matches!(fault, Fault::Died);
        if died || matches!(fault, Fault::Failed(_)) {
            self.wait_for_end(Instant::now() + patience);
        } else {
            self.kill();
        }
        self.read_last_words();
        let status = match self.kill() {
            Some(status) if died => format!(" ({status})"),
            _ => String::new(),
        };
        match self.tail.text() {
            text if text.is_empty() => format!("{status}; it printed nothing"),
            text => format!("{status}; the end of its output:\n{text}"),
        }
    }

    /// Asks the server to close its environments and to end, within `patience`. A server without environments is not asked.
    pub(super) fn ask_to_end(&mut self, patience: Duration) {
        if self.memory.is_some() && self.closes_by.is_none() {
            // A server that has ended needs no asking.
            let _ = self.doorbell.shutdown(Shutdown::Write);
            self.closes_by = Some(Instant::now() + patience);
        }
    }

    /// Waits until the server that was asked to end has ended, and kills it if it does not. Returns what went wrong.
    pub(super) fn finish(mut self) -> Vec<String> {
        let Some(closes_by) = self.closes_by else { return Vec::new() };
        let ended = self.wait_for_end(closes_by);
        let mut heard = Vec::new();
        // A server that is killed has no more to say.
        let _ = self.doorbell.read_to_end(&mut heard);
        self.heard.append(&mut heard);
        let mut problems: Vec<String> = std::iter::from_fn(|| self.next_line(0))
            .filter_map(|line| read_failure(&String::from_utf8_lossy(&line)))
            .collect();
        if !ended {
            problems.push("it is killed: its environments do not close in time".to_owned());
        }
        problems
    }

    /// Waits for the end of the process, and reads its output meanwhile. False if it has not ended by then.
    fn wait_for_end(&mut self, deadline: Instant) -> bool {
        let status = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let child = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It stays to be waited for: until then, no other process group has its number.
        while let Some(Ok(None)) = child.map(|child| waitid(WaitId::Pid(child), status)) {
            if Instant::now() >= deadline {
                return false;
            }
            self.read_errors();
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Reads the output up to its end, at most for `LAST_WORDS`.
    fn read_last_words(&mut self) {
        let began = Instant::now();
        loop {
            self.read_errors();
            let left = LAST_WORDS.saturating_sub(began.elapsed());
            let (Some(errors), false) = (&self.errors, left.is_zero()) else {
                return;
            };
            let timeout = Timespec::try_from(left).ok();
            // Whatever goes wrong in waiting, the loop ends.
            let _ = poll(&mut [PollFd::new(errors, PollFlags::IN)], timeout.as_ref());
        }
    }

    /// Kills the server and all processes that it started.
    fn kill(&mut self) -> Option<ExitStatus> {
        // After `wait` another process may have its id.
        if self.ended.is_none() {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                // An error says that they are gone.
                let _ = kill_process_group(group, Signal::KILL);
            }
            self.ended = self.child.wait().ok();
        }
        self.ended
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a program with no signal blocked. A program inherits the signals that the calling thread blocks, and so do all programs that
/// it starts.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let blocked = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let child = command.spawn();
    blocked.thread_set_mask()?;
    child
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
