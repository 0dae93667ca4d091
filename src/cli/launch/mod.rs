//! `podracer launch`: writes the job that trains in several processes, for Slurm, for Kubernetes or
//! for `mpirun`, and optionally submits it. A job that is restarted resumes from its last
//! checkpoint.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgGroup, Args, Parser};
use serde_json::Value;

use super::console::Console;
use super::numbers::at_least_one;
use super::processes::{submitted, word};
use super::program::Program;
#[cfg(feature = "central")]
use super::serve::ServeArguments;
use super::train::{self, TrainArguments};
use crate::files::write_whole;
use crate::settings::UsageError;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("engine").required(true).args(["slurm", "kubernetes", "mpirun"]))]
pub(super) struct LaunchArguments {
    /// Write a batch script of Slurm, which `sbatch` submits
    #[arg(long)]
    slurm: bool,
    /// Write a job of Kubeflow's MPI operator (`MPIJob`, v2beta1), which `kubectl apply` submits
    #[arg(long, requires = "image")]
    kubernetes: bool,
    /// Write a shell script that calls `mpirun`
    #[arg(long)]
    mpirun: bool,
    /// Processes that train together
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("process"))]
    processes: NonZero<usize>,
    /// Cores of each process
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("core"))]
    cores: Option<NonZero<usize>>,
    /// With --mpirun: the file of machines to start on [default: this machine]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["slurm", "kubernetes"])]
    hostfile: Option<PathBuf>,
    /// With --kubernetes: the image with this program, Open MPI and an SSH server
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["slurm", "mpirun"])]
    image: Option<String>,
    /// With --kubernetes: the claim of a volume for the run directory, which the first process
    /// mounts at its parent folder
    #[arg(long, value_name = "CLAIM", conflicts_with_all = ["slurm", "mpirun"])]
    volume: Option<String>,
    /// The file to write [default: <RUN>.sbatch, <RUN>.yaml or <RUN>.sh]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Submit the job: by `sbatch`, by `kubectl apply`, or by running the script
    #[arg(long)]
    submit: bool,
    /// The experiment and the arguments of `train`, or `serve` and its arguments, with --run-dir in
    /// a folder that all machines share
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "TRAIN"
    )]
    train: Vec<String>,
}

/// The commands that train in several processes.
#[derive(Parser)]
#[command(name = "podracer")]
enum Launched {
    Train(TrainArguments),
    #[cfg(feature = "central")]
    Serve(ServeArguments),
}

impl Launched {
    fn train(&self) -> &TrainArguments {
        match self {
            Launched::Train(train) => train,
            #[cfg(feature = "central")]
            Launched::Serve(ServeArguments { train, .. }) => train,
        }
    }
}

/// A program that starts processes.
struct Engine {
    /// The job's text, with a name between two `@` for each value. A line with a missing value is
    /// left out.
    template: &'static str,
    /// Ending of the job's file.
    ending: &'static str,
    /// The command that submits the file.
    submits: &'static [&'static str],
}

const SLURM: Engine =
    Engine { template: include_str!("slurm.sh"), ending: "sbatch", submits: &["sbatch"] };
const KUBERNETES: Engine = Engine {
    template: include_str!("kubernetes.yaml"),
    ending: "yaml",
    submits: &["kubectl", "apply", "-f"],
};
const MPIRUN: Engine =
    Engine { template: include_str!("mpirun.sh"), ending: "sh", submits: &["sh"] };

/// A job, before it is written down.
struct Job<'a> {
    arguments: &'a LaunchArguments,
    /// The experiment's name.
    experiment: &'a str,
    executable: &'a Path,
    /// The base folder of relative paths.
    directory: &'a Path,
    run: &'a Path,
}

