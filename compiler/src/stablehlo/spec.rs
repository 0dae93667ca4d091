//! The specification of a module in addition to its function: names, replicas, ownership of the
//! arguments' memory.

use super::EmitError;
use crate::ir::Func;

/// The owner of an argument's buffer during a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Donation {
    /// The caller keeps the buffer.
    #[default]
    Kept,
    /// The program takes the buffer and writes the result with this number into it; the types must
    /// be equal.
    Into(usize),
    /// The program takes the buffer and may use it for any result that fits.
    Donor,
}

/// One argument of the module's main function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentSpec {
    /// The key path of the tree leaf, such as `state.params.w`; it appears in profiles and in the
    /// plugin's errors.
    pub name: String,
    /// The owner of its buffer during a call.
    pub donation: Donation,
}

impl ArgumentSpec {
    /// An argument that the caller keeps.
    pub fn kept(name: impl Into<String>) -> Self {
        ArgumentSpec { name: name.into(), donation: Donation::Kept }
    }

    /// An argument with a buffer that becomes the given result's.
    pub fn into_result(name: impl Into<String>, result: usize) -> Self {
        ArgumentSpec { name: name.into(), donation: Donation::Into(result) }
    }

    /// An argument with a buffer that the program may reuse.
    pub fn donor(name: impl Into<String>) -> Self {
        ArgumentSpec { name: name.into(), donation: Donation::Donor }
    }
}

/// The processes that run a program together, each on equally many devices, and the way they
/// exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// The number of processes.
    pub count: usize,
    /// True if the platform's own collectives cover only one process, so that values are exchanged
    /// with other processes by calls of the runtime ([`exchange`](crate::ops::exchange)).
    pub by_calls: bool,
}

impl Processes {
    /// One process by itself.
    pub const ONE: Self = Processes { count: 1, by_calls: false };

    /// The number of processes that exchange values by calls of the runtime; 1 if there are none.
    #[must_use]
    pub fn calling(self) -> usize {
        if self.by_calls { self.count } else { 1 }
    }

    /// True if the platform's collectives cover several processes, so that a module is for the
    /// devices of every process.
    #[must_use]
    pub fn are_spanned(self) -> bool {
        self.calling() < self.count
    }
}

/// The names, replicas and donations of a module: everything that its function does not specify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleSpec {
    /// The module's name, which XLA uses in dumps and profiles; may be empty.
    pub name: String,
    /// The number of devices that run it together, each with its own arguments; at least 1.
    pub replicas: usize,
    /// The processes that have these devices, equally many each.
    pub processes: Processes,
    /// True if XLA compiles a loop of any size to one kernel. Loops with matrix products must then
    /// not become kernels: the body of such a scan gets an op that XLA does not compile into a
    /// kernel. Rows are set by a loop instead of a scatter, because XLA does not compile a scatter
    /// into a kernel either.
    pub whole_loops: bool,
    /// The arguments of the main function, in order.
    pub arguments: Vec<ArgumentSpec>,
    /// The key paths of the results, in order; empty paths are left out of the text.
    pub result_names: Vec<String>,
}

impl ModuleSpec {
    /// The spec of a module for one replica, with arguments `arg0`, `arg1`, ... that the caller keeps and results without
    /// names.
    pub fn new(name: impl Into<String>, func: &Func) -> Self {
        ModuleSpec {
            name: name.into(),
            replicas: 1,
            processes: Processes::ONE,
            whole_loops: false,
            arguments: (0..func.params.len())
                .map(|i| ArgumentSpec::kept(format!("arg{i}")))
                .collect(),
            result_names: vec![String::new(); func.results.len()],
        }
    }

    /// The spec for another number of replicas.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// The spec for replicas that `processes` share.
    pub fn processes(mut self, processes: Processes) -> Self {
        self.processes = processes;
        self
    }

    /// The number of replicas in the module: the replicas of one process if processes exchange
    /// values by calls, otherwise every replica.
    #[must_use]
    pub fn module_replicas(&self) -> usize {
        self.replicas / self.processes.calling().max(1)
    }

    /// Checks the specification against the function it is for.
    pub(super) fn check(&self, func: &Func) -> Result<(), EmitError> {
        let count = |what, expected, got| {
            if expected == got { Ok(()) } else { Err(EmitError::Count { what, expected, got }) }
        };
        count("arguments", func.params.len(), self.arguments.len())?;
        count("results", func.results.len(), self.result_names.len())?;
        if self.replicas == 0 || i32::try_from(self.replicas).is_err() {
            return Err(EmitError::Replicas(self.replicas));
        }
        let processes = self.processes.count;
        if processes == 0 || !self.replicas.is_multiple_of(processes) {
            let replicas = self.replicas;
            return Err(EmitError::Processes { replicas, processes });
        }
        let mut taken = vec![false; func.results.len()];
        for (argument, &param) in self.arguments.iter().zip(&func.params) {
            let Donation::Into(result) = argument.donation else {
                continue;
            };
            let name = || argument.name.clone();
            let Some(&output) = func.results.get(result) else {
                return Err(EmitError::AliasOutOfRange {
                    argument: name(),
                    result,
                    results: func.results.len(),
                });
            };
            if std::mem::replace(&mut taken[result], true) {
                return Err(EmitError::AliasTwice { argument: name(), result });
            }
            let (ty, result_ty) = (func.ty(param), func.ty(output));
            if ty != result_ty {
                return Err(EmitError::AliasType {
                    argument: name(),
                    ty: ty.clone(),
                    result,
                    result_ty: result_ty.clone(),
                });
            }
        }
        Ok(())
    }
}
