//! Programs to export: lowered, with names for all arguments and results.

use anyhow::Result;
use podracer_compiler::simplify::{Options as Simplify, simplify};
use podracer_compiler::{Func, TensorType};
use podracer_dsl::prelude::{Key, Spec, Tensor, eval_shape, key, scalar, trace, vmap};
use podracer_envs::Space;
use podracer_rl::anakin::Feedback;
use podracer_rl::learn::{Act, Agent, LaneId, Learn, Mode, checked_act};
use podracer_runtime::{Donation, Lowered, lower_kept};

use super::{ArgumentKind, ArgumentManifest, ProgramManifest, ResultManifest};

/// A program to run elsewhere.
#[derive(Clone, Debug)]
pub struct Portable {
    /// Name of the program: `act`, `train`.
    pub name: &'static str,
    about: String,
    lowered: Lowered,
    arguments: &'static [(&'static str, ArgumentKind)],
    results: &'static [&'static str],
    parameters: Vec<(usize, String)>,
}

impl Portable {
    /// A program from a lowered function. `arguments` names its arguments; an argument may be a
    /// tree. `results` names each of its results if they are a tuple, and otherwise the single
    /// result.
    pub(crate) fn new(
        name: &'static str,
        about: impl Into<String>,
        lowered: Lowered,
        arguments: &'static [(&'static str, ArgumentKind)],
        results: &'static [&'static str],
    ) -> Self {
        Portable { name, about: about.into(), lowered, arguments, results, parameters: Vec::new() }
    }

    /// Sets the results that are the agent's parameters: index and path of each.
    pub(crate) fn with_parameters(self, parameters: Vec<(usize, String)>) -> Self {
        Portable { parameters, ..self }
    }

    /// The results that are the agent's parameters: index and path of each.
    pub(crate) fn parameters(&self) -> &[(usize, String)] {
        &self.parameters
    }

    /// The StableHLO module, without locations.
    #[must_use]
    pub fn text(&self) -> &str {
        self.lowered.module.key()
    }

    /// Entry of the program in the manifest.
    #[must_use]
    pub fn manifest(&self) -> ProgramManifest {
        let Lowered { module, spec, .. } = &self.lowered;
        let shown = |ty: &TensorType| (ty.dtype.name().to_owned(), ty.shape.to_vec());
        let arguments = spec.arguments.iter().zip(&module.arguments);
        let arguments = arguments.map(|(argument, ty)| {
            let (index, rest) = position(&argument.name).unwrap_or((0, ""));
            let (root, kind) = self.arguments[index];
            let (dtype, shape) = shown(ty);
            ArgumentManifest {
                name: format!("{root}{rest}"),
                dtype,
                shape,
                kind,
                donated_to: match argument.donation {
                    Donation::Into(result) => Some(result),
                    Donation::Kept | Donation::Donor => None,
                },
            }
        });
        let results = spec.result_names.iter().zip(&module.results);
        let results = results.map(|(path, ty)| {
            let (dtype, shape) = shown(ty);
            let name = match self.results {
                [whole] if path.is_empty() || path.starts_with('[') => format!("{whole}{path}"),
                [whole] => format!("{whole}.{path}"),
                several => {
                    let (index, rest) = position(path).unwrap_or((0, ""));
                    format!("{}{rest}", several[index])
                }
            };
            ResultManifest { name, dtype, shape }
        });
        ProgramManifest {
            about: self.about.clone(),
            file: format!("{}.mlir", self.name),
            arguments: arguments.collect(),
            results: results.collect(),
        }
    }
}

/// The index in a tuple at the start of a path, and the rest of the path.
fn position(path: &str) -> Option<(usize, &str)> {
    let end = path.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = path.split_at(end.unwrap_or(path.len()));
    Some((digits.parse().ok()?, rest))
}

