//! Forward-mode differentiation and linearization.
//!
//! Both walk the function once and let each op emit itself with its derivative. `jvp` leaves values
//! and tangents in one function. `linearize` splits them into two functions. The first computes the
//! values, and the intermediate values that the derivative needs (the residuals). The second is
//! linear in the tangents.

use super::context::{Mode, TransformError};
use super::dce::dce;
use super::transpose::transpose;
use crate::ir::{Builder, Eqn, Func, Slope, Slopes, Var};

/// A function split into values and derivative.
#[derive(Clone, Debug)]
pub struct Linearized {
    /// The function of the values: parameters -> results ++ residuals.
    pub primal: Func,
    /// The function of the tangents: residuals ++ tangents of the parameters in `wrt` -> tangents of the results in
    /// `tangent_results`.
    pub linear: Func,
    /// The number of residuals.
    pub residuals: usize,
    /// For each parameter, true if it has a tangent: the floats that were asked for.
    pub wrt: Vec<bool>,
    /// For each result, true if it has a tangent; the others do not depend on the parameters in `wrt`.
    pub tangent_results: Vec<bool>,
}

/// A function and its reverse-mode derivative.
#[derive(Clone, Debug)]
pub struct Vjp {
    /// The function of the values: parameters -> results ++ residuals.
    pub primal: Func,
    /// The function of the cotangents: residuals ++ cotangents of the float results -> cotangents of the float
    /// parameters asked for.
    pub pullback: Func,
    /// The number of residuals.
    pub residuals: usize,
}

/// Emits `func` and its derivative. A tangent is `None` if it is zero; integers never have a
/// tangent.
pub(crate) fn differentiate(
    b: &mut Builder,
    func: &Func,
    mode: Mode,
    arguments: &[Var],
    tangents: &[Slope],
) -> Result<(Vec<Var>, Slopes), TransformError> {
    let mut map: Vec<Option<(Var, Option<Var>)>> = vec![None; func.types.len()];
    for ((&param, &argument), &tangent) in func.params.iter().zip(arguments).zip(tangents) {
        map[param.index()] = Some((argument, tangent));
    }
    let read = |map: &[Option<(Var, Option<Var>)>], var: Var| {
        map[var.index()].expect("defined before use")
    };
    let outer = b.loc();
    for eqn in &func.eqns {
        let (inputs, tangents): (Vec<Var>, Vec<Option<Var>>) =
            eqn.inputs.iter().map(|&var| read(&map, var)).unzip();
        b.set_loc(eqn.loc);
        let (outputs, tangents) = if tangents.iter().all(Option::is_none) {
            let outputs = b.emit_ref(eqn.op.clone(), &inputs);
            let none = vec![None; outputs.len()];
            (outputs, none)
        } else {
            eqn.op.differentiate(&eqn.op, b, mode, &inputs, &tangents).of(&eqn.op, eqn.loc)?
        };
        for ((&var, output), tangent) in eqn.outputs.iter().zip(outputs).zip(tangents) {
            debug_assert!(
                tangent.is_none_or(
                    |tangent| b.ty(tangent) == func.ty(var) && func.ty(var).dtype.is_float()
                ),
                "{}: a tangent has the type of its value",
                eqn.op.mnemonic()
            );
            map[var.index()] = Some((output, tangent));
        }
    }
    b.set_loc(outer);
    Ok(func.results.iter().map(|&var| read(&map, var)).unzip())
}

/// The tangent, or zeros of the type of `value`.
pub(crate) fn instantiate(b: &mut Builder, tangent: Option<Var>, value: Var) -> Var {
    tangent.unwrap_or_else(|| {
        let ty = b.ty(value).clone();
        b.zeros(&ty)
    })
}

/// True for each tangent or cotangent that is given; the others are zero.
pub(crate) fn given(tangents: &[Slope]) -> Vec<bool> {
    tangents.iter().map(Option::is_some).collect()
}

