//! The arguments of the command line.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::cost::CostArguments;
use super::emit::EmitArguments;
use super::envs::EnvsCommand;
use super::explain::ExplainArguments;
use super::launch::LaunchArguments;
use super::memory::MemoryArguments;
use super::new::NewArguments;
use super::numbers::{at_least_one, steps};
use super::opt;
#[cfg(feature = "plots")]
use super::plot::PlotArguments;
use super::plugins::PluginsCommand;
use super::profile::ProfileArguments;
#[cfg(feature = "plots")]
use super::report::ReportArguments;
use super::runs::RunsArguments;
#[cfg(feature = "central")]
use super::serve::ServeArguments;
#[cfg(feature = "plots")]
use super::watch::{HERE, WatchArguments};
#[cfg(feature = "central")]
use super::work::{CertificatesCommand, WorkArguments};
use crate::loading::Overrides;
use crate::run_directory::RunDirectory;
use crate::settings::Devices;

/// Reinforcement learning loops, compiled as a whole by XLA.
#[derive(Debug, Parser)]
#[command(name = "podracer", version, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The numbers that TOML can write.
fn number() -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(..=i64::MAX as u64)
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a crate with an environment, an experiment and tests, to begin with
    New(NewArguments),
    /// Train an agent, and leave a run directory behind
    Train(TrainArguments),
    /// Go on with a training that was stopped, from its last checkpoint, in the same run directory
    Resume(ResumeArguments),
    /// Play whole episodes with the parameters of a run's last checkpoint
    Eval(EvalArguments),
    /// Show episodes in the terminal, or write them as an animated GIF
    Play(PlayArguments),
    /// Find the line of the source at which a run's numbers stopped being finite
    Explain(ExplainArguments),
    /// Print the training loop on its way from the source to the device
    Emit(EmitArguments),
    /// Find the lines of the source that a training's time goes to, on a CPU
    Profile(ProfileArguments),
    /// Find the lines of the source, and the buffers, that take the memory of a training's programs
    Memory(MemoryArguments),
    /// Write the programs of an experiment as StableHLO, with parameters, to run them without podracer
    Export(ExportArguments),
    /// Compile the training loop for a machine that is not there, and report on it
    Check(CheckArguments),
    /// Write the job that trains in several processes, on machines of a cluster or by mpirun, and submit it if asked to
    Launch(LaunchArguments),
    /// Run passes over a program given as the text of the IR, as `podracer emit --stage trace` prints it
    #[command(after_help = opt::passes_help())]
    Opt {
        /// The file; `-` for standard input
        file: String,
        /// A pass, see below [repeatable, in order]
        #[arg(long, value_name = "PASS")]
        pass: Vec<String>,
        /// The form in which the result is printed
        #[arg(long, value_enum, default_value_t = opt::Print::Ir)]
        print: opt::Print,
    },
    /// Compare two programs given as the text of the IR; the exit code is 1 if they differ
    Diff {
        /// A file; `-` for standard input
        left: String,
        /// The file to compare it with; `-` for standard input
        right: String,
    },
    /// Train with different settings for some seconds each, and say which are fastest
    Tune(TuneArguments),
    /// Train with several values of the settings that --set names (`1e-4,1e-3`, `lin:0..1:5` or `log:1e-4..1e-2:8`), and several seeds of
    /// each, as one program
    Sweep(SweepArguments),
    /// Print every setting of an agent, environment, loop or experiment: type, range, default and documentation
    Describe {
        /// An agent, an environment or an experiment (see `podracer list`), or `train`, `anakin`, `sebulba`, `central`, `meta` or `metrics`
        name: String,
        /// Print one JSON object or list
        #[arg(long)]
        json: bool,
    },
    /// Draw metrics of runs as SVG; seeds of the same settings become a mean with its interval
    #[cfg(feature = "plots")]
    Plot(PlotArguments),
    /// Write a page of what runs are, reached and need, which opens without a network
    #[cfg(feature = "plots")]
    Report(ReportArguments),
    /// Show runs in a page that follows them, at an address of this machine
    #[cfg(feature = "plots")]
    Watch(WatchArguments),
    /// List, compare, export or remove runs
    Runs(RunsArguments),
    /// Print what frames cost, by the speed of a run or a given one, and by machines with prices
    Cost(CostArguments),
    /// Print the completions of a shell, such as for `source <(podracer completions bash)`
    Completions {
        /// The shell to write completions for
        shell: clap_complete::Shell,
    },
    /// List the experiments, agents and environments
    List,
    /// Train with central inference, and with workers that connect from elsewhere; goes on where it is given a run directory
    #[cfg(feature = "central")]
    Serve(ServeArguments),
    /// Step environments for a learner elsewhere (podracer serve), until its run is complete
    #[cfg(feature = "central")]
    Work(WorkArguments),
    /// Make the certificates by which a learner and its workers know each other
    #[cfg(feature = "central")]
    Certificates {
        #[command(subcommand)]
        command: CertificatesCommand,
    },
    /// List or install the PJRT plugins through which XLA drives devices
    Plugins {
        #[command(subcommand)]
        command: PluginsCommand,
    },
    /// List or install the Python packages that environments in processes of their own need
    Envs {
        #[command(subcommand)]
        command: EnvsCommand,
    },
}

