//! Runs the iterations of a training one by one, and evaluates the first bad iteration by the
//! reference semantics.

use anyhow::{Context, Result};
use podracer_compiler::simplify::Options as Simplify;
use podracer_compiler::{Array, Source, TensorType};
use podracer_envs::AnyEnvironment;
use podracer_rl::learn::AnyAgent;
use podracer_runtime::setters::{ConfigureAnakin, ConfigureHostLoop};
use podracer_runtime::{Checkpoint, Origin, SebulbaLoop};

use super::one_program;
use crate::anakin::{Anakin, STATE};
use crate::parameters;
use crate::registry::Batches;
use crate::sebulba::Sebulba;
use crate::training::{Cause, Evaluate, Explanation, Start, Suspect, Symptom};

/// Iterations of Anakin, on one device, which draws the same as several devices.
pub(super) fn anakin(
    anakin: &Anakin<AnyEnvironment, AnyAgent>,
    simplify: &Simplify,
    suspect: &Suspect,
    evaluate: &mut Evaluate,
) -> Result<Option<Explanation>> {
    let anakin = anakin.clone().devices(1).iterations_per_call(1);
    let first = Start { devices: &suspect.start.devices[..1], ..suspect.start };
    let options = one_program::options(&first, simplify);
    let compiled = anakin.compile_with(suspect.start.client, &options)?;
    let mut state = match suspect.start.from {
        Some(checkpoint) => compiled.restore(checkpoint)?,
        None => compiled.init(suspect.start.seed)?,
    };
    let done = suspect.start.from.map_or(0, |checkpoint| checkpoint.iterations);
    for iteration in done + 1..=done + suspect.iterations {
        let before = compiled.checkpoint(&state, iteration - 1)?.detached()?;
        let (next, metrics) = compiled.run(state)?;
        let agent_metrics = metrics.agent_metrics()?;
        let metric = agent_metrics.into_iter().find(|(_, value)| !value[0].is_finite());
        let symptom = match suspect.symptom {
            Symptom::State(name) => {
                let after = compiled.checkpoint(&next, iteration)?.array(name)?;
                (after.not_finite() > 0).then(|| format!("`{name}`"))
            }
            Symptom::Training => match metric {
                Some((name, _)) => Some(format!("`{name}`")),
                None => parameters::not_finite(&compiled.parameters(&next)?)
                    .map(|_| "a parameter".to_owned()),
            },
        };
        if let Some(symptom) = symptom {
            let cause = cause(&anakin, suspect, (iteration, &before), evaluate)?;
            return Ok(cause.map(|cause| Explanation { iteration, symptom, cause }));
        }
        state = next;
    }
    Ok(None)
}

/// Evaluates an iteration of Anakin from the state before it.
fn cause(
    anakin: &Anakin<AnyEnvironment, AnyAgent>,
    suspect: &Suspect,
    (iteration, before): (u64, &Checkpoint),
    evaluate: &mut Evaluate,
) -> Result<Option<Cause>> {
    let traced = anakin.trace()?;
    let leaves = traced.traced_init().results().leaves();
    let names: Vec<String> = leaves.iter().map(|(path, _)| format!("{STATE}{path}")).collect();
    let arguments = names.iter().map(|name| Ok(before.array(name)?));
    let arguments = arguments.collect::<Result<Vec<Array>>>()?;
    let Some(watched) = evaluate(iteration, traced.traced().func(), &arguments) else {
        return Ok(None);
    };
    // The results are the next state, which includes the parameters, and the agent's metrics.
    let results: Vec<usize> = match suspect.symptom {
        Symptom::State(leaf) => names.iter().position(|name| name == leaf).into_iter().collect(),
        Symptom::Training => {
            let (_, metrics, _) = &**traced.traced().results();
            let metrics = metrics.replicated.leaves().len();
            let parameters = anakin.positions(&traced)?.into_iter().map(|(leaf, _)| leaf);
            parameters.chain(names.len()..names.len() + metrics).collect()
        }
    };
    Ok(Some(match watched.source(results) {
        None => Cause::Device,
        Some(Source::Argument(leaf)) => Cause::State(names[*leaf].clone()),
        Some(Source::Equation(equation)) => Cause::Equation(equation.clone()),
    }))
}

