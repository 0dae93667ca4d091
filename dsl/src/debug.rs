//! `check` and `debug_print`: messages of a running program, as ordinary results.
//!
//! # Invariants
//! - Outside of [`collect`] both do nothing: the program is byte-identical.
//! - Nothing calls the host. The log of a combinator's body becomes further results of that body,
//!   and so of the op around it, up to the `collect` that returns them. So loops, branches and
//!   batches treat it like any other value: a branch that does not run logs nothing, and neither
//!   does a lane of a `while_loop` that has ended.

use crate::diff::stop_gradient;
use crate::tensor::{Tensor, create, report, select};
use crate::trace::entry::{Entry, Site};
use crate::trace::state;
use crate::tree::{IntoTree, Spec, Tree};
use podracer_compiler::{Array, DType, Loc, Scalar};
use podracer_derive::Tree;
use std::fmt;

/// The log of a program, which [`collect`] gathers: one entry for each `check` and `debug_print`. It is a tree: return
/// it from the program, and read the arrays that come out with [`Log::read`].
#[derive(Tree, Clone)]
pub struct Log {
    entries: Vec<Entry>,
}

/// Logs an error where `holds` is false; a bool tensor of any shape must hold everywhere. Each `{}` of the message
/// stands for one leaf of `values`. `jax.experimental.checkify.check`.
///
/// In a loop or a batch the first failure is kept, with its position and the number of failures.
/// Outside of [`collect`] it does nothing.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let program = trace(f32([4]), |x| {
///     collect(|| vmap(x, |x| { check(x.ge(0.0), "expected no negative number, got {}", x); x.sqrt() }))
/// })?;
/// # let x = Array::floats(F32, [4], &[1.0, -4.0, 9.0, -1.0]);
/// let results = program.eval(&[x])?;
/// let reports = Log::read(&program.results().1, &results[1..]);
/// assert!(reports[0].to_string().starts_with("check failed: expected no negative number, got -4 (2 times, first at [1])"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn check(holds: Tensor, message: &'static str, values: impl IntoTree) {
    let loc = Loc::caller();
    if holds.dtype() != DType::Bool {
        let message = format!("the condition must be bool, got {}", holds.ty());
        return report("check", message, &[holds]);
    }
    let values = values.into_tree();
    log("check", message, loc, (!holds).any(), values);
}

/// Logs values: each `{}` of the message stands for one leaf of `values`. `jax.debug.print`, except
/// that the log is returned with the results: see [`collect`].
///
/// A loop or a batch keeps every print, along further leading axes; a `while_loop` keeps only its
/// last round.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let program = trace(f32([2]), |x| {
///     collect(|| scan(0.0, x, |sum, x| { debug_print("{} after {}", (sum + x, x)); (sum + x, ()) }).0)
/// })?;
/// # let x = Array::floats(F32, [2], &[1.0, 2.5]);
/// let results = program.eval(&[x])?;
/// let reports = Log::read(&program.results().1, &results[1..]);
/// assert_eq!(reports[1].text, "3.5 after 2.5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn debug_print(message: &'static str, values: impl IntoTree) {
    let loc = Loc::caller();
    let values = values.into_tree();
    log("debug_print", message, loc, create::constant(true), values);
}

#[track_caller]
fn log<V: Tree>(op: &str, message: &'static str, loc: Loc, happened: Tensor, values: V) {
    let values = values.leaves();
    let places = message.matches("{}").count();
    if places != values.len() {
        let text = format!("the message has {places} `{{}}`, got {} values", values.len());
        return report(op, text, &values);
    }
    if state::with(|trace| trace.is_collecting()) != Some(true) {
        return;
    }
    let site = Site { is_check: op == "check", message, loc };
    let entry = Entry {
        site,
        count: happened.astype(DType::I32),
        at: Vec::new(),
        values: values.into_iter().map(stop_gradient).collect(),
    };
    state::with(|trace| trace.log([entry]));
}

/// Runs `f` and collects the log: returns its result, and everything that [`check`] and
/// [`debug_print`] logged in `f` and the functions that it calls.
/// `jax.experimental.checkify.checkify`.
///
/// Anakin's loop and Sebulba's programs call `collect` themselves: the messages of environments and
/// agents come back with the metrics, and `podracer train` prints them. A failed check ends such a
/// run.
///
/// Not collected: the logs of the condition of a `while_loop`, and of the closures of `custom_jvp`, `custom_vjp`,
/// `associative_scan` and `map_batched`.
#[track_caller]
pub fn collect<Y: IntoTree>(f: impl FnOnce() -> Y) -> (Y::Tree, Log) {
    let before = state::with(|trace| trace.begin_log());
    let value = f().into_tree();
    let entries = before.and_then(|before| state::with(|trace| trace.end_log(before)));
    (value, Log { entries: entries.unwrap_or_default() })
}