/// `vars`, then the tangents or cotangents that are present.
pub(crate) fn with_given(vars: impl IntoIterator<Item = Var>, tangents: &[Slope]) -> Vec<Var> {
    vars.into_iter().chain(tangents.iter().flatten().copied()).collect()
}

/// Deals `vars` out to the `marked` positions.
pub(crate) fn deal(marked: &[bool], vars: impl IntoIterator<Item = Var>) -> Slopes {
    let mut vars = vars.into_iter();
    marked.iter().map(|&is| is.then(|| vars.next().expect("one variable per mark"))).collect()
}

/// Values and tangents in a fresh builder; the start of both functions below.
struct Joint {
    func: Func,
    wrt: Vec<bool>,
    tangent_results: Vec<bool>,
}

/// The function from parameters ++ tangents to results ++ tangents. `force[i]` gives result `i` a tangent even if zero.
fn joint(func: &Func, mode: Mode, wrt: &[bool], force: &[bool]) -> Result<Joint, TransformError> {
    assert_eq!(func.params.len(), wrt.len(), "one flag per parameter");
    assert_eq!(func.results.len(), force.len(), "one flag per result");
    let mut b = Builder::new();
    let arguments = b.add_params(func.param_types());
    let wrt: Vec<bool> = func
        .params
        .iter()
        .zip(wrt)
        .map(|(&param, &asked)| asked && func.ty(param).dtype.is_float())
        .collect();
    let tangents: Vec<Option<Var>> = (func.params.iter().zip(&wrt))
        .map(|(&param, &is)| is.then(|| b.param(func.ty(param).clone())))
        .collect();
    let (mut results, tangents) = differentiate(&mut b, func, mode, &arguments, &tangents)?;
    let mut tangent_results = Vec::with_capacity(results.len());
    let mut tangent_vars = Vec::new();
    for ((&result, tangent), &force) in results.iter().zip(tangents).zip(force) {
        let wanted = tangent.is_some() || (force && b.ty(result).dtype.is_float());
        if wanted {
            tangent_vars.push(instantiate(&mut b, tangent, result));
        }
        tangent_results.push(wanted);
    }
    results.extend(tangent_vars);
    Ok(Joint { func: b.finish(func.name.clone(), results), wrt, tangent_results })
}

/// The function from parameters ++ tangents of the parameters in `wrt` to results ++ tangents of
/// the float results that depend on them. Also returns which results have a tangent.
pub fn jvp(func: &Func, wrt: &[bool]) -> Result<(Func, Vec<bool>), TransformError> {
    jvp_with(func, wrt, &vec![false; func.results.len()])
}

/// [`jvp`] with a tangent, if only zeros, for the float results marked in `force`.
pub fn jvp_with(
    func: &Func,
    wrt: &[bool],
    force: &[bool],
) -> Result<(Func, Vec<bool>), TransformError> {
    let joint = joint(func, Mode::Forward, wrt, force)?;
    Ok((joint.func, joint.tangent_results))
}

/// Splits a function into its values and its derivative with respect to the parameters in `wrt`.
pub fn linearize(func: &Func, wrt: &[bool]) -> Result<Linearized, TransformError> {
    linearize_with(func, wrt, &vec![false; func.results.len()])
}

