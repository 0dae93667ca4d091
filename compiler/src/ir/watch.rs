//! Finds the equations that produce nonfinite numbers: the reference semantics inspect the results
//! of every equation, including equations in bodies.
//!
//! # Invariants
//! - A NaN carries the number of the equation that made it, in the payload of its float. Ops that
//!   move values (slices, gathers, loops, `select`) move the number with it, and arithmetic
//!   propagates it. So a NaN among the results leads to its equation, and a NaN that a `select`
//!   discards leads nowhere.
//! - An infinity has no payload. It is traced back from operand to operand within its body, and
//!   then to the body's operands. An infinity from a loop is attributed to the first infinity that
//!   was made inside the loop.

use super::func::{Func, Var};
use super::loc::Loc;
use crate::array::Array;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An equation that produced a NaN from inputs without NaN, or an infinity from finite inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct NotFinite {
    /// The op's mnemonic.
    pub op: &'static str,
    /// The user's line.
    pub loc: Loc,
    /// Types and ranges of the operands.
    pub operands: Vec<Values>,
    /// NaN or an infinity.
    pub value: f64,
    /// The indices of the first such value in its result.
    pub index: Vec<usize>,
    /// The enclosing region ops, with their lines, the outermost first.
    pub regions: Vec<(&'static str, Loc)>,
    /// Sources of a NaN's infinite operands.
    pub infinities: Vec<Source>,
}

/// The source of a nonfinite number.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The argument with this index contained it.
    Argument(usize),
    /// An equation made it.
    Equation(NotFinite),
}

/// Type and range of an operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Element type and shape.
    pub ty: TensorType,
    /// The least and the greatest of its finite elements; `None` if there are none, and for bools.
    pub range: Option<(f64, f64)>,
    /// Number of infinite elements.
    pub infinite: usize,
}

impl Values {
    fn of(array: &Array) -> Values {
        let numbers = array.scalars().filter(|value| !matches!(value, Scalar::Bool(_)));
        let (mut range, mut infinite) = (None, 0);
        for number in numbers.map(|value| value.float()) {
            if number.is_infinite() {
                infinite += 1;
            } else if !number.is_nan() {
                let (least, greatest) = range.unwrap_or((number, number));
                range = Some((number.min(least), number.max(greatest)));
            }
        }
        Values { ty: array.ty().clone(), range, infinite }
    }
}

/// Text such as `f32[8,16] from -2 to 3e30, 4 infinite`.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ty)?;
        match self.range {
            Some((least, greatest)) if least == greatest => write!(f, " of {}", Short(least))?,
            Some((least, greatest)) => write!(f, " from {} to {}", Short(least), Short(greatest))?,
            None => {}
        }
        if self.infinite > 0 {
            write!(f, ", {} infinite", self.infinite)?;
        }
        Ok(())
    }
}

/// A number in a few digits.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size == 0.0 || self.0 == self.0.trunc() && size < 1e6 {
            write!(f, "{}", self.0)
        } else if (1e-3..1e6).contains(&size) {
            let text = format!("{:.5}", self.0);
            f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
        } else {
            let text = format!("{:.4e}", self.0);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            write!(f, "{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands: Vec<String> = self.operands.iter().map(ToString::to_string).collect();
        write!(f, "{}({}) gave ", self.op, operands.join("; "))?;
        match self.value {
            value if value.is_nan() => f.write_str("NaN")?,
            value if value > 0.0 => f.write_str("infinity")?,
            _ => f.write_str("-infinity")?,
        }
        if !self.index.is_empty() {
            write!(f, " at {:?}", self.index)?;
        }
        let given = if self.value.is_nan() { ", and no NaN was given to it" } else { "" };
        write!(f, "{given}\n  --> {}", self.loc)
    }
}

/// Progress of an evaluation and a flag that stops it, for another thread.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    /// Set to end the evaluation.
    pub stop: Arc<AtomicBool>,
    /// Number of equations that were evaluated.
    pub equations: Arc<AtomicU64>,
}

