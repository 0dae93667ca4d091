//! Clients that send what no worker should.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use podracer::envs::host::Random;
use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::seed_client::SeedClient;
use podracer_remote::proto::{DType, FromWorker, Hello, Space, SpaceKind, Spaces, Step, ToWorker};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Endpoint, Error};
use tonic::{Status, Streaming};

/// Environments of a client.
const N: usize = 2;
/// Time that a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends of a stream.
struct Open {
    say: mpsc::Sender<FromWorker>,
    told: Streaming<ToWorker>,
}

impl Open {
    async fn to(port: u16) -> Result<Self, Status> {
        let address = format!("http://127.0.0.1:{port}");
        let unavailable = |error: Error| Status::unavailable(error.to_string());
        let channel = Endpoint::from_shared(address).map_err(unavailable)?.connect().await;
        let mut client = SeedClient::new(channel.map_err(unavailable)?);
        let (say, said) = mpsc::channel(64);
        let open = Open::say(&say, WorkerMessage::Hello(hello()));
        open.await;
        let told = client.work(ReceiverStream::new(said)).await?.into_inner();
        Ok(Open { say, told })
    }

    async fn say(say: &mpsc::Sender<FromWorker>, message: WorkerMessage) {
        // The stream may have ended.
        let _ = say.send(FromWorker { message: Some(message) }).await;
    }

    async fn hear(&mut self) -> Result<(), Status> {
        let heard = tokio::time::timeout(PATIENCE, self.told.message()).await;
        let late = |_| Status::deadline_exceeded("nothing was heard");
        heard.map_err(late)??.map(drop).ok_or_else(|| Status::ok(""))
    }

    /// Does right for two steps.
    async fn begin(&mut self) -> Result<(), Status> {
        self.hear().await?;
        for sequence in 0..2 {
            Open::say(&self.say, WorkerMessage::Step(step(sequence))).await;
            self.hear().await?;
        }
        Ok(())
    }

    /// The status that the stream ends with.
    async fn end(&mut self) -> Status {
        loop {
            if let Err(status) = self.hear().await {
                return status;
            }
        }
    }
}

fn hello() -> Hello {
    let space = |kind: SpaceKind, dtype: DType| Space {
        kind: kind.into(),
        dtype: dtype.into(),
        ..Space::default()
    };
    let observation = Space { shape: vec![4], ..space(SpaceKind::Box, DType::F32) };
    let action = Space { counts: vec![2], ..space(SpaceKind::Discrete, DType::I32) };
    let (observation, action) = (Some(observation), Some(action));
    let spaces = Some(Spaces { observation, action, truncates: true, skips: false, masks: false });
    let name = "a client that does wrong".to_owned();
    Hello { protocol: 1, environments: N as u32, spaces, run: String::new(), name }
}

fn step(sequence: u64) -> Step {
    let zeros = |bytes: usize| vec![0; bytes].into();
    Step {
        sequence,
        observation: zeros(16 * N),
        reward: zeros(4 * N),
        terminated: zeros(N),
        truncated: zeros(N),
        final_observations: zeros(0),
        legal_actions: zeros(0),
        success: zeros(0),
    }
}

fn outcome(status: &Status) -> String {
    format!("{:?}: {:.120}", status.code(), status.message())
}

pub struct Clients(Runtime);

impl Clients {
    pub fn new() -> Self {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        Clients(threads.worker_threads(1).enable_all().build().expect("threads start"))
    }

    /// Does right for a while, and then sends a step. It must not be answered.
    fn send(&self, port: u16, wrong: Step) -> String {
        self.0.block_on(async {
            let begun = async {
                let mut open = Open::to(port).await?;
                open.begin().await?;
                Ok::<_, Status>(open)
            };
            let mut open = match begun.await {
                Ok(open) => open,
                Err(status) => return format!("it does not get so far: {}", outcome(&status)),
            };
            Open::say(&open.say, WorkerMessage::Step(wrong)).await;
            let heard = open.hear().await.expect_err("nonsense is not answered");
            outcome(&heard)
        })
    }

    pub fn not_a_number(&self, port: u16) -> String {
        let reward = f32::NAN.to_le_bytes().repeat(N).into();
        self.send(port, Step { reward, ..step(2) })
    }

    pub fn wrong_shapes(&self, port: u16, random: &mut Random) -> String {
        let bytes = vec![0; random.below(200)].into();
        self.send(
            port,
            match random.below(3) {
                0 => Step { observation: vec![0; 16 * N + 1].into(), ..step(2) },
                1 => Step { reward: vec![0; 4 * N + 4].into(), ..step(2) },
                _ => Step { final_observations: bytes, terminated: vec![1; N].into(), ..step(2) },
            },
        )
    }

    /// Sends steps without waiting for answers, or even for the welcome.
    pub fn flood(&self, port: u16, random: &mut Random) -> String {
        let waits = random.below(2) == 0;
        self.0.block_on(async {
            let mut open = match Open::to(port).await {
                Ok(open) => open,
                Err(status) => return format!("it does not get so far: {}", outcome(&status)),
            };
            if waits && let Err(status) = open.hear().await {
                return format!("it does not get so far: {}", outcome(&status));
            }
            let say = open.say.clone();
            let flood = tokio::spawn(async move {
                let mut sent = 0_usize;
                while sent < 200_000 {
                    let message =
                        FromWorker { message: Some(WorkerMessage::Step(step(sent as u64))) };
                    if say.send(message).await.is_err() {
                        break;
                    }
                    sent += 1;
                }
                sent
            });
            let status = open.end().await;
            drop(open);
            let sent = tokio::time::timeout(PATIENCE, flood).await;
            let sent = sent.map_or(0, |sent| sent.expect("it does not panic"));
            format!("{}, after {sent} steps", outcome(&status))
        })
    }

    /// Connects so often: some say nothing, some say garbage, and some begin a stream and leave.
    pub fn connect(&self, port: u16, times: usize, random: &mut Random) {
        for _ in 0..times {
            match random.below(3) {
                0 => drop(TcpStream::connect(("127.0.0.1", port)).expect("it listens")),
                1 => drop(garbage(port, random)),
                _ => self.0.block_on(async {
                    if let Ok(mut open) = Open::to(port).await {
                        let _ = open.hear().await;
                    }
                }),
            }
        }
    }
}

/// Sends random bytes, after the first bytes of HTTP/2 or not.
pub fn garbage(port: u16, random: &mut Random) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return "nobody listens".to_owned();
    };
    let begins: &[u8] = match random.below(2) {
        0 => b"",
        _ => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    };
    let bytes: Vec<u8> = (0..1 + random.below(4000)).map(|_| random.below(256) as u8).collect();
    let written = stream.write_all(&[begins, &bytes].concat()).is_ok();
    let _ = stream.set_read_timeout(Some(Duration::from_secs(15)));
    let mut heard = Vec::new();
    let closed = stream.read_to_end(&mut heard).is_ok();
    format!("written: {written}, heard {} bytes, closed in order: {closed}", heard.len())
}
