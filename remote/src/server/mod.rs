//! The learner's side: a server of gRPC that turns streams into [`Workers`].

mod check;
mod ended;
mod handshakes;
mod limits;
mod link;
mod listen;
mod observations;
mod places;
mod stream;
mod totals;
mod workers;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use podracer_envs::host::{WorkerId, Workers};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, WeakSender};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

pub use limits::Limits;
pub use totals::{ServerStatus, Totals};

use crate::proto::seed_server::{Seed, SeedServer};
use crate::proto::{DescribeRequest, FromWorker, Run};
use crate::{Address, RunDescription, Security, SecurityError, tls};
use limits::{STREAMS, UNHEARD};
use link::Link;
use listen::Listener;
use stream::WorkStream;
use workers::{EventSender, RemoteWorkers, Reply, events};

/// The longest step of a worker, in bytes.
const MOST_STEP_BYTES: usize = 1 << 30;

/// The address where a server listens, its security and its limits.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to listen at.
    pub listen: Address,
    /// Security of the connections: how workers prove who they are; `None` for a Unix socket.
    pub security: Option<Security>,
    /// Bounds on what workers may take.
    pub limits: Limits,
    /// Threads that read and write messages; 0 for one per two cores, at most 4.
    pub threads: usize,
}

impl ServerOptions {
    /// Options with the default limits.
    #[must_use]
    pub fn new(listen: Address, security: Option<Security>) -> Self {
        ServerOptions { listen, security, limits: Limits::default(), threads: 0 }
    }

    /// Checks that a server can start with these options: that its certificates exist and fit the
    /// address, and that no other process listens at the address.
    ///
    /// # Errors
    /// [`ServerError`], as [`Server::start`] would give it.
    pub fn check(&self) -> Result<(), ServerError> {
        self.acceptor()?;
        let failed = |error| ServerError::Listen(self.listen.clone(), error);
        listen::check(&self.listen).map_err(failed)
    }

    fn acceptor(&self) -> Result<Option<TlsAcceptor>, ServerError> {
        let folder = tls::folder(&self.listen, self.security.as_ref())?;
        Ok(folder.map(tls::acceptor).transpose()?)
    }
}

/// Failures to start a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No way for workers to prove who they are, or a wrong one.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// An address that cannot be listened at.
    #[error("cannot listen at {0}: {1}")]
    Listen(Address, #[source] io::Error),
    /// A step that is too long.
    #[error(
        "a step of {environments} environments may have {bytes} bytes, and one message has at most {MOST_STEP_BYTES}: let a \
         worker have fewer environments"
    )]
    TooLong {
        /// Environments that a worker may have.
        environments: usize,
        /// Bytes of its longest step.
        bytes: usize,
    },
    /// Threads that cannot be started.
    #[error("cannot start the server's threads: {0}")]
    Threads(#[source] io::Error),
}

/// State that all streams share.
struct Streams {
    run: RunDescription,
    limits: Limits,
    totals: Arc<Totals>,
    /// One for each inference thread.
    events: Vec<EventSender>,
    next_thread: AtomicUsize,
    next_worker: AtomicU64,
    completed: AtomicBool,
    streams: Mutex<HashMap<WorkerId, WeakSender<Reply>>>,
}

