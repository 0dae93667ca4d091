//! The work of a program: the operations of each instruction, the number of its executions, and the
//! lines of the source that cause it.

use std::collections::BTreeMap;
use std::fmt;

use super::{FREE, HloModule, element, elements, iterations};
use crate::proto::{HloComputationProto, HloInstructionProto, ShapeProto};

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The file, as the compiler of the source names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// An instruction that the device runs by itself: a kernel, a product of matrices, a copy, a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The instruction's name.
    pub name: String,
    /// The opcode: `fusion`, `dot`, `while`.
    pub opcode: String,
    /// The lines that it computes, each with its share of the instruction's time; shares sum to 1, or to 0 where XLA names no line. In a kernel of
    /// several lines they are estimates from the number and kind of its operations.
    pub lines: Vec<(SourceLine, f64)>,
    /// The number of runs per execution of the program; a loop of unknown length counts as one
    /// iteration.
    pub executions: f64,
    /// True for an instruction that is launched as a kernel. False for loops and calls, which
    /// contain kernels of their own, and for instructions that only pass values on.
    pub kernel: bool,
    /// Arithmetic operations of one execution: one an element, two for each factor of a product of matrices.
    pub operations: f64,
    /// Bytes of operands and results.
    pub bytes: f64,
}

impl HloModule {
    /// The work of every instruction outside of kernels.
    #[must_use]
    pub fn work(&self) -> Vec<Work> {
        let program = Program::new(self);
        let launched = program.executions(self.module.entry_computation_id);
        let computations = launched.into_iter().filter_map(|(id, executions)| {
            Some((program.computations.get(&id)?.instructions.iter(), executions))
        });
        computations
            .flat_map(|(all, executions)| all.map(move |one| (one, executions)))
            .map(|(one, executions)| program.work(one, executions))
            .collect()
    }
}

/// A module's computations, and the lines of its instructions.
pub(super) struct Program<'m> {
    pub(super) computations: BTreeMap<i64, &'m HloComputationProto>,
    /// Lines of instructions, by name.
    pub(super) lines: BTreeMap<&'m str, SourceLine>,
    /// Operands of instructions, by name.
    pub(super) operands: BTreeMap<&'m str, Vec<&'m HloInstructionProto>>,
}

/// Opcodes with called computations that are launched instruction by instruction, and not as a part
/// of one kernel.
const CONTROL: [&str; 4] = ["while", "conditional", "call", "async-start"];

impl<'m> Program<'m> {
    pub(super) fn new(module: &'m HloModule) -> Self {
        let computations: BTreeMap<i64, _> =
            module.module.computations.iter().map(|one| (one.id, one)).collect();
        let (mut lines, mut operands) = (BTreeMap::new(), BTreeMap::new());
        for computation in &module.module.computations {
            let by_id: BTreeMap<i64, &HloInstructionProto> =
                computation.instructions.iter().map(|one| (one.id, one)).collect();
            for one in &computation.instructions {
                let of = one.operand_ids.iter().filter_map(|id| by_id.get(id).copied());
                operands.insert(one.name.as_str(), of.collect::<Vec<_>>());
                lines.extend(own_line(one).map(|line| (one.name.as_str(), line)));
            }
            // An instruction that XLA added gets the line of its reader, or otherwise the line of
            // its operands.
            for one in computation.instructions.iter().rev() {
                let Some(line) = lines.get(one.name.as_str()).cloned() else { continue };
                for operand in &operands[one.name.as_str()] {
                    if !FREE.contains(&operand.opcode.as_str()) {
                        lines.entry(&operand.name).or_insert_with(|| line.clone());
                    }
                }
            }
            for one in &computation.instructions {
                let given = operands[one.name.as_str()].iter();
                let mut given = given.filter_map(|operand| lines.get(operand.name.as_str()));
                if let (false, Some(line)) = (lines.contains_key(one.name.as_str()), given.next()) {
                    lines.insert(&one.name, line.clone());
                }
            }
        }
        Program { computations, lines, operands }
    }

