//! All processes of a training, seen from one of them.

use std::collections::BTreeMap;
use std::fmt;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::library::{Channel, Library};
use crate::watch::Watch;
use crate::{Combine, Launched, MpiError, Number};

/// One of the processes, as shown in messages: its host, and its process id on that host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The host's name.
    pub host: String,
    /// The process id on its host.
    pub id: u32,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {} on {}", self.id, self.host)
    }
}

/// All processes that the launcher started, from the inside of one. Copies are the same world.
///
/// All processes call the same functions in the same order; each waits for the others.
#[derive(Clone, Copy)]
pub struct World(&'static WorldInner);

struct WorldInner {
    library: Library,
    rank: usize,
    members: Vec<Member>,
    /// The communicator for exchanges; only one exchange runs at a time.
    channel: Mutex<Channel>,
    watch: Mutex<Option<Watch>>,
    /// The patience of the watch, in milliseconds.
    patience: AtomicU64,
    exchanges: AtomicU64,
}

static JOINED: Mutex<Option<World>> = Mutex::new(None);

impl World {
    /// Loads the launcher's MPI and joins the others; the same world if that was done before. To be called on a thread that
    /// lives as long as the process, before other threads begin.
    ///
    /// # Errors
    /// No library, one of another MPI than the launcher's, one without threads, and MPI's own errors.
    pub fn join(launched: Launched) -> Result<Self, MpiError> {
        let mut joined = lock(&JOINED);
        if let Some(world) = *joined {
            return Ok(world);
        }
        let (library, file) = Library::join(launched)?;
        let (rank, size) = library.place(library.world())?;
        if size != launched.size {
            return Err(MpiError::Foreign {
                launcher: launched.launcher,
                expected: launched.size,
                got: size,
                version: library.version(),
                library: file,
            });
        }
        let channel = library.channel()?;
        let inner = WorldInner {
            library,
            rank,
            members: Vec::new(),
            channel: Mutex::new(channel),
            watch: Mutex::new(None),
            patience: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
        };
        let all = inner.gather(format!("{}\n{}", process::id(), host()).as_bytes(), size)?;
        let members = all.iter().map(|one| {
            let text = String::from_utf8_lossy(one);
            let (id, host) = text.split_once('\n').unwrap_or_default();
            Member { host: host.to_owned(), id: id.parse().unwrap_or_default() }
        });
        let members = members.collect();
        let world = World(Box::leak(Box::new(WorldInner { members, ..inner })));
        *joined = Some(world);
        Ok(world)
    }

    /// The world that was joined, if any was.
    #[must_use]
    pub fn joined() -> Option<Self> {
        *lock(&JOINED)
    }

    /// This process's number, from 0.
    #[must_use]
    pub fn rank(self) -> usize {
        self.0.rank
    }

    /// The number of processes.
    #[must_use]
    pub fn size(self) -> usize {
        self.0.members.len()
    }

    /// Every process, by its number.
    #[must_use]
    pub fn members(self) -> &'static [Member] {
        &self.0.members
    }

    /// Returns true for the process with number 0, which writes and prints everything that is
    /// written and printed once.
    #[must_use]
    pub fn is_first(self) -> bool {
        self.rank() == 0
    }

    /// The number of processes before this process on its host.
    #[must_use]
    pub fn earlier_on_host(self) -> usize {
        let (before, rest) = self.members().split_at(self.rank());
        before.iter().filter(|member| member.host == rest[0].host).count()
    }

    /// Combines the numbers in `from` over all processes, element by element, into `into`. Without
    /// `from`, it combines the numbers in `into` in place.
    ///
    /// # Errors
    /// MPI's own, such as another process's death.
    pub fn all_reduce(
        self,
        how: (Number, Combine),
        from: Option<&[u8]>,
        into: &mut [u8],
    ) -> Result<(), MpiError> {
        self.0.exchange(|library, channel| library.all_reduce(channel, how, from, into))
    }

    /// Gathers the bytes from all processes, equally many from each, one process after another,
    /// into `into`.
    ///
    /// # Errors
    /// MPI's own.
    pub fn all_gather(self, from: &[u8], into: &mut [u8]) -> Result<(), MpiError> {
        self.0.exchange(|library, channel| library.all_gather(channel, from, into))
    }

    /// The bytes of each process, of any number.
    ///
    /// # Errors
    /// MPI's own.
    pub fn gather(self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, MpiError> {
        self.0.gather(bytes, self.size())
    }

    /// The first process's word, which the others give none for.
    ///
    /// # Errors
    /// MPI's own.
    pub fn hear_first(self, word: &[u8]) -> Result<Vec<u8>, MpiError> {
        let word = if self.is_first() { word } else { &[] };
        Ok(self.gather(word)?.swap_remove(0))
    }

    /// Sends bytes to the first process, which asks for them by [`World::receive`].
    ///
    /// # Errors
    /// MPI's own.
    pub fn send_to_first(self, bytes: &[u8]) -> Result<(), MpiError> {
        self.0.exchange(|library, channel| {
            library.send(channel, 0, &(bytes.len() as u64).to_le_bytes())?;
            library.send(channel, 0, bytes)
        })
    }

    /// Receives the bytes that a process sends to this process, which is the first.
    ///
    /// # Errors
    /// MPI's own.
    pub fn receive(self, from: usize) -> Result<Vec<u8>, MpiError> {
        self.0.exchange(|library, channel| {
            let mut length = [0; 8];
            library.receive(channel, from, &mut length)?;
            let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
            library.receive(channel, from, &mut bytes)?;
            Ok(bytes)
        })
    }

    /// Checks that all processes have the same facts, by name: settings, seed, programs.
    ///
    /// # Errors
    /// [`MpiError::Disagree`], on every process, with the fact, and which process has what.
    pub fn agree<N: AsRef<str>>(self, facts: &[(N, String)]) -> Result<(), MpiError> {
        let line =
            |(name, value): &(N, String)| format!("{}\t{}", name.as_ref(), value.escape_debug());
        let text: Vec<String> = facts.iter().map(line).collect();
        let all = self.gather(text.join("\n").as_bytes())?;
        let all: Vec<_> = all.iter().map(|one| String::from_utf8_lossy(one)).collect();
        fn of(text: &str) -> BTreeMap<&str, &str> {
            text.lines().filter_map(|line| line.split_once('\t')).collect()
        }
        let first = of(&all[0]);
        for (rank, other) in all.iter().enumerate().skip(1) {
            let other = of(other);
            // In the order of the facts, and last those that process 0 does not have.
            let names = facts.iter().map(|(name, _)| name.as_ref()).chain(other.keys().copied());
            for name in names.chain(first.keys().copied()) {
                let [expected, got] =
                    [&first, &other].map(|facts| facts.get(name).copied().unwrap_or("nothing"));
                if expected != got {
                    let [zero, that] = [0, rank].map(|rank| &self.members()[rank]);
                    return Err(MpiError::Disagree(format!(
                        "the processes differ in {name}: process 0 ({zero}) has `{expected}` and process {rank} ({that}) has `{got}`; \
                         start all of them with the same program, settings and seed"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Begins to watch the other processes. If a process is silent for longer than the patience,
    /// `lost` is called with it and all processes are ended with code 1. Every process watches.
    ///
    /// # Errors
    /// MPI's own.
    pub fn watch(
        self,
        patience: Duration,
        lost: impl FnOnce(String) + Send + 'static,
    ) -> Result<(), MpiError> {
        self.be_patient(patience);
        let mut watch = lock(&self.0.watch);
        if watch.is_none() {
            *watch = Some(Watch::begin(self, lost)?);
        }
        Ok(())
    }

    /// Sets the patience of the watch.
    pub fn be_patient(self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.0.patience.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn patience(self) -> Duration {
        Duration::from_millis(self.0.patience.load(Ordering::Relaxed))
    }

    /// The number of exchanges so far.
    #[must_use]
    pub fn exchanges(self) -> u64 {
        self.0.exchanges.load(Ordering::Relaxed)
    }

    /// Leaves together with all others: waits for them, and ends MPI.
    ///
    /// # Errors
    /// MPI's own.
    pub fn leave(self) -> Result<(), MpiError> {
        self.gather(&[])?;
        let watch = lock(&self.0.watch).take();
        watch.into_iter().for_each(Watch::end);
        self.0.library.finalize()
    }

    /// Asks the launcher to end all processes, and ends this process.
    pub fn abort(self, code: u8) -> ! {
        self.0.library.abort(code);
        process::exit(i32::from(code))
    }

    pub(crate) fn raw(self) -> &'static Library {
        &self.0.library
    }
}

impl WorldInner {
    /// One exchange, on which no other thread's follows before it is over.
    fn exchange<R>(&self, f: impl FnOnce(&Library, Channel) -> R) -> R {
        let channel = lock(&self.channel);
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        f(&self.library, *channel)
    }

    fn gather(&self, bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, MpiError> {
        const LENGTH: usize = size_of::<u64>();
        self.exchange(|library, channel| {
            let mut lengths = vec![0; LENGTH * size];
            library.all_gather(channel, &(bytes.len() as u64).to_le_bytes(), &mut lengths)?;
            let lengths = lengths.as_chunks::<LENGTH>().0.iter();
            let lengths: Vec<usize> =
                lengths.map(|length| u64::from_le_bytes(*length) as usize).collect();
            // As many of each, for MPI.
            let most = lengths.iter().copied().max().unwrap_or(0);
            let mut padded = bytes.to_vec();
            padded.resize(most, 0);
            let mut all = vec![0; most * size];
            library.all_gather(channel, &padded, &mut all)?;
            let each = lengths.iter().enumerate();
            Ok(each.map(|(rank, &length)| all[rank * most..][..length].to_vec()).collect())
        })
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for World {}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.rank(), self.size())
    }
}

/// The host's name in its network.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