#[derive(Args, Debug)]
pub(super) struct TrainArguments {
    #[command(flatten)]
    pub(super) experiment: ExperimentArguments,
    /// Seed of all randomness
    #[arg(long, allow_negative_numbers = true, value_parser = number())]
    pub(super) seed: Option<u64>,
    /// Train so many runs as one program, with as many seeds from --seed on, and a run directory each
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("seed"))]
    pub(super) seeds: Option<NonZero<usize>>,
    /// Most runs of one program, with --seeds; more are trained part by part [default: all, and half as many where they do not fit the memory]
    #[arg(long, value_name = "N", requires = "seeds", allow_negative_numbers = true, value_parser = at_least_one("run"))]
    pub(super) together: Option<NonZero<usize>>,
    /// Environment steps in all: 300000, 300k, 2.5M or 1e6
    #[arg(long, allow_negative_numbers = true, value_parser = steps)]
    pub(super) steps: Option<u64>,
    /// With [sebulba] or [central]: the devices that act (`0`, `0,1`) [default: a quarter of the devices]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) actors: Option<Vec<usize>>,
    /// With [sebulba] or [central]: the devices that learn (`1,2,3`) [default: as many of the others as the environments divide over]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) learners: Option<Vec<usize>>,
    /// The run directory [default: the next free runs/<EXPERIMENT>-<seed>-<n>]
    #[arg(long, value_name = "FOLDER")]
    pub(super) run_dir: Option<PathBuf>,
    /// Go on with the run in --run-dir as it was, where it has a checkpoint; begin it where there is none: for jobs that are restarted
    #[arg(long, requires = "run_dir", conflicts_with = "seeds")]
    pub(super) resume: bool,
    /// Give the metrics to Prometheus at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<String>,
    /// Show the run in a page, at this address or at http://127.0.0.1:7280
    #[cfg(feature = "plots")]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = HERE)]
    pub(super) watch: Option<String>,
    /// Print the result as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(super) struct ResumeArguments {
    /// The run directory
    pub(super) run: PathBuf,
    /// Environment steps in all, those already done included [default: as before]; a learning rate that is annealed
    /// goes on by the schedule of the new total
    #[arg(long, allow_negative_numbers = true, value_parser = steps)]
    pub(super) steps: Option<u64>,
    /// The devices [default: as before; with another number of them what follows is another run than without the stop]
    #[arg(long, value_parser = Devices::parse, allow_negative_numbers = true)]
    pub(super) devices: Option<Devices>,
    /// With [sebulba] or [central]: the devices that act, with [sebulba] as many as before
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) actors: Option<Vec<usize>>,
    /// With [sebulba] or [central]: the devices that learn
    #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
    pub(super) learners: Option<Vec<usize>>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
    /// Give the metrics to Prometheus at this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) metrics: Option<String>,
    /// Print the result as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(super) struct EvalArguments {
    /// The run directory
    pub(super) run: PathBuf,
    /// Play a game of two players against a fixed opponent, and move first in half of the games: `random`, another one of the
    /// game's own, or `mcts:N`, plain tree search with N simulations (`mcts`: as many as the agent's)
    #[arg(long, value_name = "OPPONENT")]
    pub(super) against: Option<String>,
    /// Number of episodes
    #[arg(long, default_value = "100", allow_negative_numbers = true, value_parser = at_least_one("episode"))]
    pub(super) episodes: NonZero<usize>,
    /// Seed of the episodes; no seed repeats episodes of the training
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Draw actions from the policy, as in training, instead of taking the greedy ones
    #[arg(long)]
    pub(super) sample: bool,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
    /// Play with parameters that are NaN or infinite, too
    #[arg(long)]
    pub(super) allow_nan: bool,
    /// Play with the parameters of the best evaluation during the training (train.eval_every)
    #[arg(long)]
    pub(super) best: bool,
    /// Print the result as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(super) struct PlayArguments {
    /// A run directory; with --random or --against, an experiment or an environment too (see `podracer list`)
    pub(super) what: String,
    /// Play games of two players yourself, against the agent of this run: standard input has a move in each line
    #[arg(long, value_name = "RUN", conflicts_with_all = ["random", "output"])]
    pub(super) against: Option<PathBuf>,
    /// Let the agent begin
    #[arg(long, requires = "against")]
    pub(super) second: bool,
    /// Number of episodes
    #[arg(long, default_value = "1", allow_negative_numbers = true, value_parser = at_least_one("episode"))]
    pub(super) episodes: NonZero<usize>,
    /// Seed of the episodes, those of `podracer eval --episodes=1` with the same seed
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Write the pictures to this file, with a name that ends in .gif, .png (animated) or .y4m (for video encoders), and show none; in .txt, the last state as text, such as a routed board; `-` is standard output, as .y4m
    #[arg(short, long, visible_alias = "gif", value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Pixels of the longer side that small pictures are scaled up to in a file
    #[arg(long, default_value_t = 320, value_name = "PIXELS", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) size: u16,
    /// Pictures a second, 0.1 to 100
    #[arg(long, default_value_t = 15.0, value_parser = pictures_a_second)]
    pub(super) fps: f64,
    /// Show what the agent makes of each state beside its picture: the state's value, and probabilities and values of actions
    #[arg(long, conflicts_with_all = ["random", "against"])]
    pub(super) values: bool,
    /// Draw every action uniformly from the action space
    #[arg(long)]
    pub(super) random: bool,
    /// Draw actions from the policy, as in training, instead of taking the greedy ones
    #[arg(long, conflicts_with = "random")]
    pub(super) sample: bool,
    /// Play with the parameters of the best evaluation during the training (train.eval_every)
    #[arg(long, conflicts_with = "random")]
    pub(super) best: bool,
    /// Play with parameters that are NaN or infinite, too
    #[arg(long, conflicts_with = "random")]
    pub(super) allow_nan: bool,
    /// Change a setting of the environment, such as environment.time_limit=50 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE", conflicts_with = "against")]
    pub(super) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
}

