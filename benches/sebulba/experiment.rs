//! A Sebulba experiment in this process: as a whole, and its programs alone. Processor time is
//! measured next to wall time: it is a program's cost, whatever else runs.

use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result};
use podracer::experiments::build;
use podracer::loading::{Overrides, load};
use podracer::settings::Settings;
use podracer::training::{Run, Stage, Start, Training};
use podracer_compiler::TensorType;
use podracer_runtime::{
    Argument, Array, Buffer, Client, ClientOptions, CompileOptions, Executable, ExecutableCache,
    Module, OptionValue,
};

/// Time that something takes, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Seconds by the clock.
    pub wall: f64,
    /// Processor seconds of this process and of those that it started.
    pub processor: f64,
    /// Seconds that the host took from a virtual machine's busy processors.
    pub stolen: f64,
}

impl Cost {
    /// The cost of one of `count` equal parts of this cost.
    pub fn each(self, count: usize) -> Self {
        Cost {
            wall: self.wall / count as f64,
            processor: self.processor / count as f64,
            stolen: self.stolen / count as f64,
        }
    }
}

/// A measurement of time, processor time and stolen time that begins when it is made.
pub struct Stopwatch {
    began: Instant,
    spent: f64,
    stolen: f64,
}

impl Stopwatch {
    pub fn start() -> Result<Self> {
        Ok(Stopwatch { spent: spent()?, stolen: stolen()?, began: Instant::now() })
    }

    pub fn wall(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub fn read(&self) -> Result<Cost> {
        Ok(Cost {
            wall: self.wall(),
            processor: spent()? - self.spent,
            stolen: stolen()? - self.stolen,
        })
    }
}

/// Seconds that processors have spent on this process and its children. Linux counts hundredths.
fn spent() -> Result<f64> {
    let this = std::process::id().to_string();
    let mut hundredths = 0.0;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let number = entry.file_name().to_string_lossy().into_owned();
        // Other entries are not processes (`self` is this process again), or have just ended.
        let stat = fs::read_to_string(entry.path().join("stat"));
        let (Ok(_), Ok(stat)) = (number.parse::<u32>(), stat) else {
            continue;
        };
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        if number == this || fields.get(1) == Some(&this.as_str()) {
            for field in fields.iter().skip(11).take(2) {
                hundredths += field.parse::<f64>()?;
            }
        }
    }
    Ok(hundredths / 100.0)
}

/// Seconds that the host of a virtual machine has kept all of its processors for others.
fn stolen() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let first = stat.lines().next().unwrap_or_default();
    let hundredths = first.split_whitespace().nth(8);
    let hundredths = hundredths.with_context(|| format!("no stolen time in `{first}`"))?;
    Ok(hundredths.parse::<f64>()? / 100.0)
}

/// An experiment, and the devices that it has.
pub struct Experiment {
    pub settings: Settings,
    training: Box<dyn Training>,
    client: Client,
    devices: usize,
}

/// Result of a run.
pub struct Ran {
    pub steps: usize,
    pub cost: Cost,
    /// Seconds by thread and activity.
    pub times: Vec<(String, f64)>,
}

impl Ran {
    /// Environment steps by the second.
    pub fn speed(&self) -> f64 {
        self.steps as f64 / self.cost.wall
    }

    /// The share of its time that the learner spent so.
    pub fn learner(&self, activity: &str) -> f64 {
        let name = format!("the learner: {activity}");
        let seconds = self.times.iter().find(|(one, _)| *one == name);
        seconds.map_or(0.0, |(_, seconds)| seconds / self.cost.wall)
    }
}

impl Experiment {
    /// One of podracer's experiments with these settings, one actor device and `learners` learner
    /// devices.
    pub fn load(name: &str, learners: usize, sets: &[String]) -> Result<Self> {
        let indices: Vec<usize> = (1..=learners).collect();
        let devices = ["sebulba.actors=[0]".to_owned(), format!("sebulba.learners={indices:?}")];
        let overrides = Overrides { set: [&devices, sets].concat(), ..Overrides::default() };
        let settings = load(name, &overrides)?;
        Ok(Experiment {
            training: build(&settings)?,
            settings,
            client: Client::cpu(ClientOptions {
                cpu_devices: Some(learners + 1),
                ..ClientOptions::default()
            })?,
            devices: learners + 1,
        })
    }

    /// Environment steps of an inference, and of an iteration.
    pub fn steps(&self) -> (usize, usize) {
        let shape = &self.settings.training_loop;
        (shape.environments(), shape.lanes() * shape.unroll())
    }

    fn xla(&self) -> Vec<(String, OptionValue)> {
        let rule = self.training.xla_options("cpu");
        self.settings.xla_options(rule)
    }

    /// Begins a run, and does the first iterations.
    pub fn start(&self, seed: u64) -> Result<Running> {
        let devices: Vec<usize> = (0..self.devices).collect();
        let xla = self.xla();
        let (client, folder) = (&self.client, std::env::temp_dir());
        let start =
            Start { client, devices: &devices, xla: &xla, seed, folder: &folder, from: None };
        let mut run = self.training.start(start)?;
        run.advance()?;
        Ok(Running(run))
    }

