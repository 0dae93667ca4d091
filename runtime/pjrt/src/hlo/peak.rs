//! The buffers that are alive when a program needs most memory, and the lines that make them.

use std::collections::BTreeMap;

use super::work::{Program, SourceLine};
use super::{HloModule, shape_text};
use crate::RuntimeError;
use crate::proto::{HloInstructionProto, ShapeProto};

/// A buffer that is alive when the program needs most memory.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveBuffer {
    /// Size in bytes.
    pub bytes: u64,
    /// XLA's name of the value, with the number of its part where it is one of a tuple.
    pub value: String,
    /// The type in XLA's manner, such as `f32[512,64]`.
    pub ty: String,
    /// The instruction that makes the value. For a part of a loop's state, it is the instruction
    /// that makes the next iteration's value.
    pub made_by: String,
    /// The line of that instruction.
    pub line: Option<SourceLine>,
    /// True for an argument of the program that no iteration of a loop replaces.
    pub argument: bool,
}

impl HloModule {
    /// The buffers that are alive when the program needs most memory, the largest first.
    /// `assignment` is the buffer assignment that XLA writes with the program into the folder of
    /// its option `xla_dump_to`. The file name ends in `buffer-assignment.txt`.
    ///
    /// # Errors
    /// [`RuntimeError::Serialized`] for a text without that list.
    pub fn peak(&self, assignment: &str) -> Result<Vec<LiveBuffer>, RuntimeError> {
        let origins = Origins::new(self);
        let mut lines = assignment.lines().map(str::trim);
        let unreadable =
            |what: String| RuntimeError::Serialized(format!("XLA's list of buffers {what}"));
        lines
            .find(|line| line.starts_with("Live ranges at") && line.ends_with("(peak):"))
            .ok_or_else(|| unreadable("has no peak".to_owned()))?;
        let mut buffers = Vec::new();
        for line in lines.take_while(|line| line.contains(" bytes (cumulative")) {
            let read = value(line).ok_or_else(|| unreadable(format!("has the line `{line}`")));
            let (name, part, bytes) = read?;
            buffers.push(origins.buffer(name, part, bytes));
        }
        buffers.sort_by_key(|buffer| std::cmp::Reverse(buffer.bytes));
        Ok(buffers)
    }
}

/// A line such as `while.39{14}: 8192 bytes (cumulative: 384536 bytes)`.
fn value(line: &str) -> Option<(&str, Option<usize>, u64)> {
    let (value, rest) = line.split_once(": ")?;
    let (name, part) = value.strip_suffix('}')?.split_once('{')?;
    let bytes = rest.split(' ').next()?.parse().ok()?;
    // A part of a part is rare, and as good as its outer one.
    let part = part.split(',').next().filter(|part| !part.is_empty());
    Some((name, part.map(str::parse).transpose().ok()?, bytes))
}

/// Instructions of a module, to find those that make a value.
struct Origins<'m> {
    program: Program<'m>,
    /// The number of its computation, and the instruction, by name.
    instructions: BTreeMap<&'m str, (i64, &'m HloInstructionProto)>,
    /// The instruction that calls a computation.
    callers: BTreeMap<i64, &'m HloInstructionProto>,
}

impl<'m> Origins<'m> {
    fn new(module: &'m HloModule) -> Self {
        let (mut instructions, mut callers) = (BTreeMap::new(), BTreeMap::new());
        for computation in &module.module.computations {
            for one in &computation.instructions {
                instructions.insert(one.name.as_str(), (computation.id, one));
                callers.extend(one.called_computation_ids.iter().map(|&called| (called, one)));
            }
        }
        Origins { program: Program::new(module), instructions, callers }
    }

    fn buffer(&self, name: &str, part: Option<usize>, bytes: u64) -> LiveBuffer {
        let found = self.instructions.get(name).map(|(_, one)| *one);
        let shape = found.and_then(|one| of_part(one.shape.as_ref()?, part));
        let made_by = found.map(|one| self.origin(one, part));
        LiveBuffer {
            bytes,
            value: part.map_or_else(|| name.to_owned(), |part| format!("{name}{{{part}}}")),
            ty: shape.map(shape_text).unwrap_or_default(),
            made_by: made_by.map_or(name, |one| one.name.as_str()).to_owned(),
            line: made_by.and_then(|one| self.program.lines.get(one.name.as_str()).cloned()),
            argument: made_by.is_some_and(|one| one.opcode == "parameter"),
        }
    }

    /// The instruction that makes a value, or a part of a tuple.
    fn origin(&self, one: &'m HloInstructionProto, part: Option<usize>) -> &'m HloInstructionProto {
        let (mut one, mut part) = (one, part);
        // The bound exceeds the nesting of loops: a value that circulates has no maker.
        for _ in 0..64 {
            let Some((next, of_next)) = self.step(one, part) else { break };
            (one, part) = (next, of_next);
        }
        one
    }

    fn step(
        &self,
        one: &'m HloInstructionProto,
        part: Option<usize>,
    ) -> Option<(&'m HloInstructionProto, Option<usize>)> {
        let operands = &self.program.operands[one.name.as_str()];
        match (one.opcode.as_str(), part) {
            ("get-tuple-element", _) => {
                Some((operands.first()?, usize::try_from(one.tuple_index).ok()))
            }
            ("tuple", Some(part)) => Some((operands.get(part)?, None)),
            ("bitcast" | "copy", _) => Some((operands.first()?, part)),
            ("while" | "call", Some(part)) => {
                Some((self.root(*one.called_computation_ids.first()?)?, Some(part)))
            }
            ("parameter", _) => {
                let (computation, _) = self.instructions.get(one.name.as_str())?;
                let caller = self.callers.get(computation)?;
                let given = &self.program.operands[caller.name.as_str()];
                match (caller.opcode.as_str(), part) {
                    ("while", Some(part)) => {
                        let next = self.root(*caller.called_computation_ids.first()?)?;
                        let handed = self.program.operands[next.name.as_str()].get(part)?;
                        let same = handed.opcode == "get-tuple-element"
                            && usize::try_from(handed.tuple_index) == Ok(part)
                            && self.program.operands[handed.name.as_str()]
                                .first()
                                .is_some_and(|from| from.opcode == "parameter");
                        match same {
                            true => Some((given.first()?, Some(part))),
                            false => Some((handed, None)),
                        }
                    }
                    ("call", _) => {
                        Some((given.get(usize::try_from(one.parameter_number).ok()?)?, part))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn root(&self, computation: i64) -> Option<&'m HloInstructionProto> {
        let computation = self.program.computations.get(&computation)?;
        computation.instructions.iter().find(|one| one.id == computation.root_id)
    }
}

fn of_part(shape: &ShapeProto, part: Option<usize>) -> Option<&ShapeProto> {
    part.map_or(Some(shape), |part| shape.tuple_shapes.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_list_is_read() {
        let line = "wide.arg_tuple.7{14}: 36620 bytes (cumulative: 298764 bytes)";
        assert_eq!(value(line), Some(("wide.arg_tuple.7", Some(14), 36620)));
        assert_eq!(value("dot.1{}: 8 bytes (cumulative: 8 bytes)"), Some(("dot.1", None, 8)));
        assert_eq!(
            value("while.3{1,0}: 8 bytes (cumulative: 8 bytes)"),
            Some(("while.3", Some(1), 8))
        );
        for wrong in ["dot.1: 8 bytes", "dot.1{x}: 8 bytes", "dot.1{}: many bytes", ""] {
            assert_eq!(value(wrong), None, "{wrong}");
        }
    }
}