/// The results of an evaluation, and the sources of their nonfinite numbers.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Results of the function.
    pub results: Vec<Array>,
    /// The first equation that produced a NaN from inputs without NaN, whether or not the results
    /// depend on it.
    pub first_nan: Option<NotFinite>,
    /// For each result: its position in the order of discovery, and the source.
    sources: Vec<Option<(usize, Source)>>,
}

impl Watched {
    /// The source of the first nonfinite number in these results, given by their indices: the
    /// earliest NaN, otherwise an infinity. `None` if they are finite.
    #[must_use]
    pub fn source(&self, results: impl IntoIterator<Item = usize>) -> Option<&Source> {
        let sources = results.into_iter().filter_map(|index| self.sources.get(index)?.as_ref());
        sources.min_by_key(|(order, _)| *order).map(|(_, source)| source)
    }
}

/// Positions of the equations that lead to a body, and of the equation in it.
type Path = Vec<usize>;

/// A body, or the function itself, that is being evaluated.
struct Frame {
    /// For every variable so far, true if an element is infinite.
    infinite: Vec<bool>,
    /// Sources of the infinities that the parameters had when the body was entered.
    given: Vec<Option<Source>>,
    /// Sources of the infinities in the operands of the region op that is being evaluated.
    entering: Vec<Option<Source>>,
}

struct ActiveWatch {
    watcher: Watcher,
    /// Sources of the NaNs: a NaN carries the number of its source in this list, from 1.
    nans: Vec<Source>,
    /// The number of an equation that made a NaN.
    nan_of: BTreeMap<Path, usize>,
    /// Equations that made an infinity from finite numbers, in the order of their first infinity.
    infinities: Vec<(Path, NotFinite)>,
    frames: Vec<Frame>,
    path: Path,
    /// The enclosing region ops, with their lines.
    regions: Vec<(&'static str, Loc)>,
    sources: Vec<Option<(usize, Source)>>,
}

thread_local! {
    /// `None` unless an evaluation on this thread is watched.
    static WATCH: RefCell<Option<ActiveWatch>> = const { RefCell::new(None) };
}

/// The bits of a NaN that carry its number, in the layout of an f64 NaN: their distance from the
/// right, and the greatest number that they hold. An f64 NaN holds the numbers of an f32 NaN,
/// because it may be converted to f32.
fn payload(dtype: DType) -> (u32, usize) {
    match dtype {
        DType::F16 => (42, (1 << 9) - 1),
        DType::BF16 => (45, (1 << 6) - 1),
        _ => (29, (1 << 22) - 1),
    }
}

/// A NaN of a dtype that carries a number.
fn numbered(number: usize, dtype: DType) -> Scalar {
    let (shift, most) = payload(dtype);
    let plain = f64::NAN.to_bits() & !(1 << 63);
    Scalar::Float(f64::from_bits(plain | (number.min(most) as u64) << shift))
}

/// The numbers that the NaNs of an array carry, with their positions.
fn numbers(array: &Array) -> impl Iterator<Item = (usize, usize)> {
    let (shift, most) = payload(array.ty().dtype);
    array.scalars().enumerate().filter_map(move |(position, value)| match value {
        Scalar::Float(value) if value.is_nan() => {
            Some((position, (value.to_bits() >> shift) as usize & most))
        }
        _ => None,
    })
}

/// The position of the first infinity.
fn first_infinite(array: &Array) -> Option<usize> {
    array.scalars().position(is_infinite)
}

fn is_infinite(value: Scalar) -> bool {
    matches!(value, Scalar::Float(value) if value.is_infinite())
}

/// Evaluates a function while it is watched; `None` if the watcher stopped it.
pub(super) fn watched(func: &Func, arguments: &[Array], watcher: &Watcher) -> Option<Watched> {
    let mut nans = Vec::new();
    let mut arguments = arguments.to_vec();
    for (index, argument) in arguments.iter_mut().enumerate() {
        let found: Vec<usize> = numbers(argument).map(|(position, _)| position).collect();
        if !found.is_empty() {
            nans.push(Source::Argument(index));
            let nan = numbered(nans.len(), argument.ty().dtype);
            found.into_iter().for_each(|position| argument.put(position, nan));
        }
    }
    let watch = ActiveWatch {
        watcher: watcher.clone(),
        nans,
        nan_of: BTreeMap::new(),
        infinities: Vec::new(),
        frames: Vec::new(),
        path: Vec::new(),
        regions: Vec::new(),
        sources: Vec::new(),
    };
    let outer = WATCH.replace(Some(watch));
    let results = func.eval(&arguments);
    let watch = WATCH.replace(outer).expect("it was put there");
    if watcher.stop.load(Ordering::Relaxed) {
        return None;
    }
    let first_nan = watch.nans.iter().find_map(|source| match source {
        Source::Equation(equation) => Some(equation.clone()),
        Source::Argument(_) => None,
    });
    Some(Watched { results, first_nan, sources: watch.sources })
}

/// Begins the evaluation of a function. False if no watcher is set.
pub(super) fn begin(func: &Func, arguments: &[Array]) -> bool {
    WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return false };
        let mut infinite = vec![false; func.types.len()];
        for (param, argument) in func.params.iter().zip(arguments) {
            infinite[param.index()] = argument.scalars().any(is_infinite);
        }
        let given = match watch.frames.last() {
            // The operands of the region op and the parameters of its body have the same last
            // elements.
            Some(around) => {
                let more = around.entering.len().saturating_sub(func.params.len());
                around.entering[more..].to_vec()
            }
            None => (0..func.params.len()).map(|index| Some(Source::Argument(index))).collect(),
        };
        watch.frames.push(Frame { infinite, given, entering: Vec::new() });
        true
    })
}

