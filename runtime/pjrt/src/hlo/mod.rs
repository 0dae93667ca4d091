//! Optimized HLO, the form of a module that XLA runs: for counting and for reading.

mod peak;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use podracer_compiler::{DType, TensorType};
use prost::Message;

use crate::RuntimeError;
use crate::proto::{
    HloComputationProto, HloInstructionProto, HloModuleProto, HloModuleProtoWithConfig, ShapeProto,
};

pub use peak::LiveBuffer;
pub use work::{SourceLine, Work};

/// An optimized program, as XLA runs it.
///
/// Its `Display` is a listing in the manner of XLA's own HLO text, without attributes that podracer does not read; the complete
/// text is what `XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_text` leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub struct HloModule {
    module: HloModuleProto,
}

/// A collective: an exchange between devices. Its `Display` shows all but the opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The opcode: `all-reduce`, `all-gather`.
    pub opcode: String,
    /// Number of tensors that are exchanged together.
    pub tensors: usize,
    /// Number of their elements, on each device.
    pub elements: usize,
    /// Number of `while` loops around it.
    pub loops: usize,
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tensors: {}, elements: {}, loops around it: {}",
            self.tensors, self.elements, self.loops
        )
    }
}

/// A `while` loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The instruction's name.
    pub name: String,
    /// Number of its iterations, where XLA knows it when it compiles. A GPU's host thread reads the condition of other loops
    /// back in every iteration.
    pub iterations: Option<u64>,
}

impl HloModule {
    /// Reads a serialized `HloModuleProto`, as JAX gives it for a compiled function.
    ///
    /// # Errors
    /// [`RuntimeError::Serialized`].
    pub fn read(bytes: &[u8]) -> Result<Self, RuntimeError> {
        Self::decode(bytes, "hlo")
    }

    pub(crate) fn decode(bytes: &[u8], format: &str) -> Result<Self, RuntimeError> {
        let unreadable = |problem: String| {
            RuntimeError::Serialized(format!(
                "the optimized program in format `{format}` is not readable: {problem}"
            ))
        };
        let module = match format {
            "hlo_with_config" => HloModuleProtoWithConfig::decode(bytes)
                .map(|with| with.hlo_module.unwrap_or_default()),
            "hlo" => HloModuleProto::decode(bytes),
            _ => return Err(unreadable("expected `hlo_with_config` or `hlo`".to_owned())),
        };
        module.map(|module| Self { module }).map_err(|error| unreadable(error.to_string()))
    }