pub(super) fn launch(
    args: &LaunchArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let words = ["podracer".to_owned()].into_iter().chain(args.words());
    let launched =
        Launched::try_parse_from(words).map_err(|error| UsageError::new(error.to_string()))?;
    let train = launched.train();
    let Some(run) = &train.run_dir else {
        return Err(UsageError::new(
            "name the run directory with --run-dir, in a folder that all machines share: a restarted job resumes from it",
        )
        .into());
    };
    if train.seeds.is_some() {
        return Err(UsageError::new(
            "--seeds has no --resume, so a restarted job cannot continue: write a job that runs `train --seeds` in several processes yourself",
        )
        .into());
    }
    if args.kubernetes {
        check_in_container(run, args.volume.is_some())?;
    }
    // Reports mistakes now, instead of when the job runs.
    let settings = train::settings(train, program)?;
    let (executable, directory) = (std::env::current_exe()?, std::env::current_dir()?);
    let job = Job {
        arguments: args,
        experiment: &settings.experiment,
        executable: &executable,
        directory: &directory,
        run,
    };
    let engine = args.engine();
    let path = args.output.clone().unwrap_or_else(|| run.with_added_extension(engine.ending));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    }
    write_whole(&path, filled(engine.template, |name| job.value(name)).as_bytes())?;
    submitted(&path, engine.submits, args.submit, console)
}

/// Checks the run directory of a Kubernetes job: a container has its own working directory.
fn check_in_container(run: &Path, has_volume: bool) -> Result<(), UsageError> {
    if !run.is_absolute() {
        return Err(UsageError::new(format!(
            "--run-dir {} is a relative path, and a container has another working folder: give --kubernetes an absolute path",
            run.display()
        )));
    }
    let has_parent = run.parent().is_some_and(|folder| folder != Path::new("/"));
    if has_volume && !has_parent {
        return Err(UsageError::new(format!(
            "--volume cannot be mounted at `/`, the parent folder of --run-dir {}: name a run directory in another folder",
            run.display()
        )));
    }
    Ok(())
}

impl LaunchArguments {
    /// The words of the training's command, after the program's name.
    fn words(&self) -> impl Iterator<Item = String> {
        let named = self.train.first().is_some_and(|word| word == "serve");
        let train = (!named).then(|| "train".to_owned());
        train.into_iter().chain(self.train.iter().cloned())
    }

    fn engine(&self) -> Engine {
        match (self.slurm, self.kubernetes) {
            (true, _) => SLURM,
            (_, true) => KUBERNETES,
            _ => MPIRUN,
        }
    }
}

/// The lines of a template with their values.
fn filled(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => Some(part.to_owned()),
        _ => value(part),
    };
    let line = |line: &str| line.split('@').enumerate().map(part).collect::<Option<String>>();
    template.lines().filter_map(line).map(|line| line + "\n").collect()
}