/// [`linearize`] with a tangent, if only zeros, for the float results marked in `force`.
pub fn linearize_with(
    func: &Func,
    wrt: &[bool],
    force: &[bool],
) -> Result<Linearized, TransformError> {
    let Joint { func: joint, wrt, tangent_results } = joint(func, Mode::Linearize, wrt, force)?;
    // After dead code elimination, every residual is read.
    let joint = dce(&joint);
    let (params, tangent_params) = joint.params.split_at(func.params.len());
    let (results, tangents) = joint.results.split_at(func.results.len());
    let mut marked = vec![false; params.len()];
    marked.resize(joint.params.len(), true);
    let is_linear = joint.depends_on(&marked);
    let is_linear_eqn = |eqn: &Eqn| eqn.inputs.iter().any(|var| is_linear[var.index()]);

    let mut split = Split::new(&joint, is_linear.clone());
    for eqn in joint.eqns.iter().filter(|eqn| is_linear_eqn(eqn)) {
        eqn.inputs.iter().for_each(|&var| split.need(var));
        split.eqns.push(eqn);
    }
    tangents.iter().for_each(|&var| split.need(var));

    let primal_results: Vec<Var> = results.iter().chain(&split.residuals).copied().collect();
    let linear_params: Vec<Var> = split.residuals.iter().chain(tangent_params).copied().collect();
    let primal =
        joint.subset(params, joint.eqns.iter().filter(|eqn| !is_linear_eqn(eqn)), &primal_results);
    let linear = joint.subset(&linear_params, split.eqns.iter().copied(), tangents);
    Ok(Linearized {
        primal: dce(&primal),
        linear,
        residuals: split.residuals.len(),
        wrt,
        tangent_results,
    })
}

/// The linear equations so far, preceded by the values that they read. A value is recomputed if
/// that is as cheap as keeping it; otherwise it is a residual.
struct Split<'a> {
    func: &'a Func,
    /// The equation that defines each variable.
    definition: Vec<Option<&'a Eqn>>,
    /// For each variable, true if the linear part has it already.
    have: Vec<bool>,
    eqns: Vec<&'a Eqn>,
    residuals: Vec<Var>,
}

impl<'a> Split<'a> {
    fn new(func: &'a Func, have: Vec<bool>) -> Self {
        let mut definition = vec![None; func.types.len()];
        for eqn in &func.eqns {
            eqn.outputs.iter().for_each(|var| definition[var.index()] = Some(eqn));
        }
        Split { func, definition, have, eqns: Vec::new(), residuals: Vec::new() }
    }

    fn need(&mut self, var: Var) {
        if self.have[var.index()] {
            return;
        }
        match self.definition[var.index()] {
            // Recomputing a value is worthwhile only if its operands are no larger.
            Some(eqn)
                if eqn.op.recompute()
                    && eqn.inputs.iter().map(|&x| self.func.ty(x).bytes()).sum::<usize>()
                        <= self.func.ty(var).bytes() =>
            {
                eqn.inputs.iter().for_each(|&input| self.need(input));
                eqn.outputs.iter().for_each(|output| self.have[output.index()] = true);
                self.eqns.push(eqn);
            }
            _ => {
                self.have[var.index()] = true;
                self.residuals.push(var);
            }
        }
    }
}

/// A function with its reverse-mode derivative with respect to the float parameters in `wrt`.
pub fn vjp(func: &Func, wrt: &[bool]) -> Result<Vjp, TransformError> {
    let Linearized { primal, linear, residuals, wrt, tangent_results } = linearize(func, wrt)?;
    let mut marked = vec![false; residuals];
    marked.resize(linear.params.len(), true);
    let given = vec![true; linear.results.len()];
    let force = vec![true; linear.params.len() - residuals];
    let (pullback, _) = transpose(&linear, &marked, &given, &force)?;

    // The pullback takes a cotangent for every float result; those without a tangent are not read.
    let mut b = Builder::new();
    let mut arguments: Vec<Var> =
        pullback.param_types()[..residuals].iter().map(|ty| b.param(ty.clone())).collect();
    for (&result, &has_tangent) in func.results.iter().zip(&tangent_results) {
        let ty = func.ty(result).clone();
        if ty.dtype.is_float() {
            let cotangent = b.param(ty);
            if has_tangent {
                arguments.push(cotangent);
            }
        }
    }
    debug_assert_eq!(wrt.iter().filter(|&&is| is).count(), pullback.results.len());
    let results = b.inline(&pullback, &arguments);
    Ok(Vjp { primal, pullback: b.finish(func.name.clone(), results), residuals })
}
