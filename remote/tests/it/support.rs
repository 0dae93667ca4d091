//! A stand-in for the learner, and clients with scripted messages.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use podracer_envs::host::{
    self, HostEnvironment, HostSpec, NativeCartPole, Pool, WorkerEvent, WorkerId, WorkerStep,
    Workers,
};
use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::seed_client::SeedClient;
use podracer_remote::proto::to_worker::Message as LearnerMessage;
use podracer_remote::proto::{FromWorker, Hello, Step, ToWorker};
use podracer_remote::server::{Limits, Server, ServerOptions};
use podracer_remote::worker::{WorkerError, WorkerOptions, WorkerStatus, work};
use podracer_remote::{Address, RunDescription, Security};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

/// The seed of every run in these tests.
pub const SEED: u64 = 7;

/// CartPole with short episodes, so that some are cut off.
pub fn cartpole() -> NativeCartPole {
    NativeCartPole::new(11)
}

/// The description of a run of an environment; its workers have at most `spec.environments`
/// environments.
pub fn run_of(environment: &str, spec: HostSpec) -> RunDescription {
    RunDescription {
        id: "run-1".to_owned(),
        environment: environment.to_owned(),
        settings: "{}".to_owned(),
        spec,
        unroll: 20,
    }
}

pub fn cartpole_run() -> RunDescription {
    run_of("cartpole", Pool::new(&cartpole(), 64).spec().clone())
}

/// Record of the stand-in's events.
#[derive(Default)]
pub struct Seen {
    pub joined: usize,
    /// The first lane and the number of environments of each present worker.
    pub lanes: BTreeMap<WorkerId, (usize, usize)>,
    pub left: Vec<String>,
    /// Steps by the worker's first lane, if they are kept.
    pub steps: BTreeMap<usize, Vec<WorkerStep>>,
    pub environment_steps: usize,
}

/// The actions that answer a step of `n` environments; `None` where it is never answered.
pub type Answer = fn(&WorkerStep, n: usize) -> Option<Bytes>;

/// Pushes a cart to the side that its pole leans to.
pub fn lean(step: &WorkerStep, _: usize) -> Option<Bytes> {
    let angle = |state: &[u8]| f32::from_le_bytes(state[8..12].try_into().expect("four bytes"));
    let states = step.observation.chunks_exact(16);
    let actions = states.flat_map(|state| i32::from(angle(state) > 0.0).to_le_bytes());
    Some(actions.collect::<Vec<u8>>().into())
}

pub fn zeros(_: &WorkerStep, n: usize) -> Option<Bytes> {
    Some(vec![0; 4 * n].into())
}

/// Withholds every answer, so that the worker's next message comes before it.
pub fn never(_: &WorkerStep, _: usize) -> Option<Bytes> {
    None
}

/// A learner that answers at once: a server with a thread for each of its `Workers`.
pub struct Learner {
    pub server: Option<Server>,
    pub seen: Arc<(Mutex<Seen>, Condvar)>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Learner {
    pub fn start(options: &ServerOptions, run: RunDescription, answer: Answer, keep: bool) -> Self {
        Learner::with_threads(options, run, answer, keep, 1)
    }

    pub fn with_threads(
        options: &ServerOptions,
        run: RunDescription,
        answer: Answer,
        keep: bool,
        threads: usize,
    ) -> Self {
        let (server, workers) = Server::start(options, run, threads).expect("the server starts");
        let seen: Arc<(Mutex<Seen>, Condvar)> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let serve = |workers| {
            let (seen, stop) = (seen.clone(), stop.clone());
            thread::spawn(move || serve(workers, answer, keep, &seen, &stop))
        };
        let threads = workers.into_iter().map(serve).collect();
        Learner { server: Some(server), seen, stop, threads }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Waits until the observed state is as expected.
    #[track_caller]
    pub fn wait(&self, what: &str, done: impl Fn(&Seen) -> bool) {
        self.wait_for(Duration::from_secs(20), what, done);
    }

    #[track_caller]
    pub fn wait_for(&self, patience: Duration, what: &str, done: impl Fn(&Seen) -> bool) {
        let seen = self.seen.0.lock().expect("no thread panicked");
        let waited = self.seen.1.wait_timeout_while(seen, patience, |seen| !done(seen));
        let (seen, timeout) = waited.expect("no thread panicked");
        assert!(!timeout.timed_out(), "not in time: {what}; left: {:?}", seen.left);
    }

    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.seen.0.lock().expect("no thread panicked"))
    }

