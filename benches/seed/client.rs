//! The workers' side: environments that do nothing, with our worker or a bare client of tonic.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep};
use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::seed_client::SeedClient;
use podracer_remote::proto::{FromWorker, Hello, Step};
use podracer_remote::worker::{WorkerOptions, work};
use podracer_remote::{Address, Security};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use crate::servers::spec;
use crate::{PER_WORKER, Result, cpu_seconds, wait};

/// Counters of all threads of this process.
#[derive(Default)]
struct Counts {
    measuring: AtomicBool,
    observations: AtomicU64,
    /// Seconds from a step to its answer.
    latencies: Mutex<Vec<f64>>,
}

/// Environments that show the same for ever, and time how long they wait for actions.
struct Still {
    spec: HostSpec,
    counts: Arc<Counts>,
    since: Option<Instant>,
    mine: Vec<f64>,
}

impl Still {
    fn answered(&mut self, n: usize) {
        self.counts.observations.fetch_add(n as u64, Ordering::Relaxed);
        if let Some(since) = self.since
            && self.counts.measuring.load(Ordering::Relaxed)
        {
            self.mine.push(since.elapsed().as_secs_f64());
            if self.mine.len() == 64 {
                let mut all = self.counts.latencies.lock().unwrap_or_else(PoisonError::into_inner);
                all.append(&mut self.mine);
            }
        }
    }
}

impl HostEnvironment for Still {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }
    fn reset(
        &mut self,
        _: u64,
        _: usize,
        step: &mut HostStep<'_>,
    ) -> std::result::Result<(), HostError> {
        step.begin();
        Ok(())
    }
    fn send(&mut self, actions: &[u8]) -> std::result::Result<(), HostError> {
        self.answered(self.spec.environments);
        self.spec.check_actions(actions)
    }
    fn receive(&mut self, _: &mut HostStep<'_>) -> std::result::Result<(), HostError> {
        self.since = Some(Instant::now());
        Ok(())
    }
}

/// `client worker|bare ADDRESS socket|insecure|FOLDER BATCH SHAPE SECONDS`
pub fn run(arguments: &[String]) -> Result<()> {
    let [which, address, way, batch, shape, seconds] = arguments else {
        return Err("the bench starts its clients itself".into());
    };
    let (address, batch): (Address, usize) = (address.parse()?, batch.parse()?);
    let shape: Vec<usize> =
        shape.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let counts = Arc::<Counts>::default();
    let workers = batch / PER_WORKER;
    let (bare, way) = (which == "bare", way.clone());
    for index in 0..workers {
        let (address, shape, counts) = (address.clone(), shape.clone(), counts.clone());
        if bare {
            thread::spawn(move || {
                if let Err(error) = echo(&address, &spec(&shape, PER_WORKER), &counts) {
                    eprintln!("bare client: {error}");
                }
            });
        } else if index == 0 {
            let security = match &way[..] {
                "socket" => None,
                "insecure" => Some(Security::Insecure),
                folder => Some(Security::Certificates(folder.into())),
            };
            let options = WorkerOptions {
                addresses: vec![address],
                security,
                environments: batch,
                batches: workers,
            };
            thread::spawn(move || {
                let make = |_: &_, n: usize| -> Result<Box<dyn HostEnvironment>> {
                    let counts = counts.clone();
                    Ok(Box::new(Still {
                        spec: spec(&shape, n),
                        counts,
                        since: None,
                        mine: Vec::new(),
                    }))
                };
                if let Err(error) = work(&options, &make, &Arc::default(), &AtomicBool::new(false))
                {
                    eprintln!("worker: {error}");
                }
            });
        }
    }
    let steady = (20 * batch) as u64;
    wait("the first steps", || counts.observations.load(Ordering::Relaxed) > steady)?;
    thread::sleep(Duration::from_millis(300));
    println!("begin");
    let (begun, cpu) = (Instant::now(), cpu_seconds(std::process::id())?);
    let before = counts.observations.load(Ordering::Relaxed);
    counts.measuring.store(true, Ordering::Relaxed);
    thread::sleep(seconds);
    counts.measuring.store(false, Ordering::Relaxed);
    let observations = counts.observations.load(Ordering::Relaxed) - before;
    let elapsed = begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds(std::process::id())? - cpu;
    let mut latencies = counts.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| {
        latencies
            .get((latencies.len() as f64 * share) as usize)
            .map_or(f64::NAN, |seconds| 1e3 * seconds)
    };
    println!("end {observations} {elapsed} {} {} {cpu}", at(0.5), at(0.99));
    std::process::exit(0);
}

/// A client that sends the same messages and looks at nothing.
fn echo(address: &Address, spec: &HostSpec, counts: &Arc<Counts>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let endpoint = Endpoint::from_static("http://echo");
    let channel: Channel =
        match address.clone() {
            Address::Unix(path) => {
                runtime.block_on(endpoint.connect_with_connector(tower::service_fn(move |_| {
                    let path = path.clone();
                    async move {
                        Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?))
                    }
                })))?
            }
            Address::Tcp(host) => {
                runtime.block_on(endpoint.connect_with_connector(tower::service_fn(move |_| {
                    let host = host.clone();
                    async move {
                        let stream = TcpStream::connect(host).await?;
                        stream.set_nodelay(true)?;
                        Ok::<_, std::io::Error>(TokioIo::new(stream))
                    }
                })))?
            }
        };
    let n = spec.environments;
    let observation = Bytes::from(vec![0; spec.observation_type().bytes()]);
    // As our worker sends them: equal rewards once, and no flags.
    let (reward, flags) = (Bytes::from(vec![0; 4]), Bytes::new());
    let mut timer =
        Still { spec: spec.clone(), counts: counts.clone(), since: None, mine: Vec::new() };
    runtime.block_on(async {
        let (say, said) = mpsc::channel(2);
        let hello = Hello { protocol: 1, environments: n as u32, ..Hello::default() };
        say.send(FromWorker { message: Some(WorkerMessage::Hello(hello)) }).await?;
        let mut told = SeedClient::new(channel).work(ReceiverStream::new(said)).await?.into_inner();
        let mut sequence = 0;
        while told.message().await?.is_some() {
            if sequence > 0 {
                timer.answered(n);
            }
            timer.since = Some(Instant::now());
            let step = Step {
                sequence,
                observation: observation.clone(),
                reward: reward.clone(),
                terminated: flags.clone(),
                truncated: flags.clone(),
                final_observations: Bytes::new(),
                legal_actions: Bytes::new(),
                success: Bytes::new(),
            };
            sequence += 1;
            say.send(FromWorker { message: Some(WorkerMessage::Step(step)) }).await?;
        }
        Ok(())
    })
}