impl Job<'_> {
    /// The words of the training's command, which resumes a run that has begun.
    fn words(&self) -> impl Iterator<Item = String> {
        let resume = self.arguments.train.iter().all(|argument| argument != "--resume");
        self.arguments.words().chain(resume.then(|| "--resume".to_owned()))
    }

    /// A value of a template, quoted for the shell in scripts, and as YAML for Kubernetes.
    fn value(&self, name: &str) -> Option<String> {
        let &Job { arguments, experiment, executable, directory, run } = self;
        let LaunchArguments { processes, cores, image, volume, hostfile, .. } = arguments;
        let shell = |path: &Path| word(&path.display().to_string());
        let yaml = |text: &str| Value::from(text).to_string();
        match name {
            "processes" => Some(processes.to_string()),
            "cores" => cores.map(|cores| cores.to_string()),
            "experiment" => Some(experiment.to_owned()),
            "printed" => Some(word(&format!("{}.out", run.display()))),
            "directory" => Some(shell(directory)),
            "command" => {
                let words = self.words().map(|one| word(&one));
                Some([shell(executable)].into_iter().chain(words).collect::<Vec<_>>().join(" "))
            }
            "options" => {
                let cores = cores.map(|cores| format!(" --map-by slot:PE={cores}"));
                let hostfile = hostfile.as_ref().map(|file| format!(" --hostfile {}", shell(file)));
                Some(cores.unwrap_or_default() + &hostfile.unwrap_or_default())
            }
            // Kubernetes allows lower-case letters, digits and `-`.
            "name" => {
                let other = |c: char| !c.is_ascii_alphanumeric();
                Some(yaml(&experiment.to_lowercase().replace(other, "-")))
            }
            "image" => image.as_deref().map(yaml),
            "words" => {
                let number = processes.to_string();
                let first = ["mpirun", "-n", &number, "podracer"].map(yaml).into_iter();
                let words = first.chain(self.words().map(|word| yaml(&word)));
                Some(format!("[{}]", words.collect::<Vec<_>>().join(", ")))
            }
            "claim" => volume.as_deref().map(yaml),
            "mount" => {
                let folder = run.parent().unwrap_or(Path::new("/"));
                volume.as_ref().map(|_| yaml(&folder.display().to_string()))
            }
            _ => unreachable!("no template has another name: {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::cli::fake::podracer;

    /// The job for these arguments, with `DIR` and `PROGRAM` in place of machine-specific paths.
    fn written(arguments: &[&str]) -> String {
        let train = ["catch-ppo", "--run-dir=/shared/catch run", "--set=agent.epochs=2"];
        written_for(arguments, &train)
    }

    fn written_for(arguments: &[&str], train: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job");
        let output = format!("--output={}", file.display());
        let all = [&["launch", &output], arguments, train].concat();
        let printed = podracer(&all);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let text = fs::read_to_string(&file).unwrap();
        let program = std::env::current_exe().unwrap().display().to_string();
        let directory = std::env::current_dir().unwrap().display().to_string();
        text.replace(&program, "PROGRAM").replace(&directory, "DIR")
    }

    #[test]
    fn jobs_of_each_engine() {
        insta::assert_snapshot!("slurm", written(&["--slurm", "--processes=4", "--cores=32"]));
        insta::assert_snapshot!(
            "mpirun",
            written(&["--mpirun", "--processes=2", "--cores=8", "--hostfile=my hosts"])
        );
        let kubernetes = [
            "--kubernetes",
            "--processes=4",
            "--cores=8",
            "--image=me/podracer:1",
            "--volume=runs",
        ];
        insta::assert_snapshot!("kubernetes", written(&kubernetes));
    }

    #[test]
    #[cfg(feature = "central")]
    fn a_job_whose_processes_listen_for_workers() {
        let serve =
            ["serve", "catch-ppo", "--listen=0.0.0.0:7000", "--insecure", "--run-dir=/runs/a"];
        let text = written_for(&["--mpirun", "--processes=2"], &serve);
        let command =
            "PROGRAM serve catch-ppo --listen=0.0.0.0:7000 --insecure --run-dir=/runs/a --resume";
        assert!(text.ends_with(&format!("exec mpirun -n 2 {command}\n")), "{text}");
    }

    #[test]
    fn a_volume_is_mounted_at_an_empty_path() {
        let job = ["launch", "--kubernetes", "--processes=2", "--image=i", "--volume=runs"];
        for (run, expected) in [
            ("--run-dir=catch", "--run-dir catch is a relative path"),
            ("--run-dir=runs/catch", "--run-dir runs/catch is a relative path"),
            ("--run-dir=/catch", "cannot be mounted at `/`"),
        ] {
            let printed = podracer(&[&job[..], &["catch-ppo", run]].concat());
            assert_eq!(printed.code, 2, "{}", printed.err);
            assert!(printed.err.contains(expected), "{}", printed.err);
        }
    }

    #[test]
    fn mistakes_are_reported_before_anything_is_written() {
        for (arguments, expected) in [
            (
                &["--slurm", "--processes=2", "catch-ppo"][..],
                "name the run directory with --run-dir",
            ),
            (&["--slurm", "--processes=2", "catch-pp", "--run-dir=x"], "no experiment `catch-pp`"),
            (&["--slurm", "--processes=2", "catch-ppo", "--speed"], "'--speed'"),
            (
                &["--mpirun", "--processes=2", "catch-ppo", "--run-dir=x", "--seeds=4"],
                "--seeds has no --resume",
            ),
            (&["--processes=2", "catch-ppo", "--run-dir=x"], "--slurm"),
            (&["--kubernetes", "--processes=2", "catch-ppo", "--run-dir=x"], "--image"),
            (&["--mpirun", "--processes=0", "catch-ppo", "--run-dir=x"], "at least 1"),
        ] {
            let printed = podracer(&[&["launch"], arguments].concat());
            assert_eq!(printed.code, 2, "{}", printed.err);
            assert!(printed.err.contains(expected), "{}", printed.err);
        }
    }
}
