//! `podracer explain`: finds the line where the numbers of a run stopped being finite.
//!
//! The run's own program repeats its calls, from the last good checkpoint to the first bad call.
//! Then the iterations of that call run one by one, and the reference semantics evaluate the first
//! bad iteration.

use std::fmt::Write;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use podracer_compiler::{Array, Func, NotFinite, Source, Watched, Watcher};
use podracer_runtime::{Checkpoint, Found};

use crate::cli::console::Console;
use crate::cli::program::{INTERRUPTED, Program};
use crate::cli::session::ready::Ready;
use crate::cli::signals;
use crate::loading::Overrides;
use crate::parameters::not_finite;
use crate::run_directory::RunDirectory;
use crate::settings::UsageError;
use crate::training::{CallMetrics, Cause, Explanation, Run, Suspect, Symptom};

/// Time between two lines of progress.
const EVERY: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The run directory
    pub(crate) run: PathBuf,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(crate) trust: bool,
}

pub(crate) fn explain(
    args: &ExplainArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let overrides = Overrides { trust: args.trust, ..Overrides::default() };
    let settings = RunDirectory::settings(&args.run, &overrides, program.registry)?;
    let found = RunDirectory::find_any(&args.run, &settings)?;
    let ready = Ready::new(settings, console, program)?;
    ready.training.repeats().map_err(UsageError::new)?;
    if let Some(found) = &found {
        let (_, warning) = ready.goes_on_from(found, program.registry)?;
        if let Some(warning) = warning {
            console.warn(&warning);
        }
    }
    let _heeding = signals::heed();
    let mut search = Explainer { ready: &ready, run: &args.run, console, interrupt };
    let Some(explanation) = search.first_cause(found.as_ref())? else {
        return Ok(INTERRUPTED);
    };
    let text = text(&ready.settings.experiment, &explanation);
    search.console.print(&text)?;
    Ok(u8::from(matches!(explanation.cause, Cause::Device)))
}

struct Explainer<'a, 'b> {
    ready: &'a Ready,
    /// The run's folder.
    run: &'a Path,
    console: &'a mut Console<'b>,
    interrupt: &'a AtomicBool,
}

impl Explainer<'_, '_> {
    /// The equation that produced the first bad number, as far back as it can be traced. `None` if
    /// the user stopped the search.
    fn first_cause(&mut self, found: Option<&Found>) -> Result<Option<Explanation>> {
        let mut from = found.map(|found| &found.checkpoint);
        let mut symptom = Symptom::Training;
        let mut later = None;
        loop {
            let explanation = match self.explain(from, &symptom)? {
                Verdict::Explained(explanation) => explanation,
                Verdict::Stopped => return Ok(None),
                // The checkpoint is already bad.
                Verdict::WrongBefore if from.is_some() => {
                    from = None;
                    continue;
                }
                Verdict::WrongBefore => {
                    return later.map(Some).context(
                        "the parameters are not finite at the start of the run: the agent's `init` makes them so",
                    );
                }
            };
            let Cause::State(leaf) = &explanation.cause else { return Ok(Some(explanation)) };
            // The state had the symptom before this iteration, so an earlier iteration caused it.
            self.console.say(&format!(
                "iteration {} was given it, in `{leaf}`: looking for where that comes from",
                explanation.iteration
            ));
            let earlier = Symptom::State(leaf.clone());
            if symptom == earlier {
                return Ok(Some(explanation));
            }
            symptom = earlier;
            later = Some(explanation);
        }
    }

    fn explain(&mut self, from: Option<&Checkpoint>, symptom: &Symptom) -> Result<Verdict> {
        let iterations_per_call = self.ready.settings.training_loop.iterations_per_call() as u64;
        let done = from.map_or(0, |checkpoint| checkpoint.iterations);
        let total = self.ready.settings.plan().calls * iterations_per_call;
        let calls = total.saturating_sub(done).div_ceil(iterations_per_call);
        self.console.say(&match done {
            0 => "making the run's iterations again, from its beginning".to_owned(),
            done => format!("making the run's iterations again, from the checkpoint after {done}"),
        });
        let mut run = self.start(from)?;
        if let Some(caveat) = run.caveat() {
            self.console.warn(&caveat);
        }
        if is_wrong(&mut *run, None, symptom)? {
            return Ok(Verdict::WrongBefore);
        }
        let mut wrong = None;
        let mut reported = Instant::now();
        for call in 0..calls {
            if self.interrupt.load(Ordering::Relaxed) {
                return Ok(Verdict::Stopped);
            }
            let metrics = run.advance()?;
            if is_wrong(&mut *run, Some(&metrics), symptom)? {
                wrong = Some(call);
                break;
            }
            if reported.elapsed() > EVERY {
                reported = Instant::now();
                let made = done + (call + 1) * iterations_per_call;
                self.console.say(&format!("{made} of {total} iterations, all finite"));
            }
        }
        let Some(call) = wrong else {
            bail!(
                "the {total} iterations of the run were made again, and all of its numbers are finite: there is nothing to explain"
            );
        };
        // The state before that call, which was moved into the call.
        let before = match call {
            0 => None,
            call => {
                let mut run = self.start(from)?;
                for _ in 0..call {
                    if self.interrupt.load(Ordering::Relaxed) {
                        return Ok(Verdict::Stopped);
                    }
                    run.advance()?;
                }
                Some(run.checkpoint()?.detached()?)
            }
        };
        drop(run);
        self.one_by_one(before.as_ref().or(from), symptom, iterations_per_call)
    }

