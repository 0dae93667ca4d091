//! The trace of the current thread: a stack of frames, each a function under construction.
//!
//! # Invariants
//! - A [`Tensor`] is an index into the slots of one trace. A slot belongs to one frame, and is a
//!   variable of that frame.
//! - A frame that uses a slot of an outer frame gets one parameter for it; the operand is resolved
//!   when the frame closes. So closures capture freely and region ops capture nothing.
//! - No borrow of the thread's state is held while the user's code runs.

use super::entry::Entry;
use super::error::{Note, TraceError, Warning};
use crate::tensor::handle::Tensor;
use podracer_compiler::ir::Call;
use podracer_compiler::ops::REPLICAS;
use podracer_compiler::{Builder, DType, Func, Loc, OpRef, TensorType, Var};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

thread_local! {
    static TRACES: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

/// Numbers traces over all threads, so that a handle from another thread is never taken for a
/// handle of this trace. Zero is no trace.
static NEXT_TRACE: AtomicU32 = AtomicU32::new(1);

/// The role of a frame's closure. Rules about captured keys differ between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The traced function itself.
    Root,
    /// Runs once in place: a branch, the function under `grad`.
    Once(&'static str),
    /// A body that runs several times: draws from a captured key repeat.
    Repeats(&'static str),
}

/// A function under construction, and its captures so far.
pub(crate) struct Frame {
    id: u32,
    kind: FrameKind,
    builder: Builder,
    captures: Vec<(Tensor, Var)>,
    by_slot: BTreeMap<u32, Var>,
    /// The log of this frame so far.
    log: Vec<Entry>,
    /// The named axis that this frame's vmap adds, or the program's replicas, with its extent.
    axis: Option<(String, usize)>,
}

struct Slot {
    frame: u32,
    var: Var,
    ty: TensorType,
    poison: bool,
}

/// A finished frame: its function has the explicit parameters first, then one for each capture.
pub(crate) struct Closed {
    pub func: Func,
    pub captures: Vec<Tensor>,
}

/// A trace in progress.
pub(crate) struct Trace {
    id: u32,
    slots: Vec<Slot>,
    frames: Vec<Frame>,
    next_frame: u32,
    errors: Vec<TraceError>,
    warnings: Vec<Warning>,
    scopes: Vec<Note>,
    /// The part of the program that is being traced, if it has a name.
    part: Option<&'static str>,
    /// The line of the equations that are being traced, in place of their own.
    line: Option<Loc>,
    /// The invocation of a library function that is being traced, the outermost one.
    call: Option<Call>,
    /// Keys that were drawn from or split, with the place.
    consumed: BTreeMap<u32, Loc>,
    /// Places of `cond`s that may run both branches without a warning.
    both: BTreeSet<Loc>,
    /// The number of enclosing `collect`s.
    collecting: usize,
}

/// Runs `f` on the current trace; `None` outside of one.
pub(crate) fn with<R>(f: impl FnOnce(&mut Trace) -> R) -> Option<R> {
    TRACES.with(|traces| traces.borrow_mut().last_mut().map(f))
}

/// The type of a tensor of the current trace, for display. Nothing is recorded. `None` if the
/// tensor belongs to another trace or the trace is borrowed.
pub(crate) fn type_of(tensor: Tensor) -> Option<TensorType> {
    TRACES.with(|traces| {
        let traces = traces.try_borrow().ok()?;
        let trace = traces.last().filter(|trace| trace.id == tensor.trace_id())?;
        trace.slots.get(tensor.slot() as usize).map(|slot| slot.ty.clone())
    })
}

/// Begins a trace on this thread; an unfinished trace waits below it. Returns the new depth.
pub(crate) fn push(replicas: Option<usize>) -> usize {
    TRACES.with(|traces| {
        let mut traces = traces.borrow_mut();
        traces.push(Trace::new(replicas));
        traces.len()
    })
}

/// Ends the trace at `depth`, and the traces above it that a panic left.
pub(crate) fn pop(depth: usize) -> Option<Trace> {
    TRACES.with(|traces| {
        let mut traces = traces.borrow_mut();
        traces.truncate(depth);
        traces.pop()
    })
}

impl Trace {
    fn new(replicas: Option<usize>) -> Trace {
        let mut trace = Trace {
            id: NEXT_TRACE.fetch_add(1, Ordering::Relaxed),
            slots: Vec::new(),
            frames: Vec::new(),
            next_frame: 0,
            errors: Vec::new(),
            warnings: Vec::new(),
            scopes: Vec::new(),
            part: None,
            line: None,
            call: None,
            consumed: BTreeMap::new(),
            both: BTreeSet::new(),
            collecting: 0,
        };
        trace.open(FrameKind::Root, replicas.map(|replicas| (REPLICAS.to_string(), replicas)));
        trace
    }

    /// Opens a frame on top of the current one.
    pub fn open(&mut self, kind: FrameKind, axis: Option<(String, usize)>) {
        let id = self.next_frame;
        self.next_frame += 1;
        self.frames.push(Frame {
            id,
            kind,
            builder: Builder::new(),
            captures: Vec::new(),
            by_slot: BTreeMap::new(),
            log: Vec::new(),
            axis,
        });
    }

    /// Closes the current frame with these results, which may be handles of outer frames.
    pub fn close(&mut self, name: &str, results: &[Tensor]) -> Closed {
        let vars: Vec<Var> = results.iter().map(|&tensor| self.read(tensor).0).collect();
        let frame = self.frames.pop().expect("frames are opened and closed in pairs");
        let captures = frame.captures.iter().map(|&(tensor, _)| tensor).collect();
        Closed { func: frame.builder.finish(name, vars), captures }
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the root frame stays until the trace ends")
    }

    /// The builder of the current frame.
    pub fn builder(&mut self) -> &mut Builder {
        &mut self.top().builder
    }

    /// A new handle for a variable of the current frame.
    pub fn handle(&mut self, var: Var, poison: bool, loc: Loc) -> Tensor {
        let frame = self.top();
        let (frame, ty) = (frame.id, frame.builder.ty(var).clone());
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 tensors in a trace");
        self.slots.push(Slot { frame, var, ty, poison });
        Tensor::of(self.id, slot, loc)
    }

    /// Adds a parameter to the current frame.
    pub fn param(&mut self, ty: TensorType, poison: bool, loc: Loc) -> Tensor {
        let var = self.builder().param(ty);
        self.handle(var, poison, loc)
    }

    /// A stand-in of type `ty` for a result that could not be computed. Only in a trace with an error.
    pub fn poison(&mut self, ty: TensorType, loc: Loc) -> Tensor {
        self.param(ty, true, loc)
    }

    /// The slot of a handle. A handle of another trace, or of a closed frame, is an error and `None`.
    fn slot(&mut self, tensor: Tensor) -> Option<usize> {
        if tensor.trace_id() == self.id {
            let slot = tensor.slot() as usize;
            let frame = self.slots[slot].frame;
            if self.frames.iter().any(|open| open.id == frame) {
                return Some(slot);
            }
            let message = "a tensor was used after the closure that made it had ended: return it from the closure";
            self.error(TraceError::new("", message, tensor.made()).label("made here"));
        } else {
            let message = match tensor.trace_id() {
                0 => "a tensor was made outside of any trace: make it inside the traced function",
                _ => {
                    "a tensor of another trace was used: pass its value as an argument of this trace"
                }
            };
            self.error(TraceError::new("", message, tensor.made()).label("made here"));
        }
        None
    }

    /// The variable that a handle means in the current frame, capturing it if needed, and whether
    /// it is poisoned.
    pub fn read(&mut self, tensor: Tensor) -> (Var, bool) {
        let Some(slot) = self.slot(tensor) else {
            let var = self.builder().param(TensorType::scalar(DType::F32));
            return (var, true);
        };
        let Slot { frame: home, var, ty, poison } = &self.slots[slot];
        let frame = self.frames.last_mut().expect("the root frame stays until the trace ends");
        if *home == frame.id {
            return (*var, *poison);
        }
        let id = tensor.slot();
        if let Some(&var) = frame.by_slot.get(&id) {
            return (var, *poison);
        }
        let var = frame.builder.param(ty.clone());
        frame.by_slot.insert(id, var);
        frame.captures.push((tensor, var));
        (var, *poison)
    }

    /// The type of a handle; an f32 scalar for a foreign handle, with an error.
    pub fn ty(&mut self, tensor: Tensor) -> TensorType {
        match self.slot(tensor) {
            Some(slot) => self.slots[slot].ty.clone(),
            None => TensorType::scalar(DType::F32),
        }
    }

    /// True if a handle stands for a result that could not be computed.
    pub fn is_poison(&self, tensor: Tensor) -> bool {
        tensor.trace_id() != self.id || self.slots[tensor.slot() as usize].poison
    }

    /// Emits an op. If the op rejects its operands, this records an error at `loc`, unless an
    /// operand is already poisoned. The results are then poisoned stand-ins of the types `guess`.
    pub fn emit(
        &mut self,
        loc: Loc,
        op: OpRef,
        inputs: &[Tensor],
        guess: &[TensorType],
    ) -> Vec<Tensor> {
        let (vars, poisons): (Vec<Var>, Vec<bool>) =
            inputs.iter().map(|&tensor| self.read(tensor)).unzip();
        let poisoned = poisons.contains(&true);
        let mnemonic = op.mnemonic();
        let line = self.line.unwrap_or(loc);
        let named = self.part.map_or(line, |part| line.within(part)).called(self.call);
        self.builder().set_loc(named);
        match self.builder().try_emit(op, &vars) {
            Ok(outputs) => outputs.into_iter().map(|var| self.handle(var, poisoned, loc)).collect(),
            Err(error) => {
                if !poisoned {
                    self.error(TraceError::new(mnemonic, error.message, loc));
                }
                guess.iter().map(|ty| self.poison(ty.clone(), loc)).collect()
            }
        }
    }

    /// Copies a function's equations into the current frame.
    pub fn inline(&mut self, loc: Loc, func: &Func, arguments: &[Tensor]) -> Vec<Tensor> {
        let (vars, poisons): (Vec<Var>, Vec<bool>) =
            arguments.iter().map(|&tensor| self.read(tensor)).unzip();
        let poisoned = poisons.contains(&true);
        let results = self.builder().inline(func, &vars);
        results.into_iter().map(|var| self.handle(var, poisoned, loc)).collect()
    }

    /// Records an error, with its enclosing scopes. The same mistake is recorded once.
    pub fn error(&mut self, mut error: TraceError) {
        error.notes.extend(self.scopes.iter().rev().cloned());
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Records a warning once.
    pub fn warn(&mut self, op: &str, message: String, loc: Loc) {
        let notes = self.scopes.iter().rev().cloned().collect();
        let warning = Warning { op: op.to_string(), message, loc, notes };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// The number of errors so far; a combinator compares it before and after its closure.
    pub fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// The errors and warnings that were recorded.
    pub fn into_reports(self) -> (Vec<TraceError>, Vec<Warning>) {
        (self.errors, self.warnings)
    }

    /// Enters a named scope; returns the depth for [`Trace::pop_scope`].
    pub fn push_scope(&mut self, name: &str, loc: Loc) -> usize {
        self.scopes.push(Note { text: format!("in `{name}` called at"), loc });
        self.scopes.len() - 1
    }

    /// Leaves scopes down to a depth.
    pub fn pop_scope(&mut self, depth: usize) {
        self.scopes.truncate(depth);
    }

    /// Sets the line of the following equations, and returns the previous line.
    pub fn set_line(&mut self, line: Option<Loc>) -> Option<Loc> {
        std::mem::replace(&mut self.line, line)
    }

    /// Assigns the following equations to the invocation of a library function, and returns the
    /// previous invocation.
    pub fn set_call(&mut self, call: Option<Call>) -> Option<Call> {
        std::mem::replace(&mut self.call, call)
    }

    /// The invocation of a library function that is being traced.
    pub fn call(&self) -> Option<Call> {
        self.call
    }

    /// Names the following part of the program, and returns the previous name.
    pub fn set_part(&mut self, part: Option<&'static str>) -> Option<&'static str> {
        std::mem::replace(&mut self.part, part)
    }

    /// The extent of a named axis of the enclosing vmaps, the innermost of that name.
    pub fn axis_size(&self, name: &str) -> Option<usize> {
        self.frames
            .iter()
            .rev()
            .filter_map(|frame| frame.axis.as_ref())
            .find(|(axis, _)| axis == name)
            .map(|(_, size)| *size)
    }

    /// The names of the enclosing axes, the innermost first.
    pub fn axis_names(&self) -> Vec<String> {
        self.frames.iter().rev().filter_map(|frame| Some(frame.axis.as_ref()?.0.clone())).collect()
    }

    /// Records that a key's numbers are used: a second use, or a use in a body that repeats, is an
    /// error.
    pub fn consume(&mut self, key: Tensor, loc: Loc) {
        if key.trace_id() != self.id || self.is_poison(key) {
            return;
        }
        let home = self.slots[key.slot() as usize].frame;
        if let Some(&first) = self.consumed.get(&key.slot()) {
            if first == loc {
                // The same line twice is a Rust loop or a helper: the columns would not distinguish
                // the uses.
                self.error(TraceError::new("", "key used twice at the same place: split it", loc));
            } else {
                self.error(TraceError::new(
                    "",
                    format!("key used twice: first at {first}, again at {loc}"),
                    Loc::NONE,
                ));
            }
            return;
        }
        self.consumed.insert(key.slot(), loc);
        let inside = self.frames.iter().rev().take_while(|frame| frame.id != home);
        let repeats = inside.filter_map(|frame| match frame.kind {
            FrameKind::Repeats(what) => Some(what),
            FrameKind::Root | FrameKind::Once(_) => None,
        });
        if let Some(what) = repeats.last() {
            let message = format!(
                "a key from outside is used in the body of `{what}`: every round draws the same numbers; pass `key.split_n(n)` to `{what}`, carry it, \
                 or `fold_in` the index (`key.again()` if the same numbers are meant)"
            );
            self.error(TraceError::new("key", message, loc).note("key made at", key.made()));
        }
    }

    /// The keys consumed so far, to be put back by [`Trace::restore_consumed`] before another branch.
    pub fn consumed(&self) -> BTreeMap<u32, Loc> {
        self.consumed.clone()
    }

    /// Replaces the consumed keys and returns the previous keys.
    pub fn restore_consumed(&mut self, consumed: BTreeMap<u32, Loc>) -> BTreeMap<u32, Loc> {
        std::mem::replace(&mut self.consumed, consumed)
    }

    /// Adds keys that another branch consumed.
    pub fn merge_consumed(&mut self, consumed: BTreeMap<u32, Loc>) {
        self.consumed.extend(consumed);
    }

    /// True inside a `collect`: outside, nothing is logged.
    pub fn is_collecting(&self) -> bool {
        self.collecting > 0
    }

    /// Adds entries to the log of the current frame.
    pub fn log(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.top().log.extend(entries);
    }

    /// Begins to collect the log; returns the argument of [`Trace::end_log`].
    pub fn begin_log(&mut self) -> usize {
        self.collecting += 1;
        self.top().log.len()
    }

    /// Takes the entries that were logged in this frame since [`Trace::begin_log`].
    pub fn end_log(&mut self, before: usize) -> Vec<Entry> {
        self.collecting -= 1;
        self.top().log.split_off(before)
    }

    /// Takes the log of the current frame, which is about to close.
    pub fn take_log(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.top().log)
    }

    /// Allows the `cond` at this place to run both branches under vmap without a warning.
    pub fn allow_both(&mut self, loc: Loc) {
        self.both.insert(loc);
    }

    /// True if [`Trace::allow_both`] was called for this place.
    pub fn allows_both(&self, loc: Loc) -> bool {
        self.both.contains(&loc)
    }
}
