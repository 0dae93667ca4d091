//! Symbols of the private functions that a module calls.

use crate::ir::Func;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The functions called so far, each with its symbol, in order of the first call.
pub(super) struct Symbols {
    callees: Vec<(String, Arc<Func>)>,
    by_pointer: HashMap<*const Func, usize>,
    by_value: HashMap<Arc<Func>, usize>,
    names: HashSet<String>,
}

impl Symbols {
    pub(super) fn new() -> Self {
        Symbols {
            callees: Vec::new(),
            by_pointer: HashMap::new(),
            by_value: HashMap::new(),
            names: HashSet::from(["main".to_string()]),
        }
    }

    /// The `index`-th function called so far.
    pub(super) fn callee(&self, index: usize) -> Option<(String, Arc<Func>)> {
        self.callees.get(index).cloned()
    }

    /// The symbol of a private function, which is emitted later if this is its first call.
    pub(super) fn symbol(&mut self, func: &Arc<Func>) -> String {
        let pointer = Arc::as_ptr(func);
        let known = self.by_pointer.get(&pointer).or_else(|| self.by_value.get(func)).copied();
        let index = known.unwrap_or_else(|| {
            let name = self.fresh_name(&func.name);
            self.callees.push((name, func.clone()));
            self.by_value.insert(func.clone(), self.callees.len() - 1);
            self.callees.len() - 1
        });
        // Only a pointer that `callees` keeps alive may be a key: the address of another may be
        // reused.
        if known.is_none() {
            self.by_pointer.insert(pointer, index);
        }
        self.callees[index].0.clone()
    }

    /// A name similar to the given name that needs no quotes in MLIR's text and is not taken.
    fn fresh_name(&mut self, name: &str) -> String {
        let readable: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let base = if readable.starts_with(|c: char| c.is_ascii_alphabetic()) {
            readable
        } else {
            format!("f{readable}")
        };
        let mut candidate = base.clone();
        for number in 1.. {
            if self.names.insert(candidate.clone()) {
                break;
            }
            candidate = format!("{base}_{number}");
        }
        candidate
    }
}