    /// Runs the iterations of a call one by one.
    fn one_by_one(
        &mut self,
        from: Option<&Checkpoint>,
        symptom: &Symptom,
        iterations_per_call: u64,
    ) -> Result<Verdict> {
        let Explainer { ready, run, console, interrupt } = self;
        let done = from.map_or(0, |checkpoint| checkpoint.iterations);
        console.say(&format!(
            "a number is not finite in the {iterations_per_call} iterations after {done}: going through them one by one"
        ));
        let suspect = Suspect {
            start: ready.start(run, from),
            symptom,
            // The last bits of a program with one iteration may differ from the run's.
            iterations: 2 * iterations_per_call,
        };
        let mut evaluate = |iteration, func: &Func, arguments: &[Array]| {
            console.say(&format!(
                "evaluating iteration {iteration} by the reference semantics, which takes seconds to minutes"
            ));
            evaluate(func, arguments, console, interrupt)
        };
        let repeats = ready.training.repeats().map_err(UsageError::new)?;
        let explanation = repeats.explain(&suspect, &mut evaluate)?;
        match explanation {
            Some(explanation) => Ok(Verdict::Explained(explanation)),
            None if interrupt.load(Ordering::Relaxed) => Ok(Verdict::Stopped),
            None => bail!(
                "the iterations after {done} go wrong in the run's program of {iterations_per_call} iterations, and not in one of a \
                 single iteration: rounding decides it"
            ),
        }
    }

    fn start(&self, from: Option<&Checkpoint>) -> Result<Box<dyn Run>> {
        let run = self.ready.training.start(self.ready.start(self.run, from));
        run.with_context(|| format!("cannot start {}", self.ready.settings.experiment))
    }
}

enum Verdict {
    Explained(Explanation),
    /// The initial state already has the symptom.
    WrongBefore,
    /// The user stopped the search.
    Stopped,
}

/// True if the symptom is present after a call.
fn is_wrong(run: &mut dyn Run, call: Option<&CallMetrics>, symptom: &Symptom) -> Result<bool> {
    Ok(match symptom {
        Symptom::Training => {
            call.is_some_and(|call| call.not_finite().is_some())
                || not_finite(&run.parameters()?).is_some()
        }
        Symptom::State(leaf) => run.checkpoint()?.array(leaf)?.not_finite() > 0,
    })
}

/// Evaluates a function by the reference semantics on a separate thread, and prints progress now
/// and then. `None` if `interrupt` is set.
fn evaluate(
    func: &Func,
    arguments: &[Array],
    console: &mut Console<'_>,
    interrupt: &AtomicBool,
) -> Option<Watched> {
    let watcher = Watcher::default();
    let began = Instant::now();
    thread::scope(|scope| {
        let evaluation = scope.spawn(|| func.eval_watched(arguments, &watcher));
        let mut reported = began;
        while !evaluation.is_finished() {
            if interrupt.load(Ordering::Relaxed) {
                watcher.stop.store(true, Ordering::Relaxed);
            }
            if reported.elapsed() > EVERY {
                reported = Instant::now();
                let equations = watcher.equations.load(Ordering::Relaxed);
                let seconds = began.elapsed().as_secs();
                console.say(&format!("{equations} equations in {seconds} s"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        evaluation.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// An explanation as readable text.
fn text(experiment: &str, explanation: &Explanation) -> String {
    let Explanation { iteration, symptom, cause } = explanation;
    let mut text = format!("{experiment}: {symptom} is not finite after iteration {iteration}. ");
    match cause {
        Cause::Equation(equation) => {
            let what = if equation.value.is_nan() { "NaN" } else { "infinity" };
            text += &format!("The first {what} that it depends on");
            describe(&mut text, equation);
            for source in &equation.infinities {
                match source {
                    Source::Equation(infinity) => {
                        text += "An infinity that was given to it";
                        describe(&mut text, infinity);
                    }
                    Source::Argument(_) => {
                        text += "An infinity that was given to it was in the state before the iteration.\n";
                    }
                }
            }
        }
        Cause::State(leaf) => {
            let _ = writeln!(text, "The state before it is not finite already, in `{leaf}`.");
        }
        Cause::Trajectory(leaf) => {
            let _ = writeln!(
                text,
                "The trajectories that were learnt from are not finite already, in `{leaf}`: acting or the environment made it."
            );
        }
        Cause::Device => {
            text += "The reference semantics of its program give finite numbers: rounding on the device decides it, or XLA's options (`[xla]`) change the results.\n";
        }
    }
    text
}

/// The place of an equation, its op with the ranges of its operands, and the loops around it.
fn describe(text: &mut String, equation: &NotFinite) {
    let part = equation.loc.part().map_or_else(String::new, |part| format!(", in {part}"));
    let said = equation.to_string().replace('\n', "\n  ");
    let _ = writeln!(text, "{part}:\n  {said}");
    for (op, loc) in equation.regions.iter().rev() {
        let _ = writeln!(text, "  in {op} --> {loc}");
    }
}