/// Begins an equation of the function that is being evaluated. True if the evaluation is to stop.
pub(super) fn enter(func: &Func, position: usize) -> bool {
    with(|watch| {
        watch.watcher.equations.fetch_add(1, Ordering::Relaxed);
        let eqn = &func.eqns[position];
        if !eqn.op.funcs().is_empty() {
            let given = eqn.inputs.iter().map(|&var| watch.infinity(func, var));
            watch.frame().entering = given.collect();
            watch.regions.push((eqn.op.mnemonic(), eqn.loc));
        }
        watch.path.push(position);
        watch.watcher.stop.load(Ordering::Relaxed)
    })
}

/// Ends an equation: records infinities, and numbers the NaNs that it made.
pub(super) fn leave(func: &Func, position: usize, inputs: &[Array], outputs: &mut [Array]) {
    with(|watch| {
        let eqn = &func.eqns[position];
        if !eqn.op.funcs().is_empty() {
            watch.regions.pop();
        }
        for (var, output) in eqn.outputs.iter().zip(&*outputs) {
            watch.frame().infinite[var.index()] = output.scalars().any(is_infinite);
        }
        if eqn.outputs.iter().any(|var| watch.frame().infinite[var.index()])
            && !eqn.inputs.iter().any(|var| watch.frame().infinite[var.index()])
            && !watch.infinities.iter().any(|(path, _)| *path == watch.path)
        {
            let made = watch.equation(eqn.op.mnemonic(), eqn.loc, inputs, outputs, first_infinite);
            watch.infinities.push((watch.path.clone(), made));
        }
        let known = watch.nans.len();
        let is_new = |&(_, number): &(usize, usize)| number == 0 || number > known;
        let first_new = |output: &Array| Some(numbers(output).find(is_new)?.0);
        if outputs.iter().any(|output| first_new(output).is_some()) {
            // An op may replace a NaN by its own NaN: the number stays the same.
            let handed_on = inputs.iter().flat_map(numbers).map(|(_, number)| number).next();
            let number = match handed_on.or_else(|| watch.nan_of.get(&watch.path).copied()) {
                Some(number) => number,
                None => {
                    let mut made =
                        watch.equation(eqn.op.mnemonic(), eqn.loc, inputs, outputs, first_new);
                    made.infinities = watch.given_to(func, position);
                    watch.nans.push(Source::Equation(made));
                    watch.nan_of.insert(watch.path.clone(), watch.nans.len());
                    watch.nans.len()
                }
            };
            for output in outputs {
                let nan = numbered(number, output.ty().dtype);
                let new: Vec<usize> = numbers(output).filter(is_new).map(|(at, _)| at).collect();
                new.into_iter().for_each(|position| output.put(position, nan));
            }
        }
        watch.path.pop();
    });
}