/// Pictures a second, within what GIF and terminals can do.
fn pictures_a_second(text: &str) -> Result<f64, String> {
    let within = |fps: &f64| (0.1..=100.0).contains(fps);
    let number = text.parse().ok().filter(within);
    number.ok_or_else(|| "expected a number from 0.1 to 100".to_owned())
}

#[derive(Args, Debug)]
pub(super) struct ExportArguments {
    /// A built-in experiment (see `podracer list`), the path of a TOML file, or a run directory: its experiment with its parameters
    pub(super) experiment: String,
    /// The folder to write
    #[arg(short, long, value_name = "FOLDER")]
    pub(super) output: PathBuf,
    /// The run directory with the trained parameters [default: EXPERIMENT if it is a run, or else an untrained agent]
    #[arg(long, value_name = "RUN")]
    pub(super) run: Option<PathBuf>,
    /// Export parameters that are NaN or infinite, too
    #[arg(long)]
    pub(super) allow_nan: bool,
    /// With a run: the parameters of the best evaluation during the training (train.eval_every)
    #[arg(long)]
    pub(super) best: bool,
    /// Observations that the policy takes at once [default: one, without a batch axis]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("observation"))]
    pub(super) batch: Option<NonZero<usize>>,
    /// Seed of an untrained agent's parameters
    #[arg(long, value_parser = number())]
    pub(super) seed: Option<u64>,
    /// Change a setting, such as anakin.iterations_per_call=1 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
}

