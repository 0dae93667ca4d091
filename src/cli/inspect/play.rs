//! `podracer play`: shows episodes in the terminal, or writes them as an animation. `--against` is
//! in `versus.rs`.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use podracer_envs::Space;
use podracer_envs::host::{HostSpec, Random, StepMemory};
use podracer_runtime::{Checkpoints, Client, ClientOptions};
use toml::{Table, Value};

use super::versus::{Games, versus};
use crate::cli::console::Console;
use crate::cli::numbers::at_least_one;
use crate::cli::program::{INTERRUPTED, Program};
use crate::cli::session::Reopened;
use crate::cli::signals;
use crate::evaluation::{AgentView, Play};
use crate::files::{Unfinished, cannot_write};
use crate::format::plural;
use crate::loading::Overrides;
use crate::play::{Animation, Colours, End, Format, Frame, Lines, Pictures, Reel, Shown};
#[cfg(feature = "plots")]
use crate::play::{Panel, captioned};
use crate::program_name::program_name;
use crate::registry::Registry;
use crate::run_directory::RunDirectory;
use crate::settings::{UsageError, suggestion};

#[derive(Args, Debug)]
pub(crate) struct PlayArguments {
    /// A run directory; with --random or --against, also an experiment or an environment (see
    /// `podracer list`)
    pub(crate) what: String,
    /// Play games of two players yourself, against the agent of this run; standard input has one
    /// move per line
    #[arg(long, value_name = "RUN", conflicts_with_all = ["random", "output"])]
    pub(crate) against: Option<PathBuf>,
    /// Let the agent begin
    #[arg(long, requires = "against")]
    pub(crate) second: bool,
    /// Number of episodes
    #[arg(long, default_value = "1", allow_negative_numbers = true, value_parser = at_least_one("episode"))]
    pub(crate) episodes: NonZero<usize>,
    /// Seed of the episodes; `podracer eval --episodes=1` plays the same episodes with this seed
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the pictures to this file, with a name that ends in .gif or .y4m (for video encoders), and show none; in .txt, the last state as text, such as a routed board; `-` is standard output, as .y4m
    #[arg(short, long, visible_alias = "gif", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Pixels of the longer side of a picture in a file
    #[arg(long, default_value_t = 320, value_name = "PIXELS", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) size: u16,
    /// Pictures per second, 0.1 to 100
    #[arg(long, default_value_t = 20.0, value_parser = pictures_a_second)]
    pub(crate) fps: f64,
    /// Show the agent's view of each state next to its picture: the state's value, and
    /// probabilities and values of actions
    #[arg(long, conflicts_with_all = ["random", "against"])]
    pub(crate) values: bool,
    /// Draw every action uniformly from the action space
    #[arg(long)]
    pub(crate) random: bool,
    /// Draw actions from the policy, as in training, instead of taking the greedy ones
    #[arg(long, conflicts_with = "random")]
    pub(crate) sample: bool,
    /// Play with the parameters of the best evaluation during the training (train.eval_every)
    #[arg(long, conflicts_with = "random")]
    pub(crate) best: bool,
    /// Play even with parameters that are NaN or infinite
    #[arg(long, conflicts_with = "random")]
    pub(crate) allow_nan: bool,
    /// Change a setting of the environment, such as environment.time_limit=50 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE", conflicts_with = "against")]
    pub(crate) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Pictures per second, within the limits of GIF and terminals.
fn pictures_a_second(text: &str) -> Result<f64, String> {
    let within = |fps: &f64| (0.1..=100.0).contains(fps);
    let number = text.parse().ok().filter(within);
    number.ok_or_else(|| "expected a number from 0.1 to 100".to_owned())
}

/// Stream of draws for actions, far from the other uses of a seed.
const ACTIONS: u64 = u64::from_le_bytes(*b"actions ");

pub(crate) fn play(
    args: &PlayArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let format = match &args.output {
        None => None,
        Some(path) => Some(Format::of(path).ok_or_else(|| {
            let (path, endings) = (path.display(), Format::ENDINGS);
            UsageError::new(format!(
                "--output is `{path}` and must end in {endings}: no other format is written"
            ))
        })?),
    };
    if cfg!(not(feature = "plots")) && args.values && args.output.is_some() {
        let problem = "a film with --values needs a program with the feature `plots`";
        return Err(UsageError::new(problem).into());
    }
    if let Some(run) = &args.against {
        let environment = named_environment(args, program.registry)?;
        let &PlayArguments {
            seed, sample: sampled, best, allow_nan, trust, second, episodes, ..
        } = args;
        let games = Games {
            environment: &environment,
            run,
            number: episodes.get(),
            seed,
            second,
            sampled,
            best,
            allow_nan,
            trust,
        };
        return versus(&games, console, program, interrupt);
    }
    let played = if args.random {
        at_random((args, format), console, program.registry, interrupt)?
    } else {
        trained((args, format), console, program, interrupt)?
    };
    Ok(if played < args.episodes.get() { INTERRUPTED } else { 0 })
}

/// Plays with the parameters of a run. Returns the number of episodes that ended.
fn trained(
    (args, format): (&PlayArguments, Option<Format>),
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<usize> {
    let run = Path::new(&args.what);
    let registry = program.registry;
    let known =
        registry.experiment(&args.what).is_some() || registry.environment(&args.what).is_some();
    if known && !run.is_dir() {
        let problem = format!(
            "`{what}` is no run directory, and only a run has trained parameters: train one (`{name} train`), or play at random \
             (`{name} play {what} --random`)",
            what = args.what,
            name = program_name()
        );
        return Err(UsageError::new(problem).into());
    }
    let find = |settings: &_| match args.best {
        true => RunDirectory::find_best(run),
        false => RunDirectory::find(run, settings, Checkpoints::latest_parameters),
    };
    if let Some(set) = args.set.iter().find(|set| !set.starts_with("environment.")) {
        let problem = format!(
            "--set {set} is no setting of the environment: a run is played by the agent that it trained, in an environment that may differ"
        );
        return Err(UsageError::new(problem).into());
    }
    let overrides = Overrides { trust: args.trust, ..Overrides::default() };
    let Reopened { ready, found, .. } = Reopened::open(run, find, &overrides, console, program)?;
    let settings = &ready.settings;
    let environment = named_environment(args, registry)?;
    let (stage, pictures) = ready.environment.stage(&environment, ready.device())?;
    if !args.set.is_empty() {
        let (trained, _) = ready.environment.stage(&settings.environment, ready.device())?;
        check_spaces(stage.spec(), trained.spec())?;
    }
    let &PlayArguments { episodes, seed, sample: sampled, allow_nan, values: views, .. } = args;
    let play = Play { episodes: episodes.get(), seed, sampled, allow_nan, views };
    let mut evaluator = ready.plays()?.evaluator(stage, ready.device(), &play)?;
    let _heeding = signals::heed();
    let mut screen = Screen::new((args, format), pictures, console)?;
    let watch = &mut |memory: &StepMemory, view| screen.show(memory, view, interrupt);
    evaluator
        .play(&found.checkpoint, interrupt, watch)
        .with_context(|| format!("cannot play {}", settings.experiment))?;
    screen.finish()
}

/// Checks that an agent that was trained in one environment can play in another.
fn check_spaces(played: &HostSpec, trained: &HostSpec) -> Result<(), UsageError> {
    for (what, now, before) in [
        ("observations", &played.observation, &trained.observation),
        ("actions", &played.action, &trained.action),
    ] {
        if now != before {
            let (now, before) = (now.ty(), before.ty());
            return Err(UsageError::new(format!(
                "with --set the environment has {what} {now}, and the agent was trained with {before}: it plays in environments of the same spaces"
            )));
        }
    }
    Ok(())
}

/// Plays with random actions. Returns the number of episodes that ended.
fn at_random(
    (args, format): (&PlayArguments, Option<Format>),
    console: &mut Console<'_>,
    registry: &Registry,
    interrupt: &AtomicBool,
) -> Result<usize> {
    let environment = named_environment(args, registry)?;
    let name = environment.get("name").and_then(Value::as_str).unwrap_or_default();
    let entry = registry.environment(name).with_context(|| format!("no environment {name}"))?;
    (entry.check)(&environment).map_err(UsageError::new)?;
    let client = Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })?;
    let (mut stage, pictures) = entry.stage(&environment, (&client, 0))?;
    let _heeding = signals::heed();
    let mut memory = StepMemory::try_new(stage.spec())?;
    let mut draws = Random::from_state(args.seed ^ ACTIONS);
    let mut screen = Screen::new((args, format), pictures, console)?;
    stage.reset(args.seed, 0, &mut memory.step())?;
    screen.show(&memory, None, interrupt)?;
    while screen.finished < args.episodes.get() && !interrupt.load(Ordering::Relaxed) {
        let action = draw_action(&stage.spec().action.clone(), &mut draws);
        stage.step(&action, &mut memory.step())?;
        screen.show(&memory, None, interrupt)?;
    }
    screen.finish()
}

