//! A thread that tells every other process that this process is alive, and receives the same from
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::library::{Channel, Message};
use crate::{MpiError, World};

/// The message of a process: one byte, which is 0 from a process that is alive, and 1 in the last
/// message of a process that leaves.
type Word = Message<1>;

const ALIVE: [u8; 1] = [0];
const LEAVES: [u8; 1] = [1];

/// Messages are sent `WORDS` times within the patience, and at least once a second.
const WORDS: u32 = 10;

/// The watch over all other processes.
pub(crate) struct Watch {
    leaving: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// The words that go to another process and come from it.
struct Peer {
    rank: usize,
    sent: Option<Word>,
    /// True once the last word to it is under way.
    left: bool,
    /// Absent once the other has said its last word.
    awaited: Option<Word>,
    heard: Instant,
}

impl Watch {
    pub(crate) fn begin(
        world: World,
        lost: impl FnOnce(String) + Send + 'static,
    ) -> Result<Self, MpiError> {
        let channel = world.raw().channel()?;
        let leaving = Arc::new(AtomicBool::new(false));
        let shared = leaving.clone();
        let lost = Mutex::new(Some(lost));
        let end = move |problem: String| {
            let lost = lost.lock().unwrap_or_else(PoisonError::into_inner).take();
            lost.into_iter().for_each(|lost| lost(problem.clone()));
            world.abort(1)
        };
        let thread = thread::spawn(move || {
            if let Err(problem) = watch(world, channel, &shared) {
                end(problem)
            }
        });
        Ok(Watch { leaving, thread })
    }

    /// Says the last word to all others, and waits for theirs.
    pub(crate) fn end(self) {
        self.leaving.store(true, Ordering::Release);
        // A thread that panicked watches no more, which is all that is asked here.
        let _ = self.thread.join();
    }
}

/// Returns once all others have said their last words, and the error where one is silent for longer than the patience.
fn watch(world: World, channel: Channel, leaving: &AtomicBool) -> Result<(), String> {
    let library = world.raw();
    let failed = |error: MpiError| format!("the watch over the other processes: {error}");
    let others = (0..world.size()).filter(|&rank| rank != world.rank());
    let mut peers = others
        .map(|rank| {
            let awaited = Some(Word::receive(library, channel, rank)?);
            Ok(Peer { rank, sent: None, left: false, awaited, heard: Instant::now() })
        })
        .collect::<Result<Vec<_>, MpiError>>()
        .map_err(failed)?;
    loop {
        let patience = world.patience();
        let interval = (patience / WORDS).min(Duration::from_secs(1));
        let last = leaving.load(Ordering::Acquire);
        for peer in &mut peers {
            peer.hear(world, channel).map_err(failed)?;
            let silent = peer.heard.elapsed();
            if peer.awaited.is_some() && silent > patience {
                return Err(format!(
                    "process {} ({}) was not heard of for {:.1} s, which is longer than the patience of {} s",
                    peer.rank,
                    world.members()[peer.rank],
                    silent.as_secs_f64(),
                    patience.as_secs_f64()
                ));
            }
            // One word at a time: to a process that does not listen nothing piles up.
            if let Some(word) = peer.sent.take() {
                peer.sent = word.done(library).map_err(failed)?.err();
            }
            if peer.sent.is_none() && !peer.left {
                let word = if last { LEAVES } else { ALIVE };
                let sent = Word::send(library, channel, peer.rank, word).map_err(failed)?;
                (peer.sent, peer.left) = (Some(sent), last);
            }
        }
        let over = |peer: &Peer| peer.left && peer.sent.is_none() && peer.awaited.is_none();
        if peers.iter().all(over) {
            return Ok(());
        }
        thread::sleep(if last { Duration::from_millis(1) } else { interval });
    }
}

impl Peer {
    /// Takes the words that have come.
    fn hear(&mut self, world: World, channel: Channel) -> Result<(), MpiError> {
        while let Some(word) = self.awaited.take() {
            match word.done(world.raw())? {
                Err(still) => {
                    self.awaited = Some(still);
                    return Ok(());
                }
                Ok(word) => {
                    self.heard = Instant::now();
                    if word == ALIVE {
                        self.awaited = Some(Word::receive(world.raw(), channel, self.rank)?);
                    }
                }
            }
        }
        Ok(())
    }
}