    /// The module's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.module.name
    }

    /// Instructions by opcode (`fusion`, `while`, `all-reduce`, `dot`), those inside fusions included.
    #[must_use]
    pub fn instructions(&self) -> BTreeMap<String, usize> {
        count(self.all())
    }

    fn all(&self) -> impl Iterator<Item = &HloInstructionProto> {
        self.module.computations.iter().flat_map(|computation| &computation.instructions)
    }

    /// Instructions by opcode, without instructions inside fusions: everything that is launched,
    /// called or looped over.
    #[must_use]
    pub fn launched(&self) -> BTreeMap<String, usize> {
        let fused: Vec<i64> = (self.all())
            .filter(|one| one.opcode == "fusion")
            .flat_map(|one| one.called_computation_ids.clone())
            .collect();
        let launched =
            self.module.computations.iter().filter(|computation| !fused.contains(&computation.id));
        count(launched.flat_map(|computation| &computation.instructions))
    }

    /// The names of the instructions that exchange data with the host while the program runs: none, in a program that stays on
    /// its devices.
    #[must_use]
    pub fn host_transfers(&self) -> Vec<String> {
        let opcodes = ["infeed", "outfeed"];
        self.all()
            .filter(|one| one.is_host_transfer || opcodes.contains(&one.opcode.as_str()))
            .map(|one| one.name.clone())
            .collect()
    }

    /// The exchanges between devices, in the order of the computations.
    #[must_use]
    pub fn collectives(&self) -> Vec<Collective> {
        const OPCODES: [&str; 8] = [
            "all-reduce",
            "all-reduce-start",
            "all-gather",
            "all-gather-start",
            "all-to-all",
            "collective-permute",
            "collective-permute-start",
            "reduce-scatter",
        ];
        let loops = self.loops_around();
        let mut found = Vec::new();
        for computation in &self.module.computations {
            let types: BTreeMap<i64, &ShapeProto> = computation
                .instructions
                .iter()
                .filter_map(|one| Some((one.id, one.shape.as_ref()?)))
                .collect();
            for one in &computation.instructions {
                if !OPCODES.contains(&one.opcode.as_str()) {
                    continue;
                }
                let operands = one.operand_ids.iter().filter_map(|id| types.get(id));
                found.push(Collective {
                    opcode: one.opcode.trim_end_matches("-start").to_owned(),
                    tensors: one.operand_ids.len(),
                    elements: operands.map(|shape| elements(shape)).sum(),
                    loops: loops.get(&computation.id).copied().unwrap_or(0),
                });
            }
        }
        found
    }

    /// The `while` loops, in the order of the computations.
    #[must_use]
    pub fn loops(&self) -> Vec<Loop> {
        let loops = self.all().filter(|one| one.opcode == "while");
        loops.map(|one| Loop { name: one.name.clone(), iterations: iterations(one) }).collect()
    }

    /// Number of kernels per execution on a GPU, including copies. These are the instructions that
    /// compute, multiplied by the iterations of the loops around them. A loop of unknown length
    /// counts as one iteration. A `conditional` counts the branch with the most kernels.
    #[must_use]
    pub fn kernels(&self) -> u64 {
        let computations = self.module.computations.iter().map(|one| (one.id, one)).collect();
        kernels_of(self.module.entry_computation_id, &computations, &mut BTreeMap::new())
    }

    /// For each computation the number of `while` loops around it.
    fn loops_around(&self) -> BTreeMap<i64, usize> {
        let computations: BTreeMap<i64, &HloComputationProto> =
            self.module.computations.iter().map(|one| (one.id, one)).collect();
        let mut loops = BTreeMap::new();
        let mut open = vec![(self.module.entry_computation_id, 0)];
        while let Some((id, depth)) = open.pop() {
            // One that is called from several places counts for the innermost.
            if loops.get(&id).is_some_and(|&known| known >= depth) {
                continue;
            }
            loops.insert(id, depth);
            for one in computations.get(&id).iter().flat_map(|one| &one.instructions) {
                let inside = depth + usize::from(one.opcode == "while");
                open.extend(one.called_computation_ids.iter().map(|&called| (called, inside)));
            }
        }
        loops
    }

    /// Number of arguments that give their memory to a result.
    #[must_use]
    pub fn aliased_arguments(&self) -> usize {
        let alias = self.module.input_output_alias.iter();
        // Many arguments may have become one tuple.
        let arguments: BTreeSet<(i64, &[i64])> = alias
            .flat_map(|alias| &alias.entries)
            .map(|entry| (entry.parameter_number, entry.parameter_shape_index.as_slice()))
            .collect();
        arguments.len()
    }

    /// The types of the program's arguments, where podracer has them all.
    pub(crate) fn arguments(&self) -> Option<Vec<TensorType>> {
        self.module.host_program_shape.as_ref()?.parameters.iter().map(tensor_type).collect()
    }
}

/// Iterations of a `while` loop, where XLA knows them.
fn iterations(one: &HloInstructionProto) -> Option<u64> {
    let config: serde_json::Value = serde_json::from_slice(&one.backend_config).ok()?;
    // Numbers of 64 bits are strings in the JSON of protocol buffers.
    let count = &config["known_trip_count"]["n"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok())
}

/// Opcodes that hand values on, or wait for a kernel that is counted where it starts.
const FREE: [&str; 9] = [
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "after-all",
    "partition-id",
    "replica-id",
    "opt-barrier",
];

fn kernels_of(
    id: i64,
    computations: &BTreeMap<i64, &HloComputationProto>,
    known: &mut BTreeMap<i64, u64>,
) -> u64 {
    if let Some(&kernels) = known.get(&id) {
        return kernels;
    }
    let mut sum = 0u64;
    for one in computations.get(&id).iter().flat_map(|one| &one.instructions) {
        let called = |id: &i64| kernels_of(*id, computations, known);
        let kernels = match one.opcode.as_str() {
            // Body, then condition, which is not run if the number of iterations is known.
            "while" => match iterations(one) {
                Some(count) => {
                    count.saturating_mul(one.called_computation_ids.first().map_or(0, called))
                }
                None => one.called_computation_ids.iter().map(called).sum(),
            },
            "conditional" => one.called_computation_ids.iter().map(called).max().unwrap_or(0),
            "call" | "async-start" => one.called_computation_ids.iter().map(called).sum(),
            opcode if FREE.contains(&opcode) || opcode.ends_with("-done") => 0,
            _ => 1,
        };
        sum = sum.saturating_add(kernels);
    }
    known.insert(id, sum);
    sum
}

