//! The commands, each with its arguments.

use clap::{Parser, Subcommand};

use super::cost::CostArguments;
use super::envs::EnvsCommand;
use super::eval::EvalArguments;
use super::inspect::explain::ExplainArguments;
use super::inspect::play::PlayArguments;
#[cfg(feature = "plots")]
use super::inspect::plot::PlotArguments;
use super::inspect::profile::ProfileArguments;
#[cfg(feature = "plots")]
use super::inspect::report::ReportArguments;
#[cfg(feature = "plots")]
use super::inspect::watch::WatchArguments;
use super::ir::IrCommand;
use super::ir::check::CheckArguments;
use super::ir::export::ExportArguments;
use super::launch::LaunchArguments;
use super::new::NewArguments;
use super::plugins::PluginsCommand;
use super::resume::ResumeArguments;
use super::runs::RunsArguments;
#[cfg(feature = "central")]
use super::serve::ServeArguments;
use super::several::sweep::SweepArguments;
use super::train::TrainArguments;
use super::tune::TuneArguments;
#[cfg(feature = "central")]
use super::work::{CertificatesCommand, WorkArguments};

/// Reinforcement learning loops, compiled as a whole by XLA.
#[derive(Debug, Parser)]
#[command(name = "podracer", version, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a new crate with an environment, an experiment and tests
    New(NewArguments),
    /// Train an agent, and write a run directory
    Train(TrainArguments),
    /// Resume a stopped training from its last checkpoint, in the same run directory
    Resume(ResumeArguments),
    /// Play whole episodes with the parameters of a run's last checkpoint
    Eval(EvalArguments),
    /// Show episodes in the terminal, or write them as an animated GIF
    Play(PlayArguments),
    /// Find the line of source where a run's numbers stopped being finite
    Explain(ExplainArguments),
    /// Find the lines of source that take a training's time, on a CPU, or its memory (--memory)
    Profile(ProfileArguments),
    /// Write the programs of an experiment as StableHLO, with parameters, to run them without podracer
    Export(ExportArguments),
    /// Print, transform and compare programs as text
    Ir {
        #[command(subcommand)]
        command: IrCommand,
    },
    /// Compile the training loop for a machine that is not present, and report on it
    Check(CheckArguments),
    /// Write the job that trains in several processes, on machines of a cluster or with mpirun, and
    /// optionally submit it
    Launch(LaunchArguments),
    /// Train with different settings for some seconds each, and print the fastest
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
    /// Write a page with the runs' settings, results and resources, which opens without a network
    #[cfg(feature = "plots")]
    Report(ReportArguments),
    /// Show runs in a page that follows them, at an address of this machine
    #[cfg(feature = "plots")]
    Watch(WatchArguments),
    /// List, compare, export or remove runs
    Runs(RunsArguments),
    /// Print the cost of frames, from the speed of a run or a given speed, and the prices of
    /// machines
    Cost(CostArguments),
    /// Print the completions of a shell, such as for `source <(podracer completions bash)`
    Completions {
        /// The shell to write completions for
        shell: clap_complete::Shell,
    },
    /// List the experiments, agents and environments
    List,
    /// Train with central inference, with workers that connect from elsewhere; resumes if it gets a
    /// run directory
    #[cfg(feature = "central")]
    Serve(ServeArguments),
    /// Step environments for a learner elsewhere (podracer serve), until its run is complete
    #[cfg(feature = "central")]
    Work(WorkArguments),
    /// Make the certificates that identify a learner and its workers to each other
    #[cfg(feature = "central")]
    Certificates {
        #[command(subcommand)]
        command: CertificatesCommand,
    },
    /// List or install the PJRT plugins, XLA's device drivers
    Plugins {
        #[command(subcommand)]
        command: PluginsCommand,
    },
    /// List or install the Python packages for environments in separate processes
    Envs {
        #[command(subcommand)]
        command: EnvsCommand,
    },
}