/// The table `[environment]` of a run, an experiment or an environment.
fn named_environment(args: &PlayArguments, registry: &Registry) -> Result<Table> {
    let overrides = Overrides { set: args.set.clone(), trust: args.trust, ..Overrides::default() };
    if RunDirectory::is_run(Path::new(&args.what)) {
        let run = RunDirectory::settings(Path::new(&args.what), &overrides, registry)?;
        return Ok(run.environment);
    }
    if registry.environment(&args.what).is_none() {
        if registry.is_unknown(&args.what) {
            let experiments = registry.experiments().iter().map(|one| one.name.as_str());
            let near = suggestion(
                &args.what,
                registry.names("environment").into_iter().chain(experiments),
            );
            let problem = format!(
                "there is no run, environment or experiment `{}`{near}; `{} list` names those that are built in",
                args.what,
                program_name()
            );
            return Err(UsageError::new(problem).into());
        }
        return Ok(registry.load(&args.what, &overrides)?.environment);
    }
    Ok(registry.environment_table(&args.what, &args.set)?)
}

/// The bytes of a random action: one number for a discrete space, one for each element of a
/// multi-discrete space, or uniform numbers within the bounds of a box. An element without bounds
/// is between -1 and 1. The choices of a dict are f32.
fn draw_action(space: &Space, draws: &mut Random) -> Vec<u8> {
    match space {
        Space::Discrete { n, .. } => (draws.below(*n) as i32).to_le_bytes().to_vec(),
        Space::MultiDiscrete { counts, .. } => {
            counts.iter().flat_map(|&n| (draws.below(n) as i32).to_le_bytes()).collect()
        }
        Space::Dict { parts } => {
            let part = |(_, part): &(String, Space)| match part.counts() {
                [] => draw_action(part, draws),
                counts => {
                    let choices = counts.iter().map(|&n| draws.below(n) as f32);
                    choices.flat_map(f32::to_le_bytes).collect()
                }
            };
            parts.iter().flat_map(part).collect()
        }
        Space::Pixels { .. } => (0..space.elements()).map(|_| draws.below(256) as u8).collect(),
        Space::Box { .. } => (0..space.elements())
            .flat_map(|element| {
                let (low, high) = space.bounds(element);
                let bounded = low.is_finite() && high.is_finite();
                let (low, high) = if bounded { (low as f32, high as f32) } else { (-1.0, 1.0) };
                draws.range(low, high).to_le_bytes()
            })
            .collect(),
    }
}