    /// Executions of each computation that is not a part of a kernel, in one execution of the program.
    fn executions(&self, entry: i64) -> BTreeMap<i64, f64> {
        let mut executions = BTreeMap::new();
        let mut open = vec![(entry, 1.0)];
        while let Some((id, times)) = open.pop() {
            *executions.entry(id).or_insert(0.0) += times;
            for one in self.computations.get(&id).iter().flat_map(|one| &one.instructions) {
                if CONTROL.contains(&one.opcode.as_str()) && !is_kernel(one) {
                    let times = times * turns(one);
                    open.extend(one.called_computation_ids.iter().map(|&called| (called, times)));
                }
            }
        }
        executions
    }

    fn work(&self, one: &HloInstructionProto, executions: f64) -> Work {
        let mut costs = BTreeMap::new();
        let whole = !CONTROL.contains(&one.opcode.as_str()) || is_kernel(one);
        match whole {
            true => self.spread(one, 1.0, None, &mut costs),
            // The time that a loop itself takes, apart from its body.
            false => costs.extend(self.lines.get(one.name.as_str()).map(|line| (line, 1.0))),
        }
        if costs.values().sum::<f64>() <= 0.0 {
            costs = self.lines.get(one.name.as_str()).map(|line| (line, 1.0)).into_iter().collect();
        }
        let all: f64 = costs.values().sum();
        let lines = costs.into_iter().filter(|(_, cost)| *cost > 0.0);
        let touched = self.operands[one.name.as_str()].iter().filter_map(|one| one.shape.as_ref());
        let kernel =
            whole && !FREE.contains(&one.opcode.as_str()) && !one.opcode.ends_with("-done");
        Work {
            name: one.name.clone(),
            opcode: one.opcode.clone(),
            lines: lines.map(|(line, cost)| (line.clone(), cost / all)).collect(),
            executions,
            kernel,
            operations: if whole { self.operations(one) } else { 0.0 },
            bytes: match kernel {
                true => touched.chain(one.shape.as_ref()).map(bytes).sum(),
                false => 0.0,
            },
        }
    }

    /// Adds the cost of an instruction, and of everything that it calls, to its lines. `around` is
    /// the line of its caller.
    fn spread<'a>(
        &'a self,
        one: &HloInstructionProto,
        times: f64,
        around: Option<&'a SourceLine>,
        costs: &mut BTreeMap<&'a SourceLine, f64>,
    ) {
        let line = self.lines.get(one.name.as_str()).or(around);
        if let Some(line) = line {
            *costs.entry(line).or_insert(0.0) +=
                times * cost(one, &self.operands[one.name.as_str()]);
        }
        let times = times * turns(one) * calls(one, &self.operands[one.name.as_str()]);
        for called in self.called(one) {
            self.spread(called, times, line, costs);
        }
    }

    fn operations(&self, one: &HloInstructionProto) -> f64 {
        let operands = &self.operands[one.name.as_str()];
        let times = turns(one) * calls(one, operands);
        operations(one, operands)
            + times * self.called(one).map(|called| self.operations(called)).sum::<f64>()
    }

    /// The instructions that one runs.
    fn called(&self, one: &HloInstructionProto) -> impl Iterator<Item = &'m HloInstructionProto> {
        let called = one.called_computation_ids.iter();
        called.filter_map(|id| self.computations.get(id)).flat_map(|one| &one.instructions)
    }
}

/// The line that the source gave the instruction.
fn own_line(one: &HloInstructionProto) -> Option<SourceLine> {
    let place = one.metadata.as_ref().filter(|place| !place.source_file.is_empty())?;
    Some(SourceLine {
        file: place.source_file.clone(),
        line: u32::try_from(place.source_line).ok()?,
    })
}

/// True for a call that XLA's CPU compiler makes one kernel of, with all that is inside.
fn is_kernel(one: &HloInstructionProto) -> bool {
    let attributes = one.frontend_attributes.as_ref();
    let small = attributes.and_then(|attributes| attributes.map.get("xla_cpu_small_call"));
    one.opcode == "call" && small.is_some_and(|small| small == "true")
}

/// Iterations of a loop; 1 for all other instructions.
fn turns(one: &HloInstructionProto) -> f64 {
    match one.opcode.as_str() {
        "while" => iterations(one).map_or(1.0, |turns| turns as f64),
        _ => 1.0,
    }
}