/// Iterations of Sebulba: the run continues from the state, and its learner's inputs are kept.
pub(super) fn sebulba(
    sebulba: &Sebulba<AnyAgent>,
    batches: &Batches,
    suspect: &Suspect,
    evaluate: &mut Evaluate,
) -> Result<Option<Explanation>> {
    let origin = suspect.start.from.map_or(Origin::Seed(suspect.start.seed), Origin::Checkpoint);
    let again = sebulba.clone().xla(suspect.start.xla.to_vec()).replay_in(suspect.start.folder);
    let mut run = again.begin(suspect.start.client, &batches.spec, origin, |_| batches.make())?;
    run.keep_arguments()?;
    for _ in 0..suspect.iterations {
        let report = run.run(1)?.pop().context("the iteration has a report")?;
        let iteration = report.iteration + 1;
        let metric = report.metrics.iter().position(|value| !value.is_finite());
        let symptom = match suspect.symptom {
            Symptom::State(name) => {
                let after = run.checkpoint()?.array(name)?;
                (after.not_finite() > 0).then(|| format!("`{name}`"))
            }
            Symptom::Training => match metric {
                Some(metric) => Some(format!("`{}`", run.metric_names()[metric])),
                None => {
                    parameters::not_finite(&run.parameters()?).map(|_| "a parameter".to_owned())
                }
            },
        };
        if let Some(symptom) = symptom {
            let arguments = report.arguments.context("they were asked for")?;
            // One learner learns from all lanes, equivalent to several learners with a part each.
            let traced = sebulba.clone().learners(vec![1]).trace(&batches.spec)?;
            let cause = cause_of_learning(&traced, arguments, suspect, iteration, evaluate)?;
            return Ok(cause.map(|cause| Explanation { iteration, symptom, cause }));
        }
    }
    Ok(None)
}

/// Evaluates an iteration of a learner, from the arguments of each learner device.
fn cause_of_learning(
    traced: &SebulbaLoop,
    arguments: Vec<Vec<Array>>,
    suspect: &Suspect,
    iteration: u64,
    evaluate: &mut Evaluate,
) -> Result<Option<Cause>> {
    let [_, _, learn] = traced.programs();
    let state = traced.init().lowered.module.results.len();
    let types = learn.func.param_types();
    let whole = types.iter().enumerate().map(|(index, ty)| {
        let parts: Vec<Array> = arguments.iter().map(|list| list[index].clone()).collect();
        joined(ty, &parts)
    });
    let whole: Vec<Array> = whole.collect();
    let Some(watched) = evaluate(iteration, &learn.func, &whole) else { return Ok(None) };
    let names = &traced.init().lowered.spec.result_names;
    let name = |leaf: usize| format!("{STATE}{}", names[leaf]);
    let results: Vec<usize> = match suspect.symptom {
        Symptom::State(wrong) => (0..state).filter(|&leaf| name(leaf) == *wrong).collect(),
        Symptom::Training => {
            let parameters = traced.parameters().iter().map(|(leaf, _)| *leaf);
            parameters.chain(state..state + traced.metrics().len()).collect()
        }
    };
    Ok(Some(match watched.source(results) {
        None => Cause::Device,
        Some(Source::Argument(leaf)) if *leaf < state => Cause::State(name(*leaf)),
        Some(Source::Argument(leaf)) => {
            Cause::Trajectory(learn.lowered.spec.arguments[*leaf].name.clone())
        }
        Some(Source::Equation(equation)) => Cause::Equation(equation.clone()),
    }))
}

/// An array from its parts on the devices along one axis, or from equal copies.
fn joined(ty: &TensorType, parts: &[Array]) -> Array {
    let shape_of = |part: &Array| part.ty().shape.clone();
    let Some(axis) = (0..ty.rank()).find(|&axis| shape_of(&parts[0])[axis] != ty.shape[axis])
    else {
        return parts[0].clone();
    };
    let extent = parts[0].ty().shape[axis];
    Array::from_fn(ty.clone(), |index| {
        let mut within = index.to_vec();
        within[axis] %= extent;
        parts[index[axis] / extent].at(&within)
    })
}