    /// Ends the run as complete.
    pub fn complete(mut self) {
        if let Some(server) = self.server.take() {
            server.complete();
        }
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        drop(self.server.take());
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let joined = thread.join();
            assert!(joined.is_ok() || thread::panicking(), "a learner's thread panicked");
        }
    }
}

fn serve(
    mut workers: Box<dyn Workers>,
    answer: Answer,
    keep: bool,
    (seen, changed): &(Mutex<Seen>, Condvar),
    stop: &AtomicBool,
) {
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let mut here: BTreeMap<WorkerId, (usize, usize, u64)> = BTreeMap::new();
    let mut version = 0;
    while !stop.load(Ordering::Relaxed) {
        let event = match workers.next(Instant::now() + Duration::from_millis(100)) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(_) => return,
        };
        let mut seen = seen.lock().expect("no thread panicked");
        match event {
            WorkerEvent::Joined { worker, environments, .. } => {
                // The first gap that is wide enough.
                let mut first = 0;
                for (&at, &n) in &taken {
                    if at >= first + environments {
                        break;
                    }
                    first = at + n;
                }
                taken.insert(first, environments);
                here.insert(worker, (first, environments, 0));
                seen.joined += 1;
                seen.lanes.insert(worker, (first, environments));
                workers.admit(worker, first, SEED);
            }
            WorkerEvent::Stepped { worker, sequence, step } => {
                let (first, n, expected) = here.get_mut(&worker).expect("it has joined");
                assert_eq!(sequence, *expected, "steps come in order");
                *expected += 1;
                version += 1;
                if let Some(actions) = answer(&step, *n) {
                    workers.answer(vec![host::Answer { worker, sequence, actions, version }]);
                }
                seen.environment_steps += *n;
                if keep {
                    seen.steps.entry(*first).or_default().push(step);
                }
            }
            WorkerEvent::Left { worker, reason } => {
                let (first, ..) = here.remove(&worker).expect("it has joined");
                taken.remove(&first);
                seen.lanes.remove(&worker);
                seen.left.push(reason);
            }
        }
        drop(seen);
        changed.notify_all();
    }
}

/// A folder with a socket.
pub struct Place {
    pub folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Place { folder: tempfile::tempdir().expect("a folder can be made") }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("seed.sock")
    }

    pub fn address(&self) -> Address {
        Address::Unix(self.path())
    }

    pub fn options(&self) -> ServerOptions {
        ServerOptions::new(self.address(), None)
    }

    pub fn options_with(&self, limits: impl FnOnce(&mut Limits)) -> ServerOptions {
        let mut options = self.options();
        limits(&mut options.limits);
        options
    }
}

/// A worker in threads of its own, which steps short CartPoles.
pub struct Working {
    pub stop: Arc<AtomicBool>,
    pub status: Arc<WorkerStatus>,
    thread: Option<JoinHandle<Result<(), WorkerError>>>,
}

impl Working {
    pub fn start(addresses: Vec<Address>, environments: usize, batches: usize) -> Self {
        Working::secure(addresses, environments, batches, None)
    }

    pub fn secure(
        addresses: Vec<Address>,
        environments: usize,
        batches: usize,
        security: Option<Security>,
    ) -> Self {
        let options = WorkerOptions { addresses, security, environments, batches };
        let (stop, status) = (Arc::new(AtomicBool::new(false)), Arc::<WorkerStatus>::default());
        let (flag, numbers) = (stop.clone(), status.clone());
        let thread = thread::spawn(move || {
            work(&options, &|_, n| Ok(Box::new(Pool::new(&cartpole(), n))), &numbers, &flag)
        });
        Working { stop, status, thread: Some(thread) }
    }