impl Entry {
    /// Reduces the stacked entries of the rounds to one entry: the first failure of a check,
    /// everything of a print. `None` for a check without rounds.
    #[track_caller]
    pub fn over_rounds(self) -> Option<Entry> {
        if !self.site.is_check {
            return Some(self);
        }
        let rounds = self.count.len();
        if rounds == 0 {
            return None;
        }
        let first = self.count.gt(0).astype(DType::I32).argmax(0);
        let of_first = |tensor: Tensor| tensor.take(first, 0);
        Some(Entry {
            site: self.site,
            count: self.count.sum(),
            at: [first].into_iter().chain(self.at.into_iter().map(of_first)).collect(),
            values: self.values.into_iter().map(of_first).collect(),
        })
    }

    /// Joins `self`, the entry of the rounds so far, with the entry of the next round: the first
    /// failure of a check is kept, and the last print.
    #[track_caller]
    pub fn after(self, next: &Entry) -> Entry {
        let keep = if self.site.is_check { self.count.gt(0) } else { create::constant(false) };
        let either = |old: &[Tensor], new: &[Tensor]| {
            old.iter().zip(new).map(|(&old, &new)| select(keep, old, new)).collect()
        };
        Entry {
            site: self.site,
            count: self.count + next.count,
            at: either(&self.at, &next.at),
            values: either(&self.values, &next.values),
        }
    }
}

/// A failed check, or a print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// True for a failed check, false for a print.
    pub is_check: bool,
    /// The message with the values in place of each `{}`.
    pub text: String,
    /// The line of the `check` or `debug_print`.
    pub loc: Loc,
    /// The round of each enclosing loop and batch, the outermost first; for a check, the first
    /// round that failed.
    pub at: Vec<usize>,
    /// The number of failures of the check. For a print 1, or the number of rounds that printed in
    /// a `while_loop`.
    pub count: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_check {
            return write!(f, "{}", self.text);
        }
        let times = if self.count == 1 { "once" } else { "times" };
        write!(f, "check failed: {} (", self.text)?;
        match (self.count, &self.at[..]) {
            (1, []) => write!(f, "{times}")?,
            (1, at) => write!(f, "{times}, at {at:?}")?,
            (count, []) => write!(f, "{count} {times}")?,
            (count, at) => write!(f, "{count} {times}, first at {at:?}")?,
        }
        write!(f, ")\n  --> {}", self.loc)
    }
}

impl Log {
    /// Reads the arrays that a program gave for the leaves of its log: failed checks and prints, in the order of their
    /// lines in the program. A log that a loop has stacked is read round by round.
    pub fn read(log: &Spec<Log>, leaves: &[Array]) -> Vec<Report> {
        let mut leaves = leaves.iter();
        let mut reports = Vec::new();
        for entry in log.entries.iter() {
            let Some(count) = leaves.next() else {
                break;
            };
            let at: Vec<&Array> = leaves.by_ref().take(entry.at.len()).collect();
            let values: Vec<&Array> = leaves.by_ref().take(entry.values.len()).collect();
            for (round, times) in count.scalars().enumerate() {
                let count_here = usize::try_from(times.int()).unwrap_or(0);
                if count_here == 0 {
                    continue;
                }
                let mut place = place_of(round, &count.ty().shape);
                place.extend(at.iter().map(|at| at.get(round).int() as usize));
                reports.push(Report {
                    is_check: entry.site.is_check,
                    text: fill(entry.site.message, &values, round, count.ty().elements()),
                    loc: entry.site.loc,
                    at: place,
                    count: count_here,
                });
            }
        }
        reports
    }
}

/// The indices of the element at position `flat` in row-major order.
fn place_of(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut place: Vec<usize> = Vec::new();
    for &extent in shape.iter().rev() {
        place.push(flat % extent);
        flat /= extent;
    }
    place.reverse();
    place
}

/// The message with each `{}` replaced by a value. Values that are stacked over rounds are read at
/// `round`.
fn fill(message: &str, values: &[&Array], round: usize, rounds: usize) -> String {
    let mut parts = message.split("{}");
    let mut text = parts.next().unwrap_or_default().to_string();
    for (part, value) in parts.zip(values) {
        let size = value.ty().elements() / rounds.max(1);
        let shown: Vec<String> = (round * size..(round + 1) * size)
            .map(|element| match value.get(element) {
                Scalar::Bool(x) => x.to_string(),
                Scalar::Int(x) => x.to_string(),
                Scalar::Float(x) if value.ty().dtype == DType::F64 => x.to_string(),
                Scalar::Float(x) => (x as f32).to_string(),
            })
            .collect();
        match &shown[..] {
            [one] => text += one,
            several => text += &format!("[{}]", several.join(", ")),
        }
        text += part;
    }
    text
}
