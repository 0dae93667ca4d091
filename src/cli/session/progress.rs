//! The progress of a training: a bar on a terminal, ten lines otherwise.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::console::Console;
use crate::format::count;

/// Number of progress lines without a terminal.
const LINES: u64 = 10;

pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { total: u64, shown: u64 },
}

impl Progress {
    /// The progress of a training of `total` environment steps.
    pub(crate) fn new(console: &mut Console<'_>, total: u64) -> Self {
        if !console.terminal {
            console.say("compiling");
            return Self::Lines { total, shown: 0 };
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message("compiling");
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::Bar(bar)
    }

    /// Shows that the program is compiled.
    pub(crate) fn compiled(&mut self, console: &mut Console<'_>, seconds: f64) {
        match self {
            Self::Bar(bar) => {
                bar.disable_steady_tick();
                bar.set_style(style("{wide_bar:.blue} {percent:>3}%  {msg}  {eta} left"));
                bar.set_message(format!("compiled in {seconds:.2} s"));
            }
            Self::Lines { .. } => console.say(&format!("compiled in {seconds:.2} s")),
        }
    }

    /// Shows the environment steps that are done, and the speed.
    pub(crate) fn advance(
        &mut self,
        console: &mut Console<'_>,
        steps: u64,
        per_second: f64,
        mean_return: Option<f64>,
        note: &str,
    ) {
        let mean = mean_return.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"));
        let speed = count(per_second);
        match self {
            Self::Bar(bar) => {
                let note = if note.is_empty() { String::new() } else { format!("  {note}") };
                bar.set_message(format!("{speed} steps/s  mean return {mean}{note}"));
                bar.set_position(steps.min(bar.length().unwrap_or(steps)));
            }
            Self::Lines { total, shown } => {
                let due = steps.saturating_mul(LINES) / (*total).max(1);
                if due > *shown {
                    *shown = due;
                    let (steps, total) = (count(steps as f64), count(*total as f64));
                    console.say(&format!(
                        "{steps} of {total} steps, {speed} steps/s, mean return {mean}"
                    ));
                    if !note.is_empty() {
                        console.say(&format!("  {note}"));
                    }
                }
            }
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Drop for Progress {
    // An error must not be printed into a bar that is still drawn.
    fn drop(&mut self) {
        self.finish();
    }
}