    /// Waits for the worker's end.
    #[track_caller]
    pub fn end(mut self) -> Result<(), WorkerError> {
        let until = Instant::now() + Duration::from_secs(30);
        while !self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            assert!(Instant::now() < until, "the worker goes on");
            thread::sleep(Duration::from_millis(5));
        }
        self.thread.take().expect("it was not waited for").join().expect("it does not panic")
    }

    pub fn stop(self) -> Result<(), WorkerError> {
        self.stop.store(true, Ordering::Release);
        self.end()
    }

    #[track_caller]
    pub fn wait_for_steps(&self, steps: u64) {
        let until = Instant::now() + Duration::from_secs(30);
        while self.status.steps() < steps {
            assert!(Instant::now() < until, "{} steps of {steps}", self.status.steps());
            assert!(!self.thread.as_ref().is_some_and(JoinHandle::is_finished), "the worker ended");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection to a Unix socket, with threads that carry it.
pub fn connect(place: &Place) -> (Runtime, Channel) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("threads start");
    let path = place.path();
    let endpoint = Endpoint::from_static("http://test");
    let connect = endpoint.connect_with_connector(tower::service_fn(move |_| {
        let path = path.clone();
        async move { Ok::<_, std::io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    }));
    let channel: Channel = runtime.block_on(connect).expect("it connects");
    (runtime, channel)
}

/// A client that sends scripted messages.
pub struct Client {
    runtime: Runtime,
    say: Option<mpsc::Sender<FromWorker>>,
    told: Option<Streaming<ToWorker>>,
}

impl Client {
    /// Opens a stream at a Unix socket.
    pub fn open(place: &Place) -> Self {
        let (runtime, channel) = connect(place);
        let (say, said) = mpsc::channel(16);
        let stream = tokio_stream::wrappers::ReceiverStream::new(said);
        let told = runtime.block_on(SeedClient::new(channel).work(stream)).expect("it opens");
        Client { runtime, say: Some(say), told: Some(told.into_inner()) }
    }

    pub fn say(&self, message: WorkerMessage) {
        let message = FromWorker { message: Some(message) };
        // The stream may have ended meanwhile.
        if let Some(say) = &self.say {
            let _ = self.runtime.block_on(say.send(message));
        }
    }

    pub fn say_nothing_in_particular(&self) {
        if let Some(say) = &self.say {
            let _ = self.runtime.block_on(say.send(FromWorker { message: None }));
        }
    }

    pub fn hear(&mut self) -> Result<Option<LearnerMessage>, Status> {
        let told = self.told.as_mut().expect("it is open");
        let next = async { tokio::time::timeout(Duration::from_secs(20), told.message()).await };
        let message = self.runtime.block_on(next).expect("an answer in time")?;
        Ok(message.and_then(|message| message.message))
    }

    /// The status that the stream ends with.
    pub fn end(&mut self) -> Status {
        loop {
            match self.hear() {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok(""),
                Err(status) => return status,
            }
        }
    }

    /// Closes the stream from this side.
    pub fn close(&mut self) {
        self.say = None;
    }

    /// Says a proper hello, and hears a welcome.
    pub fn greet(&mut self, environments: u32) {
        self.say(WorkerMessage::Hello(hello(environments)));
        let welcome = self.hear().expect("it is taken in");
        assert!(matches!(welcome, Some(LearnerMessage::Welcome(_))), "{welcome:?}");
    }

    /// Sends a proper step, and hears the answer.
    pub fn step(&mut self, environments: u32, sequence: u64) {
        self.say(WorkerMessage::Step(step(environments, sequence)));
        match self.hear().expect("it is answered") {
            Some(LearnerMessage::Actions(actions)) => {
                assert_eq!(actions.sequence, sequence);
                assert_eq!(actions.actions.len(), 4 * environments as usize);
            }
            other => panic!("expected actions, got {other:?}"),
        }
    }
}

/// The hello of a client with CartPoles.
pub fn hello(environments: u32) -> Hello {
    Hello {
        protocol: 1,
        environments,
        spaces: Some(cartpole_spaces()),
        run: String::new(),
        name: "a test".to_owned(),
    }
}

/// The spaces of CartPole as a client writes them who claims no bounds.
pub fn cartpole_spaces() -> podracer_remote::proto::Spaces {
    use podracer_remote::proto::{DType, Space, SpaceKind, Spaces};
    let space = |kind: SpaceKind, dtype: DType| Space {
        kind: kind.into(),
        dtype: dtype.into(),
        ..Space::default()
    };
    Spaces {
        observation: Some(Space { shape: vec![4], ..space(SpaceKind::Box, DType::F32) }),
        action: Some(Space { counts: vec![2], ..space(SpaceKind::Discrete, DType::I32) }),
        truncates: true,
        skips: false,
        masks: false,
    }
}

/// A step without ended episodes.
pub fn step(environments: u32, sequence: u64) -> Step {
    let n = environments as usize;
    let zeros = |bytes: usize| Bytes::from(vec![0; bytes]);
    Step {
        sequence,
        observation: zeros(16 * n),
        reward: zeros(4 * n),
        terminated: zeros(n),
        truncated: zeros(n),
        final_observations: Bytes::new(),
        legal_actions: Bytes::new(),
        success: Bytes::new(),
    }
}