/// The number of times that an instruction runs its per-element computation, such as a reduction's
/// sum.
fn calls(one: &HloInstructionProto, operands: &[&HloInstructionProto]) -> f64 {
    let first = operands.first().map_or(0.0, |operand| extent(operand));
    match one.opcode.as_str() {
        "reduce" | "all-reduce" | "all-reduce-start" | "reduce-scatter" | "select-and-scatter" => {
            first
        }
        "map" => extent(one),
        // Not more than the window reads at once, which is enough for the DSL's prefix sums.
        "reduce-window" => first * (first + 1.0).log2(),
        "scatter" => operands.last().map_or(0.0, |update| extent(update)),
        "sort" => first * (first + 1.0).log2(),
        _ => 1.0,
    }
}

/// The time of an instruction without its called computations, in units of the addition of an
/// element.
fn cost(one: &HloInstructionProto, operands: &[&HloInstructionProto]) -> f64 {
    let elements = extent(one);
    let each = match one.opcode.as_str() {
        "reduce" | "map" | "reduce-window" | "select-and-scatter" | "sort" | "fusion" | "while"
        | "call" | "conditional" => {
            return 0.0;
        }
        // Products use the units of vectors to the full.
        "dot" | "convolution" => return operations(one, operands) / 4.0,
        "dynamic-update-slice" => return operands.get(1).map_or(0.0, |update| extent(update)),
        "scatter" => return 4.0 * operands.last().map_or(0.0, |update| extent(update)),
        "gather" => 4.0,
        "divide" | "remainder" | "sqrt" | "rsqrt" => 6.0,
        "exponential"
        | "exponential-minus-one"
        | "log"
        | "log-plus-one"
        | "tanh"
        | "logistic"
        | "sine"
        | "cosine"
        | "cbrt"
        | "erf" => 20.0,
        "tan" | "atan2" | "power" | "rng-bit-generator" => 40.0,
        opcode if FREE.contains(&opcode) => 0.0,
        _ => 1.0,
    };
    each * elements
}

/// Arithmetic operations of an instruction without its called computations.
fn operations(one: &HloInstructionProto, operands: &[&HloInstructionProto]) -> f64 {
    const MOVES: [&str; 18] = [
        "reduce",
        "map",
        "reduce-window",
        "select-and-scatter",
        "sort",
        "fusion",
        "while",
        "call",
        "conditional",
        "copy",
        "broadcast",
        "concatenate",
        "slice",
        "transpose",
        "reshape",
        "pad",
        "reverse",
        "iota",
    ];
    const TOUCHES: [&str; 6] =
        ["gather", "scatter", "dynamic-slice", "dynamic-update-slice", "copy-start", "custom-call"];
    match one.opcode.as_str() {
        "dot" => {
            let numbers = one.dot_dimension_numbers.iter();
            let summed = numbers.flat_map(|numbers| &numbers.lhs_contracting_dimensions);
            let left = operands.first().and_then(|left| left.shape.as_ref());
            let extents =
                summed.filter_map(|&one| left?.dimensions.get(usize::try_from(one).ok()?));
            2.0 * extent(one) * extents.map(|&extent| extent as f64).product::<f64>()
        }
        // Each output channel has its own part of the kernel; the kernel's second to last dimension
        // is the channel dimension.
        "convolution" => {
            let kernel = operands.get(1).and_then(|kernel| kernel.shape.as_ref());
            let kernel = kernel.map_or(0.0, |kernel| elements(kernel) as f64);
            let channels = one.shape.as_ref().and_then(|shape| shape.dimensions.last());
            2.0 * extent(one) * kernel / channels.map_or(1.0, |&channels| channels as f64).max(1.0)
        }
        opcode
            if MOVES.contains(&opcode) || TOUCHES.contains(&opcode) || FREE.contains(&opcode) =>
        {
            0.0
        }
        _ => extent(one),
    }
}

/// Number of elements in the result, summed over the parts of a tuple.
fn extent(one: &HloInstructionProto) -> f64 {
    fn of(shape: &ShapeProto) -> f64 {
        match &shape.tuple_shapes[..] {
            [] => elements(shape) as f64,
            parts => parts.iter().map(of).sum(),
        }
    }
    one.shape.as_ref().map_or(0.0, of)
}

fn bytes(shape: &ShapeProto) -> f64 {
    match &shape.tuple_shapes[..] {
        [] => {
            elements(shape) as f64
                * element(shape.element_type).1.map_or(0.0, |ty| ty.size() as f64)
        }
        parts => parts.iter().map(bytes).sum(),
    }
}
