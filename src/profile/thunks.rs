//! The instruction that a thread computes, found from its stack.
//!
//! XLA's CPU client runs a program as a list of thunks: objects with the names of an instruction
//! and its module. While a thunk runs, the address of its object is in registers and on the stack,
//! whatever code runs inside: a kernel, Eigen, oneDNN, a copy, the allocator. The innermost address
//! that occurs twice in a row is the instruction. A single occurrence was left by an earlier thunk,
//! in a part of the stack that was not overwritten since. An object counts as a thunk if its first
//! word points into the plugin's file, as the address of a virtual table does, and two strings with
//! the names of an instruction and its module follow.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use podracer_sampler::{Memory, Region};

use super::{Compiled, Instruction};

/// Number of words of an object that are searched for the names.
const OBJECT_WORDS: usize = 16;
/// Number of words of a string: the address of its characters, their number, and 16 bytes for short
/// strings.
const STRING_WORDS: usize = 4;
/// Longest name that can be found.
const LONGEST: usize = 256;

pub(super) struct Thunks {
    /// Address ranges of the plugin's file.
    plugin: Vec<Range<u64>>,
    /// Instructions by the names of module and instruction.
    names: HashMap<(String, String), Instruction>,
    /// The instruction of an object by its address; `None` for objects that are not thunks.
    known: HashMap<u64, Option<Instruction>>,
}

impl Thunks {
    pub(super) fn new(regions: &[Region], library: &Path, programs: &[Compiled]) -> Self {
        let of_plugin = regions.iter().filter(|region| Path::new(&region.path) == library);
        let names = programs.iter().enumerate().flat_map(|(program, compiled)| {
            compiled.work.iter().enumerate().map(move |(number, work)| {
                let names = (compiled.module.clone(), work.name.clone());
                (names, Instruction { program, work: number })
            })
        });
        Thunks {
            plugin: of_plugin.map(|region| region.addresses.clone()).collect(),
            names: names.collect(),
            known: HashMap::new(),
        }
    }

    /// The instruction of the running thunk, from a thread's words.
    pub(super) fn find(&mut self, memory: &Memory, words: &[u64]) -> Option<Instruction> {
        let (mut first, mut before) = (None, None);
        for &word in words {
            let Some(found) = self.at(memory, word) else { continue };
            if before == Some(word) {
                return Some(found);
            }
            first = first.or(Some(found));
            before = Some(word);
        }
        first
    }

    fn at(&mut self, memory: &Memory, address: u64) -> Option<Instruction> {
        /// Upper bound of a program's addresses; most numbers on a stack are greater.
        const END: u64 = 1 << 47;
        if !address.is_multiple_of(8) || !(1 << 16..END).contains(&address) {
            return None;
        }
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let found = self.thunk(memory, address);
        self.known.insert(address, found);
        found
    }

    fn thunk(&self, memory: &Memory, address: u64) -> Option<Instruction> {
        let mut words = Vec::new();
        memory.words(address, OBJECT_WORDS, &mut words);
        let first = words.first()?;
        self.plugin.iter().find(|region| region.contains(first))?;
        words[1..].windows(STRING_WORDS + 2).find_map(|words| {
            let instruction = string(memory, words[0], words[1])?;
            let module = string(memory, words[STRING_WORDS], words[STRING_WORDS + 1])?;
            self.names.get(&(module, instruction)).copied()
        })
    }
}

fn string(memory: &Memory, address: u64, length: u64) -> Option<String> {
    let length = usize::try_from(length).ok().filter(|length| (1..=LONGEST).contains(length))?;
    let mut bytes = vec![0; length];
    let read = memory.read(address, &mut bytes);
    (read == length).then(|| String::from_utf8(bytes).ok()).flatten()
}