#[derive(Args, Debug)]
pub(super) struct CheckArguments {
    /// A built-in experiment (see `podracer list`) or the path of a TOML file
    pub(super) experiment: String,
    /// The machine, such as tpu:v5e:2x4 or tpu:v3:32x32
    #[arg(long)]
    pub(super) target: String,
    /// Change a setting
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
    /// Print the report as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(super) struct TuneArguments {
    #[command(flatten)]
    pub(super) experiment: ExperimentArguments,
    /// Values to try, such as sebulba.threads=1,2,4 [repeatable: every combination is tried] [default: sizes of the
    /// loop that fit the experiment]
    #[arg(long = "try", value_name = "TABLE.KEY=VALUE,VALUE")]
    pub(super) tries: Vec<String>,
    /// Seconds of training for each, after it is compiled
    #[arg(long, default_value_t = 5.0)]
    pub(super) seconds: f64,
    /// Write the experiment with the fastest settings to this TOML file
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the report as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args, Debug)]
pub(super) struct SweepArguments {
    #[command(flatten)]
    pub(super) experiment: ExperimentArguments,
    /// The first seed of each combination
    #[arg(long, allow_negative_numbers = true, value_parser = number())]
    pub(super) seed: Option<u64>,
    /// Seeds of each combination
    #[arg(long, value_name = "N", default_value = "1", allow_negative_numbers = true, value_parser = at_least_one("seed"))]
    pub(super) seeds: NonZero<usize>,
    /// Environment steps of each run: 300000, 300k, 2.5M or 1e6
    #[arg(long, allow_negative_numbers = true, value_parser = steps)]
    pub(super) steps: Option<u64>,
    /// Most runs of one program; more are trained part by part [default: all, and half as many where they do not fit the memory]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("run"))]
    pub(super) together: Option<NonZero<usize>>,
    /// Population-based training: every so many iterations the worst fifth of the runs take over what a run of the best fifth has learned, with
    /// its settings times 0.8 or 1.2
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("iteration"))]
    pub(super) exploit_every: Option<NonZero<usize>>,
    /// The folder of all run directories [default: the next free runs/<EXPERIMENT>-sweep-<n>]
    #[arg(long, value_name = "FOLDER")]
    pub(super) run_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) apart: Apart,
    /// Print the results as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// Runs that are a process each.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Apart {
    /// Runs that are trained at once, where they are programs of their own [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("process"))]
    pub(super) processes: Option<NonZero<usize>>,
    /// Write a script that trains each run as a task of a cluster's array job, `FOLDER/sweep.sbatch`, and train nothing
    #[arg(long, value_name = "CLUSTER")]
    pub(super) launch: Option<Cluster>,
    /// Submit the script with `sbatch`
    #[arg(long, requires = "launch")]
    pub(super) submit: bool,
    /// Train the run with this number alone: a task of an array job
    #[arg(long, hide = true, conflicts_with = "launch")]
    pub(super) only: Option<usize>,
}

/// Programs that run array jobs on a cluster.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Cluster {
    /// Array jobs of Slurm.
    Slurm,
}

#[derive(Args, Debug)]
pub(super) struct ExperimentArguments {
    /// A built-in experiment (see `podracer list`) or the path of a TOML file
    pub(super) experiment: String,
    /// The devices: a number (`2`), `all`, or indices (`0,3`)
    #[arg(long, value_parser = Devices::parse, allow_negative_numbers = true)]
    pub(super) devices: Option<Devices>,
    /// Change a setting, such as agent.learning_rate=1e-3 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
}

impl TrainArguments {
    /// The arguments of `resume` where `--resume` asks to go on with the run in the run directory, and it has begun.
    pub(super) fn goes_on(&self) -> Option<ResumeArguments> {
        let run = self.run_dir.as_deref().filter(|_| self.resume)?;
        RunDirectory::has_begun(run).then(|| self.going_on(run))
    }

    /// The arguments of `resume` for a run that goes on.
    pub(super) fn going_on(&self, run: &Path) -> ResumeArguments {
        ResumeArguments {
            run: run.to_owned(),
            steps: self.steps,
            devices: self.experiment.devices.clone(),
            actors: self.actors.clone(),
            learners: self.learners.clone(),
            trust: self.experiment.trust,
            metrics: self.metrics.clone(),
            json: self.json,
        }
    }
}

impl ExperimentArguments {
    /// The arguments of a command that trains several runs, of what they share (`common`), without what is about the folder.
    pub(super) fn again(
        &self,
        command: &str,
        common: &[String],
        (seed, seeds): (Option<u64>, usize),
    ) -> Vec<String> {
        let sets = self.set.iter().map(|set| format!("--set={set}"));
        let seed = seed.map(|seed| format!("--seed={seed}"));
        let first = [command.to_owned()].into_iter().chain(common.iter().cloned());
        first.chain(sets).chain(seed).chain([format!("--seeds={seeds}")]).collect()
    }

    /// The experiment as arguments of `train`, without `--set`.
    pub(super) fn common(&self, steps: Option<u64>) -> Vec<String> {
        let mut all = vec![self.experiment.clone()];
        if let Some(devices) = &self.devices {
            all.push(format!("--set=train.devices={}", toml::Value::from(devices.clone())));
        }
        all.extend(self.trust.then(|| "--trust".to_owned()));
        all.extend(steps.map(|steps| format!("--steps={steps}")));
        all
    }

    /// `--devices`, `--set` and `--trust`.
    pub(super) fn overrides(&self) -> Overrides {
        let &ExperimentArguments { ref devices, ref set, trust, .. } = self;
        Overrides { devices: devices.clone(), set: set.clone(), trust, ..Overrides::default() }
    }
}