/// An agent's policy as programs, for one observation or a batch of `batch` observations: `act`,
/// which draws actions as in training, and `act_greedily`. `seen` is the space of an observation
/// that is one tensor. The programs take the last action and reward only if the agent reads them.
#[track_caller]
pub(crate) fn policy<A: Learn>(
    name: &str,
    agent: &A,
    observation: &Spec<A::Observation>,
    (seen, action): (Option<&Space>, &Space),
    batch: Option<usize>,
) -> Result<[Portable; 2]> {
    let (elements, space, action) = (elements(seen, action), action, &action.ty());
    let params = eval_shape((key(),), |(key,)| agent.params(&agent.init(key)))?;
    let memory = eval_shape((), |()| {
        agent.init_memory(LaneId { index: scalar(0), lanes: batch.unwrap_or(1) })
    })?;
    let feedback = eval_shape((), |()| Feedback::begin(action))?;
    let (memory, observation, feedback, seen_count) = match batch {
        None => (memory, observation.clone(), feedback, "one observation".to_owned()),
        Some(n) => {
            let seen_count = format!("{n} observations");
            (memory.stacked(n), observation.stacked(n), feedback.stacked(n), seen_count)
        }
    };
    type Acted<A> = (Tensor, <A as Agent>::Memory);
    let act =
        |mode: Mode, params: A::Params, memory, seen, key: Option<Key>, feedback| -> Acted<A> {
            let one = |(memory, seen, key, feedback): (_, _, Option<Key>, Option<Feedback>)| {
                let key = key.unwrap_or_else(|| Key::new(0u32));
                let input = feedback.unwrap_or_else(|| Feedback::begin(action)).input(seen, None);
                let Act { action, memory, .. } =
                    checked_act(agent, &params, memory, input, mode, key, action);
                (space.clip_action(action), memory)
            };
            match batch {
                None => one((memory, seen, key, feedback)),
                Some(n) => vmap((memory, seen, key.map(|key| key.split_n(n)), feedback), one),
            }
        };
    let program = |program: &'static str, about: String, mode: Mode| -> Result<Portable> {
        let all = (&params, &memory, &observation, key(), &feedback);
        let whole = trace(all, |(p, m, o, k, f)| act(mode, p, m, o, Some(k), Some(f)))?;
        let first = params.leaves().len() + memory.leaves().len() + observation.leaves().len();
        let read = read(&simplify(whole.func(), &Simplify::default()));
        let (key_is_read, feedback_is_read) =
            (read[first], read[first + 1..].iter().any(|&read| read));
        let name = format!("{name}_{program}");
        let (p, m, o) = (&params, &memory, &observation);
        let (lowered, taken): (_, &[_]) = match (key_is_read, feedback_is_read) {
            (true, true) => {
                (lower_kept(&name, &whole)?, &[PARAMETERS, MEMORY, SEEN, KEY, FEEDBACK])
            }
            (true, false) => {
                let traced =
                    trace((p, m, o, key()), |(p, m, o, k)| act(mode, p, m, o, Some(k), None))?;
                (lower_kept(&name, &traced)?, &[PARAMETERS, MEMORY, SEEN, KEY])
            }
            (false, true) => {
                let traced =
                    trace((p, m, o, &feedback), |(p, m, o, f)| act(mode, p, m, o, None, Some(f)))?;
                (lower_kept(&name, &traced)?, &[PARAMETERS, MEMORY, SEEN, FEEDBACK])
            }
            (false, false) => {
                let traced = trace((p, m, o), |(p, m, o)| act(mode, p, m, o, None, None))?;
                (lower_kept(&name, &traced)?, &[PARAMETERS, MEMORY, SEEN])
            }
        };
        Ok(Portable::new(program, about, lowered, taken, &["action", "memory"]))
    };
    let drawn = format!("an action drawn from the policy, for {seen_count}{elements}");
    let best = format!("the action that the policy takes to be best, for {seen_count}{elements}");
    Ok([program("act", drawn, Mode::Explore)?, program("act_greedily", best, Mode::Greedy)?])
}

/// The names of an observation's and an action's elements, in a description of programs: `; observation: position 0..2, holds 2..5`.
fn elements(observation: Option<&Space>, action: &Space) -> String {
    let named = |what: &str, space: &Space| Some(format!("; {what}: {}", space.description()?));
    let observation = observation.and_then(|space| named("observation", space));
    observation.into_iter().chain(named("action", action)).collect()
}

const PARAMETERS: (&str, ArgumentKind) = ("parameters", ArgumentKind::Parameter);
const MEMORY: (&str, ArgumentKind) = ("memory", ArgumentKind::State);
const SEEN: (&str, ArgumentKind) = ("observation", ArgumentKind::Input);
const KEY: (&str, ArgumentKind) = ("key", ArgumentKind::Key);
const FEEDBACK: (&str, ArgumentKind) = ("feedback", ArgumentKind::Input);

/// For each parameter of a function, true if the function reads it.
fn read(func: &Func) -> Vec<bool> {
    let reads = |param| {
        func.eqns.iter().any(|eqn| eqn.inputs.contains(param)) || func.results.contains(param)
    };
    func.params.iter().map(reads).collect()
}