impl Streams {
    fn streams(&self) -> MutexGuard<'_, HashMap<WorkerId, WeakSender<Reply>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all workers the same, and waits until they have left.
    fn tell_all(&self, reply: impl Fn() -> Reply, patience: Duration) {
        let all: Vec<_> = self.streams().values().filter_map(WeakSender::upgrade).collect();
        for replies in all {
            let _ = replies.try_send(reply());
        }
        let until = Instant::now() + patience;
        while self.totals.workers.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The service of the protocol.
struct Service(Arc<Streams>);

#[tonic::async_trait]
impl Seed for Service {
    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<Run>, Status> {
        Ok(Response::new(self.0.run.to_wire()))
    }

    type WorkStream = WorkStream;

    async fn work(
        &self,
        request: Request<Streaming<FromWorker>>,
    ) -> Result<Response<WorkStream>, Status> {
        let link = request.extensions().get::<Arc<Link>>().cloned();
        let link = link.ok_or_else(|| Status::internal("the connection has no link"))?;
        Ok(Response::new(WorkStream::new(self.0.clone(), link, request.into_inner())))
    }
}

/// A server that workers connect to. Dropping it stops it: it asks the workers to connect again.
pub struct Server {
    shared: Arc<Streams>,
    address: Address,
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts a server of a run, with the workers of each inference thread: they are dealt out in turn.
    ///
    /// # Errors
    /// [`ServerError`].
    ///
    /// # Panics
    /// If there is no inference thread.
    pub fn start(
        options: &ServerOptions,
        run: RunDescription,
        inference_threads: usize,
    ) -> Result<(Self, Vec<Box<dyn Workers>>), ServerError> {
        assert!(inference_threads > 0, "somebody has to answer");
        let (limits, listen) = (options.limits.clone(), &options.listen);
        let tls = options.acceptor()?;
        let bytes = check::StepCheck::new(run.spec.clone(), &limits).most_bytes();
        if bytes > MOST_STEP_BYTES {
            return Err(ServerError::TooLong { environments: run.spec.environments, bytes });
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if options.threads == 0 { (cores / 2).clamp(1, 4) } else { options.threads };
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("seed-server")
            .enable_all()
            .build()
            .map_err(ServerError::Threads)?;
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..inference_threads).map(|_| events(UNHEARD * limits.connections)).unzip();
        let shared = Arc::new(Streams {
            run,
            limits: limits.clone(),
            totals: Arc::new(Totals::default()),
            events: senders,
            next_thread: AtomicUsize::new(0),
            next_worker: AtomicU64::new(0),
            completed: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let inside = runtime.enter();
        let failed = |error| ServerError::Listen(listen.clone(), error);
        let listener = Listener::bind(listen).map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let (ready, connections) = mpsc::channel(64);
        tokio::spawn(listener.serve(tls, (limits.clone(), shared.totals.clone()), ready));
        let service = SeedServer::new(Service(shared.clone())).max_decoding_message_size(bytes);
        let window = u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1 << 20, 16 << 20);
        let router = tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(limits.keep_alive))
            .http2_keepalive_timeout(Some(limits.keep_alive_timeout))
            .initial_stream_window_size(window)
            .initial_connection_window_size(window.saturating_mul(2).min(64 << 20))
            .max_concurrent_streams(STREAMS)
            .http2_max_header_list_size(16 << 10)
            .max_frame_size((1 << 20).min(window))
            .add_service(service);
        tokio::spawn(async move {
            if let Err(error) = router.serve_with_incoming(ReceiverStream::new(connections)).await {
                tracing::error!("the server of workers has stopped: {error}");
            }
        });
        let workers = receivers
            .into_iter()
            .map(|events| -> Box<dyn Workers> { Box::new(RemoteWorkers::new(events)) });
        let workers = workers.collect();
        drop(inside);
        Ok((Server { shared, address, runtime: Some(runtime) }, workers))
    }

    /// The address that workers connect to, with the port that was chosen if none was given.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Current counters of the server, readable at any time and by any thread.
    #[must_use]
    pub fn totals(&self) -> Arc<Totals> {
        self.shared.totals.clone()
    }

    /// Ends the server of a run that is complete: it sends the workers the end of the run. It is called before the
    /// [`Workers`] are dropped, which tells them to come again.
    pub fn complete(self) {
        self.shared.completed.store(true, Ordering::Release);
        self.shared.tell_all(|| Reply::Complete, Duration::from_secs(5));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.tell_all(|| Reply::Stop, Duration::from_millis(500));
        if let Some(runtime) = self.runtime.take() {
            // The last message is still on its way through the connections.
            thread::sleep(Duration::from_millis(20));
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}
