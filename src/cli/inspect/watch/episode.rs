//! Episodes that a page requests: separate processes play them, and the server sends them
//! meanwhile.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use podracer_plugins::unblocked;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::cli::signals::ENDS_WITH;

/// Greatest number of episodes that are played at once.
const EPISODES: usize = 2;
/// Greatest number of bytes of an episode's pictures, before compression: a longer episode is cut
/// off.
const LARGEST: usize = 256 << 20;
/// Bytes of pictures that are compressed together.
const PIECE: usize = 1 << 18;
/// Number of pieces that wait for the client.
const WAITING: usize = 4;
/// Greatest number of bytes of an error message from the player.
const LONGEST_MESSAGE: u64 = 1 << 16;

/// The episodes that are being played.
pub(super) struct Episodes(Arc<Semaphore>);

impl Default for Episodes {
    fn default() -> Self {
        Episodes(Arc::new(Semaphore::new(EPISODES)))
    }
}

impl Episodes {
    /// The pictures of an episode of a run's last checkpoint: YUV4MPEG2, with the agent's
    /// values next to them if requested. The process ends with the body.
    ///
    /// # Errors
    /// An error if two episodes are already being played, or the last line of the player's messages
    /// if the player fails.
    pub(super) async fn play(&self, run: &Path, seed: u64, values: bool) -> Result<Content> {
        let permit = Arc::clone(&self.0).try_acquire_owned().ok();
        let permit = permit.with_context(|| {
            format!("{EPISODES} episodes are being played: try again when one of them has ended")
        })?;
        let mut said = tempfile::tempfile()?;
        let mut play = Command::new(std::env::current_exe()?);
        play.arg("play").arg(run).arg(format!("--seed={seed}")).args(["--output", "-"]);
        play.args(values.then_some("--values"));
        play.env(ENDS_WITH, std::process::id().to_string()).kill_on_drop(true);
        play.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said.try_clone()?);
        let mut player = unblocked(|| play.spawn())?;
        let mut pictures = player.stdout.take().context("the player has no output")?;
        let mut first = vec![0; PIECE];
        let bytes = pictures.read(&mut first).await?;
        if bytes == 0 {
            let _ = player.wait().await;
            bail!("{}", last_line(&mut said));
        }
        first.truncate(bytes);
        let (sender, receiver) = mpsc::channel(WAITING);
        tokio::spawn(send((player, permit), pictures, first, sender));
        Ok(Content::Now(receiver))
    }
}

/// Sends the pictures, compressed, until they end or the client leaves.
async fn send(
    // Both are dropped at the end.
    _playing: (Child, OwnedSemaphorePermit),
    mut pictures: ChildStdout,
    mut piece: Vec<u8>,
    sender: mpsc::Sender<Bytes>,
) {
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    let mut left = LARGEST;
    loop {
        left = left.saturating_sub(piece.len());
        // Writing to memory does not fail.
        let _ = zip.write_all(&piece).and_then(|()| zip.flush());
        let zipped = Bytes::from(std::mem::take(zip.get_mut()));
        if sender.send(zipped).await.is_err() || left == 0 {
            break;
        }
        piece.resize(PIECE, 0);
        let read = tokio::select! {
            read = pictures.read(&mut piece) => read.unwrap_or(0),
            () = sender.closed() => 0,
        };
        piece.truncate(read);
        if read == 0 {
            break;
        }
    }
    let _ = sender.send(zip.finish().unwrap_or_default().into()).await;
}

/// The last line that the player has printed.
fn last_line(said: &mut File) -> String {
    let mut text = Vec::new();
    let read = said.rewind().and_then(|()| said.take(LONGEST_MESSAGE).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().last().filter(|_| read.is_ok());
    last.unwrap_or("the episode cannot be played").to_owned()
}

/// The body of an answer.
pub(super) enum Content {
    /// All bytes; `None` after they were sent.
    Whole(Option<Bytes>),
    /// An episode that is being played, compressed by gzip.
    Now(mpsc::Receiver<Bytes>),
}

impl Content {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Content::Whole(Some(bytes))
    }

    /// True if the body is compressed.
    pub(super) fn zipped(&self) -> bool {
        matches!(self, Content::Now(_))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = match self.get_mut() {
            Content::Whole(bytes) => Poll::Ready(bytes.take()),
            Content::Now(receiver) => receiver.poll_recv(task),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Content::Now(_) => SizeHint::default(),
        }
    }
}