/// The place where episodes are shown.
struct Screen<'a, 'b> {
    args: &'a PlayArguments,
    reel: Reel,
    console: &'a mut Console<'b>,
    /// Colours of the terminal; `None` if standard output is no terminal; all pictures are then
    /// written below each other.
    colours: Option<Colours>,
    /// Number of lines of the last picture, which the next picture replaces on a terminal.
    lines: usize,
    /// The time of the next picture on a terminal.
    next: Instant,
    /// The animation to write; its file is created before the first step.
    animation: Option<(&'a Path, Animation<'a>, Option<Unfinished<'a>>)>,
    /// Draws the agent's views next to the pictures of an animation; `None` if they are not
    /// requested.
    #[cfg(feature = "plots")]
    panel: Option<Panel>,
    /// Writes the agent's views below the pictures of a terminal.
    views: Lines,
    /// Number of episodes that ended.
    finished: usize,
}

impl<'a, 'b> Screen<'a, 'b> {
    fn new(
        (args, format): (&'a PlayArguments, Option<Format>),
        pictures: Pictures,
        console: &'a mut Console<'b>,
    ) -> Result<Self> {
        let terminal = console.terminal && io::stdout().is_terminal();
        let create = |(path, format): (&'a PathBuf, Format)| -> Result<_> {
            let (to, unfinished): (Box<dyn Write>, _) = if is_standard_output(path) {
                (Box::new(io::stdout()), None)
            } else {
                let file = Unfinished::create(path).with_context(|| cannot_write(path))?;
                (Box::new(file.0), Some(file.1))
            };
            let animation = Animation::new(BufWriter::new(to), format, args.fps);
            Ok((path.as_path(), animation, unfinished))
        };
        Ok(Screen {
            args,
            reel: Reel::new(pictures),
            console,
            colours: terminal.then(terminal_colours),
            lines: 0,
            next: Instant::now(),
            animation: args.output.as_ref().zip(format).map(create).transpose()?,
            #[cfg(feature = "plots")]
            panel: args.values.then(|| Panel::new(usize::from(args.size))),
            views: Lines::default(),
            finished: 0,
        })
    }

    /// Shows the outcome of the first reset or of a step, with the agent's view of the state after it.
    fn show(
        &mut self,
        memory: &StepMemory,
        view: Option<AgentView>,
        interrupt: &AtomicBool,
    ) -> Result<()> {
        if self.finished == self.args.episodes.get() {
            return Ok(());
        }
        let Some(shown) = self.reel.show(memory, view) else { return Ok(()) };
        let Shown { frame, steps, episode_return, end } = shown;
        self.draw(frame, (steps, episode_return), interrupt)?;
        let Some(End { terminated, next }) = end else { return Ok(()) };
        self.finished += 1;
        let said = format!(
            "episode {}: return {episode_return}, {}, {}",
            self.finished,
            plural(steps as usize, "step"),
            if terminated { "terminated" } else { "truncated" },
        );
        // The animation is the only output on standard output.
        match self.args.output.as_deref().is_some_and(is_standard_output) {
            true => self.console.say(&said),
            false => self.console.print(&format!("{said}\n"))?,
        }
        self.lines = 0;
        match self.finished < self.args.episodes.get() {
            true => self.draw(next, (0, 0.0), interrupt),
            false => Ok(()),
        }
    }

    fn draw(
        &mut self,
        frame: Option<Frame>,
        (steps, episode_return): (u64, f32),
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let Some(Frame { picture, view }) = frame else { return Ok(()) };
        if let Some((path, animation, _)) = &mut self.animation {
            let side = usize::from(self.args.size);
            #[cfg(not(feature = "plots"))]
            let picture = picture.sized(side);
            #[cfg(feature = "plots")]
            let picture = match &mut self.panel {
                None => picture.sized(side),
                Some(panel) => panel.beside(&picture, view.as_ref())?,
            };
            #[cfg(feature = "plots")]
            let picture = captioned(&picture, steps, episode_return)?;
            return animation.add(&picture).with_context(|| cannot_write(path));
        }
        let caption = format!("step {steps}, return {episode_return}");
        let mut text = picture.text(self.colours.unwrap_or(Colours::None));
        if self.args.values {
            text += &self.views.text(view.as_ref());
        }
        if self.colours.is_none() {
            return self.console.print(&format!("{text}{caption}\n\n"));
        }
        self.wait(interrupt);
        let up = if self.lines > 0 { format!("\x1b[{}A", self.lines) } else { String::new() };
        self.lines = text.lines().count() + 1;
        self.console.print(&format!("{up}{text}{caption}\x1b[K\n"))
    }

    /// Waits for the time of the next picture, or until `interrupt` is set.
    fn wait(&mut self, interrupt: &AtomicBool) {
        while !interrupt.load(Ordering::Relaxed) {
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            sleep(left.min(Duration::from_millis(50)));
        }
        self.next = Instant::now() + Duration::from_secs_f64(1.0 / self.args.fps);
    }

    /// Ends the animation, if there is one. Returns the number of episodes that ended.
    fn finish(self) -> Result<usize> {
        if let Some((path, animation, unfinished)) = self.animation {
            let pictures = animation.finish().with_context(|| cannot_write(path))?;
            unfinished.map_or(Ok(()), Unfinished::finish).with_context(|| cannot_write(path))?;
            if is_standard_output(path) {
                return Ok(self.finished);
            }
            let written = match Format::of(path) {
                Some(Format::Text) => "the last state".to_owned(),
                _ => plural(pictures, "picture"),
            };
            self.console.say(&format!("{written} in {}", path.display()));
        }
        Ok(self.finished)
    }
}

/// True for `-`, the name of standard output.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// The colours of the terminal, from its environment variables: none with `NO_COLOR`.
fn terminal_colours() -> Colours {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let terminal = variable("TERM");
    if !variable("NO_COLOR").is_empty() || terminal == "dumb" {
        return Colours::None;
    }
    match variable("COLORTERM").as_str() {
        "truecolor" | "24bit" => Colours::True,
        _ if terminal.ends_with("direct") => Colours::True,
        _ => Colours::Indexed,
    }
}
