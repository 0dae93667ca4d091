//! A program that is to be exported: lowered, with a name for all that goes in and comes out.

use anyhow::Result;
use podracer_compiler::TensorType;
use podracer_dsl::prelude::{Spec, eval_shape, key, trace, vmap};
use podracer_runtime::{Donation, Lowered, lower_kept};
use podracer_stdlib::agents::Agent;

use super::{ArgumentKind, ArgumentManifest, ProgramManifest, ResultManifest};

/// A program for others to run.
#[derive(Clone, Debug)]
pub struct Portable {
    /// What it is called: `act`, `train`.
    pub name: &'static str,
    about: String,
    lowered: Lowered,
    arguments: &'static [(&'static str, ArgumentKind)],
    results: &'static [&'static str],
}

impl Portable {
    /// A lowered function. `arguments` names each of its arguments, of which any may be a tree; so does `results`, where
    /// it gives a tuple, and otherwise it names the whole.
    pub(crate) fn new(
        name: &'static str,
        about: impl Into<String>,
        lowered: Lowered,
        arguments: &'static [(&'static str, ArgumentKind)],
        results: &'static [&'static str],
    ) -> Self {
        Portable { name, about: about.into(), lowered, arguments, results }
    }

    /// The StableHLO module, without locations.
    #[must_use]
    pub fn text(&self) -> &str {
        self.lowered.module.key()
    }

    /// What the manifest says of it.
    #[must_use]
    pub fn manifest(&self) -> ProgramManifest {
        let Lowered { module, spec } = &self.lowered;
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

/// The position in a tuple that a path begins with, and the rest of the path.
fn position(path: &str) -> Option<(usize, &str)> {
    let end = path.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = path.split_at(end.unwrap_or(path.len()));
    Some((digits.parse().ok()?, rest))
}

use ArgumentKind::{Input, Key, Parameter, State};

/// An agent's policy, for one observation or a batch of so many: `act`, which draws actions as in training, and
/// `act_greedily`.
#[track_caller]
pub(crate) fn policy<A: Agent>(
    name: &str,
    agent: &A,
    observation: &Spec<A::Observation>,
    batch: Option<usize>,
) -> Result<[Portable; 2]> {
    let nets = eval_shape((key(),), |(key,)| agent.init_nets(key))?;
    let actor = eval_shape((), |()| agent.init_actor())?;
    let (actor, observation, of) = match batch {
        None => (actor, observation.clone(), "one observation".to_owned()),
        Some(n) => {
            let of = format!("{n} observations");
            (actor.stacked(n), observation.stacked(n), of)
        }
    };
    let act = trace((&nets, &actor, &observation, key()), |(nets, actor, seen, key)| {
        let one = |(actor, seen, key)| {
            let (action, actor, _) = agent.act(&nets, actor, seen, key);
            (action, actor)
        };
        match batch {
            None => one((actor, seen, key)),
            Some(n) => vmap((actor, seen, key.split_n(n)), one),
        }
    })?;
    let greedily = trace((&nets, &actor, &observation), |(nets, actor, seen)| {
        let one = |(actor, seen)| agent.act_greedily(&nets, actor, seen);
        match batch {
            None => one((actor, seen)),
            Some(_) => vmap((actor, seen), one),
        }
    })?;
    let act = lower_kept(&format!("{name}_act"), &act)?;
    let greedily = lower_kept(&format!("{name}_act_greedily"), &greedily)?;
    let taken =
        &[("parameters", Parameter), ("actor", State), ("observation", Input), ("key", Key)];
    let given = &["action", "actor"];
    let drawn = format!("an action drawn from the policy, for {of}");
    let best = format!("the action that the policy takes to be best, for {of}");
    Ok([
        Portable::new("act", drawn, act, taken, given),
        Portable::new("act_greedily", best, greedily, &taken[..3], given),
    ])
}
