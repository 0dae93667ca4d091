//! Functions with arguments, made from the samples of the ops.

use crate::xla::Case;
use podracer_compiler::ops::registry;
use podracer_compiler::transform::{TransformError, VmapContext, jvp, vjp, vmap};
use podracer_compiler::{Array, Builder, Func, OpRef, Sample, Scalar, TensorType, Var};

/// The extent of the batches that vmap is tried with.
pub const BATCH: usize = 3;

/// Every sample of every op, with a name. `PODRACER_OP` restricts them to one op.
pub fn samples() -> Vec<(String, Sample)> {
    let only = std::env::var("PODRACER_OP").ok();
    let named = |entry: &registry::Entry| {
        let mnemonic = entry.mnemonic;
        (entry.samples)()
            .into_iter()
            .enumerate()
            .map(move |(i, sample)| (sample_name(mnemonic, i, &sample), sample))
            .collect::<Vec<_>>()
    };
    let chosen =
        |entry: &&registry::Entry| only.as_deref().is_none_or(|only| only == entry.mnemonic);
    registry::all().iter().filter(chosen).flat_map(named).collect()
}

fn sample_name(mnemonic: &str, index: usize, sample: &Sample) -> String {
    let types: Vec<String> = sample.inputs.iter().map(|input| input.ty().to_string()).collect();
    format!("{mnemonic}#{index}({})", types.join(", "))
}

/// The types of some arrays.
pub fn types(arrays: &[Array]) -> Vec<TensorType> {
    arrays.iter().map(|array| array.ty().clone()).collect()
}

/// The function of one op.
pub fn one_op(op: &OpRef, params: &[TensorType]) -> Func {
    let mut b = Builder::new();
    let params: Vec<Var> = params.iter().map(|ty| b.param(ty.clone())).collect();
    let results = b.emit_ref(op.clone(), &params);
    b.finish(op.mnemonic(), results)
}

/// A case with the results it should have.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The case to run.
    pub case: Case,
    /// Results that it should have.
    pub results: Vec<Array>,
}

/// A sample under vmap, for every way to batch its operands: the results should equal the slices'
/// results, stacked.
pub fn batched(name: &str, sample: &Sample) -> Vec<Expected> {
    flag_sets(sample.inputs.len())
        .into_iter()
        .map(|flags| batched_by(name, sample, &flags))
        .collect()
}

fn batched_by(name: &str, sample: &Sample, flags: &[bool]) -> Expected {
    let func = one_op(&sample.op, &types(&sample.inputs));
    let force = vec![true; func.results.len()];
    let (func, _) = vmap(&func, &VmapContext::new(BATCH), flags, &force);
    let slice = |input: &Array, batched: bool, k: usize| {
        if batched { rotated(input, k) } else { input.clone() }
    };
    let slices: Vec<Vec<Array>> = (0..BATCH)
        .map(|k| {
            sample
                .inputs
                .iter()
                .zip(flags)
                .map(|(input, &batched)| slice(input, batched, k))
                .collect()
        })
        .collect();
    let outcomes: Vec<Vec<Array>> = slices.iter().map(|inputs| sample.op.eval(inputs)).collect();
    let results = (0..func.results.len())
        .map(|i| stack(outcomes.iter().map(|outcome| outcome[i].clone())))
        .collect();
    let argument = |i: usize| match flags[i] {
        true => stack(slices.iter().map(|inputs| inputs[i].clone())),
        false => sample.inputs[i].clone(),
    };
    let arguments = (0..flags.len()).map(argument).collect();
    let marks: String = flags.iter().map(|&batched| if batched { 'b' } else { '-' }).collect();
    Expected { case: Case { name: format!("vmap[{marks}] {name}"), func, arguments }, results }
}

/// A sample's forward derivative in all float operands: parameters, then tangents.
///
/// # Errors
/// Where the op has no such rule.
pub fn forward(name: &str, sample: &Sample) -> Result<Case, TransformError> {
    let func = one_op(&sample.op, &types(&sample.inputs));
    let (func, _) = jvp(&func, &floats(&sample.inputs))?;
    let tangents = sample.inputs.iter().filter(|input| input.ty().dtype.is_float());
    let tangents = tangents.enumerate().map(|(i, input)| direction(input.ty(), i));
    let arguments = sample.inputs.iter().cloned().chain(tangents).collect();
    Ok(Case { name: format!("jvp {name}"), func, arguments })
}

/// A sample's reverse derivative in all float operands: parameters, then cotangents of the float results.
///
/// # Errors
/// Where the op has no such rule.
pub fn reverse(name: &str, sample: &Sample) -> Result<Case, TransformError> {
    let func = one_op(&sample.op, &types(&sample.inputs));
    let parts = vjp(&func, &floats(&sample.inputs))?;
    let mut b = Builder::new();
    let params: Vec<Var> = parts.primal.param_types().into_iter().map(|ty| b.param(ty)).collect();
    let residuals = b.inline(&parts.primal, &params).split_off(func.results.len());
    let results = func.result_types();
    let results = results.iter().filter(|ty| ty.dtype.is_float());
    let cotangents: Vec<Array> = results.enumerate().map(|(i, ty)| direction(ty, i)).collect();
    let cotangent_vars: Vec<Var> = types(&cotangents).into_iter().map(|ty| b.param(ty)).collect();
    let results = b.inline(&parts.pullback, &[residuals, cotangent_vars].concat());
    let arguments = sample.inputs.iter().cloned().chain(cotangents).collect();
    Ok(Case { name: format!("vjp {name}"), func: b.finish("vjp", results), arguments })
}

fn floats(arrays: &[Array]) -> Vec<bool> {
    arrays.iter().map(|array| array.ty().dtype.is_float()).collect()
}

/// A direction of no symmetry: small numbers that every float type holds exactly.
fn direction(ty: &TensorType, index: usize) -> Array {
    let data =
        (0..ty.elements()).map(|i| Scalar::Float(((i + index) * 5 % 7) as f64 * 0.25 - 0.625));
    Array::new(ty.clone(), data)
}

/// Sets of batched operands: all subsets of one or two; of more each alone, and all.
fn flag_sets(count: usize) -> Vec<Vec<bool>> {
    if count <= 2 {
        return (1..1usize << count)
            .map(|bits| (0..count).map(|i| bits >> i & 1 == 1).collect())
            .collect();
    }
    let alone = (0..count).map(|only| (0..count).map(|i| i == only).collect());
    alone.chain([vec![true; count]]).collect()
}

/// The same elements, `k` places on: other values of the same domain.
fn rotated(array: &Array, k: usize) -> Array {
    let mut data: Vec<_> = array.scalars().collect();
    let places = if data.is_empty() { 0 } else { k % data.len() };
    data.rotate_left(places);
    Array::new(array.ty().clone(), data)
}

fn stack(arrays: impl Iterator<Item = Array>) -> Array {
    let arrays: Vec<Array> = arrays.collect();
    let ty = arrays.first().map(|array| array.ty().clone()).expect("a batch has slices");
    Array::stack(&ty, &arrays)
}