fn count<'a>(
    instructions: impl Iterator<Item = &'a HloInstructionProto>,
) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for instruction in instructions {
        *counts.entry(instruction.opcode.clone()).or_insert(0) += 1;
    }
    counts
}

/// XLA's `PrimitiveType`: the name in HLO text, and podracer's type.
fn element(number: i32) -> (&'static str, Option<DType>) {
    match number {
        1 => ("pred", Some(DType::Bool)),
        2 => ("s8", Some(DType::I8)),
        3 => ("s16", Some(DType::I16)),
        4 => ("s32", Some(DType::I32)),
        5 => ("s64", Some(DType::I64)),
        6 => ("u8", Some(DType::U8)),
        7 => ("u16", Some(DType::U16)),
        8 => ("u32", Some(DType::U32)),
        9 => ("u64", Some(DType::U64)),
        10 => ("f16", Some(DType::F16)),
        11 => ("f32", Some(DType::F32)),
        12 => ("f64", Some(DType::F64)),
        13 => ("tuple", None),
        14 => ("opaque", None),
        15 => ("c64", None),
        16 => ("bf16", Some(DType::BF16)),
        17 => ("token", None),
        18 => ("c128", None),
        _ => ("other", None),
    }
}

fn tensor_type(shape: &ShapeProto) -> Option<TensorType> {
    let dims: Option<Vec<usize>> =
        shape.dimensions.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    Some(TensorType::new(element(shape.element_type).1?, dims?))
}

fn elements(shape: &ShapeProto) -> usize {
    shape.dimensions.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).product()
}

fn shape_text(shape: &ShapeProto) -> String {
    const TUPLE: i32 = 13;
    if shape.element_type == TUPLE {
        return format!(
            "({})",
            shape.tuple_shapes.iter().map(shape_text).collect::<Vec<_>>().join(", ")
        );
    }
    let dims = shape.dimensions.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    format!("{}[{dims}]", element(shape.element_type).0)
}

impl fmt::Display for HloModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "HloModule {}", self.module.name)?;
        let computations: BTreeMap<i64, &str> =
            self.module.computations.iter().map(|one| (one.id, one.name.as_str())).collect();
        for computation in &self.module.computations {
            let entry =
                if computation.id == self.module.entry_computation_id { "ENTRY " } else { "" };
            writeln!(f, "\n{entry}%{} {{", computation.name)?;
            print_instructions(f, computation, &computations)?;
            writeln!(f, "}}")?;
        }
        Ok(())
    }
}

fn print_instructions(
    f: &mut fmt::Formatter<'_>,
    computation: &HloComputationProto,
    computations: &BTreeMap<i64, &str>,
) -> fmt::Result {
    let names: BTreeMap<i64, &str> =
        computation.instructions.iter().map(|one| (one.id, one.name.as_str())).collect();
    let list = |ids: &[i64], names: &BTreeMap<i64, &str>| {
        let name = |id: &i64| format!("%{}", names.get(id).copied().unwrap_or("?"));
        ids.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    for one in &computation.instructions {
        let root = if one.id == computation.root_id { "ROOT " } else { "" };
        let shape = one.shape.as_ref().map(shape_text).unwrap_or_default();
        let operands = match one.opcode.as_str() {
            "parameter" => one.parameter_number.to_string(),
            _ => list(&one.operand_ids, &names),
        };
        let mut line = format!("  {root}%{} = {shape} {}({operands})", one.name, one.opcode);
        if !one.dimensions.is_empty() {
            let dims = one.dimensions.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            write!(line, ", dimensions={{{dims}}}")?;
        }
        if one.opcode == "get-tuple-element" {
            write!(line, ", index={}", one.tuple_index)?;
        }
        if !one.fusion_kind.is_empty() {
            write!(line, ", kind={}", one.fusion_kind)?;
        }
        if !one.custom_call_target.is_empty() {
            write!(line, ", custom_call_target=\"{}\"", one.custom_call_target)?;
        }
        if let Some(count) = iterations(one) {
            write!(line, ", iterations={count}")?;
        }
        if !one.called_computation_ids.is_empty() {
            write!(line, ", calls={}", list(&one.called_computation_ids, computations))?;
        }
        writeln!(f, "{line}")?;
    }
    Ok(())
}
