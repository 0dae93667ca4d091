//! The learner's side: our server with a batch that is gathered, and a bare echo.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use podracer_envs::Space;
use podracer_envs::host::{Answer, HostSpec, WorkerEvent, WorkerId, Workers};
use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::seed_server::{Seed, SeedServer};
use podracer_remote::proto::to_worker::Message as LearnerMessage;
use podracer_remote::proto::{Actions, DescribeRequest, FromWorker, Run, ToWorker, Welcome};
use podracer_remote::server::{Server, ServerOptions};
use podracer_remote::{Address, RunDescription, Security};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::Result;

/// Time after which a batch that is not full is answered.
const TIMEOUT: Duration = Duration::from_millis(2);

pub fn spec(shape: &[usize], environments: usize) -> HostSpec {
    let observation = if shape.len() == 1 { Space::unbounded(shape) } else { Space::pixels(shape) };
    HostSpec::new(environments, observation, Space::discrete(6))
}

/// A server and its inference thread.
pub struct Served {
    server: Option<Server>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub fn address(&self) -> Address {
        self.server
            .as_ref()
            .map_or_else(|| unreachable!("it runs"), |server| server.address().clone())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.server.take());
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// podracer's server; its inference gathers `batch` observations and answers with zeros.
pub fn ours(
    listen: Address,
    security: Option<Security>,
    shape: &[usize],
    batch: usize,
) -> Result<Served> {
    let run = RunDescription {
        id: "bench".to_owned(),
        environment: "still".to_owned(),
        settings: "{}".to_owned(),
        spec: spec(shape, 256),
        unroll: 20,
    };
    let bytes = run.spec.observation.ty().bytes();
    let (server, mut workers) = Server::start(&ServerOptions::new(listen, security), run, 1)?;
    let workers = workers.pop().ok_or("one thread was asked for")?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let thread = thread::spawn(move || infer(workers, batch, bytes, &flag));
    Ok(Served { server: Some(server), stop, thread: Some(thread) })
}

fn infer(mut workers: Box<dyn Workers>, batch: usize, bytes: usize, stop: &AtomicBool) {
    let mut gathered = vec![0; batch * bytes];
    let mut waiting: Vec<(WorkerId, u64, usize)> = Vec::new();
    let (mut filled, mut lanes, mut version) = (0, 0, 0);
    let mut until = Instant::now() + TIMEOUT;
    while !stop.load(Ordering::Relaxed) {
        match workers.next(until) {
            Ok(Some(WorkerEvent::Joined { worker, environments, .. })) => {
                workers.admit(worker, lanes, 0);
                lanes += environments;
            }
            Ok(Some(WorkerEvent::Stepped { worker, sequence, step })) => {
                if waiting.is_empty() {
                    until = Instant::now() + TIMEOUT;
                }
                let n = step.terminated.len();
                gathered[filled * bytes..(filled + n) * bytes].copy_from_slice(&step.observation);
                filled += n;
                waiting.push((worker, sequence, n));
            }
            Ok(Some(WorkerEvent::Left { .. }) | None) => {}
            Err(_) => return,
        }
        if filled >= batch || (filled > 0 && Instant::now() >= until) {
            std::hint::black_box(&gathered);
            version += 1;
            let answers = waiting.drain(..).map(|(worker, sequence, n)| Answer {
                worker,
                sequence,
                actions: Bytes::from(vec![0; 4 * n]),
                version,
            });
            workers.answer(answers.collect());
            filled = 0;
        }
        if waiting.is_empty() {
            until = Instant::now() + Duration::from_millis(100);
        }
    }
}

/// Answers each message where it was read.
struct Echo(Run);

#[tonic::async_trait]
impl Seed for Echo {
    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> std::result::Result<Response<Run>, Status> {
        Ok(Response::new(self.0.clone()))
    }

    type WorkStream = ReceiverStream<std::result::Result<ToWorker, Status>>;

    async fn work(
        &self,
        request: Request<Streaming<FromWorker>>,
    ) -> std::result::Result<Response<Self::WorkStream>, Status> {
        let (tell, told) = mpsc::channel(4);
        let mut said = request.into_inner();
        let run = self.0.clone();
        tokio::spawn(async move {
            while let Ok(Some(message)) = said.message().await {
                let told = match message.message {
                    Some(WorkerMessage::Hello(_)) => LearnerMessage::Welcome(Welcome {
                        run: Some(run.clone()),
                        first_lane: 0,
                        seed: 0,
                    }),
                    Some(WorkerMessage::Step(step)) => {
                        let actions = vec![0; 4 * step.terminated.len()].into();
                        LearnerMessage::Actions(Actions {
                            sequence: step.sequence,
                            actions,
                            version: 0,
                        })
                    }
                    None => return,
                };
                if tell.send(Ok(ToWorker { message: Some(told) })).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(told)))
    }
}

/// The echo, with as many threads and the same windows as our server.
pub fn echo(listen: Address, shape: &[usize]) -> Result<(Runtime, Address)> {
    let cores = thread::available_parallelism()?.get();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads((cores / 2).clamp(1, 4))
        .enable_all()
        .build()?;
    let run = Run { protocol: 1, id: "echo".to_owned(), ..Run::default() };
    let bytes = spec(shape, 256).observation_type().bytes();
    let service = SeedServer::new(Echo(run)).max_decoding_message_size(bytes + (1 << 20));
    let window = u32::try_from(bytes)?.clamp(1 << 20, 16 << 20);
    let router = tonic::transport::Server::builder()
        .initial_stream_window_size(window)
        .initial_connection_window_size(2 * window)
        .max_frame_size(1 << 20)
        .add_service(service);
    let inside = runtime.enter();
    let address = match listen {
        Address::Unix(path) => {
            let (ready, sockets) = mpsc::channel(64);
            let listener = UnixListener::bind(&path)?;
            tokio::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    let _ = ready.send(Ok::<_, std::io::Error>(socket)).await;
                }
            });
            tokio::spawn(router.serve_with_incoming(ReceiverStream::new(sockets)));
            Address::Unix(path)
        }
        Address::Tcp(host) => {
            let (ready, sockets) = mpsc::channel(64);
            let listener = std::net::TcpListener::bind(host)?;
            listener.set_nonblocking(true)?;
            let address = Address::Tcp(listener.local_addr()?.to_string());
            let listener = TcpListener::from_std(listener)?;
            tokio::spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    let _ = socket.set_nodelay(true);
                    let _ = ready.send(Ok::<_, std::io::Error>(socket)).await;
                }
            });
            tokio::spawn(router.serve_with_incoming(ReceiverStream::new(sockets)));
            address
        }
    };
    drop(inside);
    Ok((runtime, address))
}
