//! Counts and estimates of a program's cost, for budgets in tests.

use std::collections::BTreeMap;
use std::fmt;

use podracer_compiler::{Effect, Eqn, Func, TensorType};

use super::Program;

/// Counts and estimates of a program's cost. They depend only on the program, not on a machine. A
/// test may bound them: if a bound is exceeded, the program has changed. `podracer profile`
/// measures the time and the kernels of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSummary {
    /// Number of equations of each op, with each body counted once.
    pub ops: BTreeMap<&'static str, usize>,
    /// Estimated number of kernels. It counts the equations that XLA does not fuse with their
    /// readers (reductions, products, sorts, loops, collectives), and one kernel for the
    /// elementwise equations of each function that has any. The kernels of a loop's body count
    /// once.
    pub kernels: usize,
    /// Estimated number of floating-point operations: one for each element of a float result, two for each multiplication of a matrix
    /// product or convolution, and one for each element that a reduction reads. A loop's body counts as often as it runs.
    pub flops: usize,
    /// Bytes of the arguments and results, which are read or written at least once.
    pub bytes: usize,
}

/// Counts and estimates of a program's cost.
pub fn program_summary(program: impl Into<Program>) -> ProgramSummary {
    let program = program.into();
    let func = program.func();
    let boundary = func.params.iter().chain(&func.results);
    let bytes = boundary.map(|&var| func.ty(var).bytes()).sum();
    let mut summary = ProgramSummary { ops: BTreeMap::new(), kernels: 0, flops: 0, bytes };
    summary.add(func, 1);
    summary
}

impl ProgramSummary {
    /// Number of equations, over all kinds of ops.
    pub fn equations(&self) -> usize {
        self.ops.values().sum()
    }

    /// Adds a function that runs `turns` times.
    fn add(&mut self, func: &Func, turns: usize) {
        let mut fused = false;
        for eqn in &func.eqns {
            *self.ops.entry(eqn.op.mnemonic()).or_default() += 1;
            self.flops = self.flops.saturating_add(flops(func, eqn).saturating_mul(turns));
            let inner = eqn.op.turns().unwrap_or(1).saturating_mul(turns);
            eqn.op.funcs().iter().for_each(|body| self.add(body, inner));
            let is_loop = eqn.op.turns().is_some();
            let own = is_loop || eqn.op.reads_many() || eqn.op.effect() == Effect::Collective;
            self.kernels += usize::from(own);
            fused |= !own && eqn.op.funcs().is_empty() && !eqn.inputs.is_empty();
        }
        self.kernels += usize::from(fused);
    }
}

/// Floating-point operations of one equation, without its bodies.
fn flops(func: &Func, eqn: &Eqn) -> usize {
    let types: Vec<TensorType> = eqn.inputs.iter().map(|&var| func.ty(var).clone()).collect();
    let product = eqn.op.library_work(&types);
    if product > 0 {
        return product.saturating_mul(2);
    }
    let is_float = |ty: &&TensorType| ty.dtype.is_float();
    if eqn.op.reads_many() {
        return types.iter().filter(is_float).map(TensorType::elements).sum();
    }
    if eqn.inputs.is_empty() || !eqn.op.funcs().is_empty() {
        return 0;
    }
    let results = eqn.outputs.iter().map(|&var| func.ty(var));
    results.filter(is_float).map(TensorType::elements).sum()
}

/// One line for the counts, one line for the ops.
impl fmt::Display for ProgramSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProgramSummary { ops, kernels, flops, bytes } = self;
        let equations = self.equations();
        writeln!(f, "{equations} equations, {kernels} kernels, {flops} FLOPs, {bytes} bytes")?;
        let ops: Vec<String> = ops.iter().map(|(op, count)| format!("{op} {count}")).collect();
        f.write_str(&ops.join(", "))
    }
}