/// Ends the evaluation of a function.
pub(super) fn end(func: &Func, results: &[Array]) {
    with(|watch| {
        if watch.frames.len() == 1 {
            let sources = func.results.iter().zip(results).map(|(&var, result)| {
                let number = numbers(result).next().map(|(_, number)| number);
                match number
                    .and_then(|number| Some((number, watch.nans.get(number.checked_sub(1)?)?)))
                {
                    Some((number, source)) => Some((number, source.clone())),
                    None => Some((usize::MAX, watch.infinity(func, var)?)),
                }
            });
            let sources = sources.collect();
            watch.sources = sources;
        }
        watch.frames.pop();
    });
}

/// Ends the evaluation of a function that was stopped.
pub(super) fn give_up() {
    with(|watch| {
        watch.frames.pop();
        watch.path.pop();
    });
}

fn with<R: Default>(f: impl FnOnce(&mut ActiveWatch) -> R) -> R {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map(f).unwrap_or_default())
}

impl ActiveWatch {
    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("an equation is evaluated within a function")
    }

    /// An equation that made numbers of some kind.
    fn equation(
        &self,
        op: &'static str,
        loc: Loc,
        inputs: &[Array],
        outputs: &[Array],
        first: impl Fn(&Array) -> Option<usize>,
    ) -> NotFinite {
        let value_of = |output: &Array| {
            let position = first(output)?;
            Some((output.get(position).float(), unravel(&output.ty().shape, position)))
        };
        let (value, index) =
            outputs.iter().find_map(value_of).unwrap_or_else(|| (f64::NAN, Vec::new()));
        NotFinite {
            op,
            loc,
            operands: inputs.iter().map(Values::of).collect(),
            value,
            index,
            regions: self.regions.clone(),
            infinities: Vec::new(),
        }
    }

    /// Sources of the infinities among the operands of an equation, each once.
    fn given_to(&self, func: &Func, position: usize) -> Vec<Source> {
        let mut sources = Vec::new();
        for &var in &func.eqns[position].inputs {
            let source = self.infinity(func, var).filter(|source| !sources.contains(source));
            sources.extend(source);
        }
        sources
    }

    /// The source of the infinities of a variable of the present function; `None` if it has none.
    fn infinity(&self, func: &Func, mut var: Var) -> Option<Source> {
        let frame = self.frames.last()?;
        if !frame.infinite[var.index()] {
            return None;
        }
        let here = &self.path[..(self.frames.len() - 1).min(self.path.len())];
        loop {
            let Some(position) = func.eqns.iter().position(|eqn| eqn.outputs.contains(&var)) else {
                let param = func.params.iter().position(|&param| param == var)?;
                let given = frame.given.get(param).cloned().flatten();
                // Otherwise an earlier round of the loop made it.
                return given.or_else(|| self.made_below(here));
            };
            let eqn = &func.eqns[position];
            match eqn.inputs.iter().find(|input| frame.infinite[input.index()]) {
                Some(&input) => var = input,
                None => return self.made_below(&[here, &[position]].concat()),
            }
        }
    }

    /// The first equation below a path that made an infinity; the equation at the path itself if
    /// there is none below.
    fn made_below(&self, path: &[usize]) -> Option<Source> {
        let below = self.infinities.iter().filter(|(made, _)| made.starts_with(path));
        let deeper = below.clone().find(|(made, _)| made.len() > path.len());
        let (_, equation) = deeper.or_else(|| below.clone().next())?;
        Some(Source::Equation(equation.clone()))
    }
}

/// The indices of the element at a position in row-major order.
fn unravel(shape: &[usize], position: usize) -> Vec<usize> {
    let mut rest = position;
    let mut index: Vec<usize> = Vec::with_capacity(shape.len());
    for &extent in shape.iter().rev() {
        index.push(rest % extent);
        rest /= extent;
    }
    index.reverse();
    index
}