    /// Compiles its programs.
    pub fn programs(&self) -> Result<Programs> {
        let text = format!("\n{}", self.training.emit(Stage::StableHlo, 1)?);
        let compile = |name: &str, loops| {
            let found = text.split("\n// ").find_map(|one| one.strip_prefix(name));
            let module = found.with_context(|| format!("no program `{name}`"))?;
            self.compile(&Module::parse(module)?, loops)
        };
        Ok(Programs {
            act: compile("act", true)?,
            finish: compile("finish", false)?,
            learn: compile("learn", true)?,
        })
    }

    fn compile(&self, module: &Module, loops: bool) -> Result<Calls> {
        let options = CompileOptions {
            device_assignment: Some(vec![0]),
            xla: self.xla(),
            ..CompileOptions::default()
        };
        let (program, _) = ExecutableCache::user().compile(&self.client, module, &options)?;
        let device = self.client.device(0)?;
        let zeros = |ty: &TensorType| {
            Buffer::from_host(&Array::from_bytes(ty.clone(), vec![0; ty.bytes()])?, &device)
        };
        let (takes, gives) = (program.arguments(), program.results());
        let state = if loops { state(takes, gives) } else { (0, 0, 0) };
        let arguments = takes.iter().map(zeros).collect::<Result<_, _>>()?;
        let mut calls = Calls { program, arguments, state };
        calls.call()?;
        Ok(calls)
    }
}

/// A run, which is measured span by span.
pub struct Running(Box<dyn Run>);

impl Running {
    /// Trains for this many seconds. A call before them lets the threads synchronise again.
    pub fn train(&mut self, seconds: f64) -> Result<Ran> {
        self.0.advance()?;
        let (before, watch, mut steps) = (self.0.times(), Stopwatch::start()?, 0);
        while watch.wall() < seconds {
            steps += self.0.advance()?.env_steps as usize;
        }
        let cost = watch.read()?;
        let since = |(name, now): (String, f64)| {
            let earlier = before.iter().find(|(one, _)| *one == name);
            let spent = now - earlier.map_or(0.0, |(_, seconds)| *seconds);
            (name, spent)
        };
        Ok(Ran { steps, cost, times: self.0.times().into_iter().map(since).collect() })
    }

    /// Waits until its actors, which act ahead of the learner, have come to wait for it.
    pub fn settle(&self) -> Result<()> {
        const LOOK: Duration = Duration::from_millis(200);
        loop {
            let watch = Stopwatch::start()?;
            thread::sleep(LOOK);
            if watch.read()?.processor < 0.1 * LOOK.as_secs_f64() {
                return Ok(());
            }
        }
    }
}

/// The programs of an experiment that run repeatedly, to be called while nothing else runs.
pub struct Programs {
    pub act: Calls,
    pub finish: Calls,
    pub learn: Calls,
}

/// A program, and the input of its next call: zeros at first, because a call's cost does not depend
/// on the values. If it loops, it returns the state for the next call.
pub struct Calls {
    program: Executable,
    arguments: Vec<Buffer>,
    /// Its position among the arguments and among the results, and its length.
    state: (usize, usize, usize),
}

impl Calls {
    fn call(&mut self) -> Result<()> {
        let (into, from, length) = self.state;
        let rest = self.arguments.split_off(into);
        let mut rest = rest.into_iter();
        let donated: Vec<Buffer> = rest.by_ref().take(length).collect();
        let rest: Vec<Buffer> = rest.collect();
        let given = (self.arguments.iter().map(Argument::Kept))
            .chain(donated.into_iter().map(Argument::Donated))
            .chain(rest.iter().map(Argument::Kept));
        let results = self.program.execute(vec![given.collect()])?.remove(0);
        results[0].ready()?.wait()?;
        (self.arguments).extend(results.into_iter().skip(from).take(length));
        self.arguments.extend(rest);
        Ok(())
    }

    /// Mean cost of a call, over as many calls as fit into this many seconds.
    pub fn time(&mut self, seconds: f64) -> Result<Cost> {
        let (watch, mut calls) = (Stopwatch::start()?, 0);
        while watch.wall() < seconds {
            self.call()?;
            calls += 1;
        }
        Ok(watch.read()?.each(calls))
    }
}

/// The state: the longest run of results that has the types of a run of arguments. Where each begins, and how long they
/// are.
fn state<T: PartialEq>(takes: &[T], gives: &[T]) -> (usize, usize, usize) {
    let length = |into: usize, from: usize| {
        let pairs = takes[into..].iter().zip(&gives[from..]);
        pairs.take_while(|(take, give)| take == give).count()
    };
    let places = (0..takes.len()).flat_map(|into| (0..gives.len()).map(move |from| (into, from)));
    let runs = places.map(|(into, from)| (into, from, length(into, from)));
    runs.max_by_key(|run| run.2).unwrap_or_default()
}
