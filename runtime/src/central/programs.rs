//! The programs of a run, traced and lowered: everything that is scheduled, before any device is
//! involved.

use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::{
    DType, Key, Log, Spec, TensorType, collect, i32 as i32_spec, trace, u32 as u32_spec,
};
use podracer_envs::host::HostSpec;

use crate::Placement;
use crate::learning::programs::{ALONE, Traces, expect, same};
use crate::learning::{HostLoopFunctions, SebulbaError, SebulbaLoop, SebulbaProgram, SebulbaShape};

/// The programs of a run with central inference.
#[derive(Clone, Debug)]
pub struct CentralLoop {
    pub(super) learning: SebulbaLoop,
    /// The programs for each size of a batch, the largest first.
    pub(super) sized: Vec<Sized>,
    pub(super) restart: SebulbaProgram,
    pub(super) unrolls: SebulbaProgram,
    pub(super) shards: SebulbaProgram,
}

/// The programs for batches of one size.
#[derive(Clone, Debug)]
pub(super) struct Sized {
    /// Number of lanes, `B`.
    pub(super) size: usize,
    pub(super) act: SebulbaProgram,
    /// Types of the reports from `check` and `debug_print` in `act`: its last results.
    pub(super) log: Spec<Log>,
    pub(super) take_out: SebulbaProgram,
}

impl CentralLoop {
    /// Traces all programs, and lowers them with these groups of simplifications. `shape.threads` are the inference devices,
    /// `environments` are the lanes of each, and `largest` is the greatest size of a batch.
    ///
    /// # Errors
    /// As [`SebulbaLoop::trace`].
    #[track_caller]
    pub fn trace<F: HostLoopFunctions>(
        name: &str,
        shape: SebulbaShape,
        environments: &HostSpec,
        largest: usize,
        functions: &F,
        simplify: &Simplify,
    ) -> Result<Self, SebulbaError> {
        let (learning, traces) =
            SebulbaLoop::traces(name, shape, environments, functions, simplify)?;
        let Traces { lowering, nets, actor, shard } = traces;
        let unrolls = trace((u32_spec([1]),), |(_,)| functions.unrolls())?;
        let kept = unrolls.results().clone();
        let shards = trace((&kept,), |(unrolls,)| functions.shards(unrolls))?;
        for share in shards.results().iter() {
            same("`shards` gives what `finish` does not", &shard, share)?;
        }
        let lanes = environments.environments;
        let mask = TensorType::new(DType::Bool, [lanes]);
        let restart =
            trace((&actor, u32_spec([2]), i32_spec([]), mask), |(actor, key, first, lanes)| {
                (functions.restart(actor, Key::from_words(key), first, lanes),)
            })?;
        same("`restart` changes the actor's state", &actor, &restart.results().0.0)?;
        let sized = sizes(largest).into_iter().map(|size| {
            let batch = HostSpec { environments: size, ..environments.clone() };
            let (outcome, each) = (batch.outcome(), || i32_spec([size]));
            let act = trace((&nets, &actor, &outcome, each()), |(nets, actor, outcome, lanes)| {
                collect(|| functions.act_in(&nets, actor, outcome, lanes))
            })?;
            let (acted, log) = &**act.results();
            let (action, acted) = &**acted;
            expect("`act_in` gives actions", &batch.action_type(), action)?;
            same("`act_in` changes the actor's state", &actor, acted)?;
            // The memory is the first argument, because the results are written into it.
            let take_out = trace(
                (&kept, &actor, &outcome, each(), each()),
                |(unrolls, actor, outcome, lanes, rows)| {
                    (functions.take_out(unrolls, &actor, outcome, lanes, rows),)
                },
            )?;
            same("`take_out` changes the unrolls", &kept, &take_out.results().0.0)?;
            Ok(Sized {
                size,
                log: Spec::clone(log),
                act: lowering.program("act", ALONE, &act)?,
                take_out: lowering.program("take_out", ALONE, &take_out)?,
            })
        });
        Ok(CentralLoop {
            sized: sized.collect::<Result<_, SebulbaError>>()?,
            restart: lowering.program("restart", ALONE, &restart)?,
            unrolls: lowering.program("unrolls", ALONE, &unrolls)?,
            shards: lowering.program("shards", ALONE, &shards)?,
            learning,
        })
    }

    /// The programs that Sebulba also has.
    #[must_use]
    pub fn learning(&self) -> &SebulbaLoop {
        &self.learning
    }

    /// The programs that run repeatedly: `act` and `take_out` of the largest batch, `shards`, and
    /// `learn`.
    #[must_use]
    pub fn programs(&self) -> [&SebulbaProgram; 4] {
        let [_, _, learn] = self.learning.programs();
        [&self.sized[0].act, &self.sized[0].take_out, &self.shards, learn]
    }

    /// The sizes of batches, the largest first.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.sized.iter().map(|sized| sized.size)
    }

    /// The greatest size of a batch.
    pub(super) fn largest(&self) -> usize {
        self.sized[0].size
    }

    /// True if learning keeps per-lane data across iterations. Then the unrolls of a lane are
    /// always in its row, and an iteration has one unroll from every lane. Otherwise unrolls are
    /// learnt from in the order of completion.
    #[must_use]
    pub fn keeps_rows(&self) -> bool {
        let store = |leaf: &(String, TensorType, Placement)| leaf.2 == Placement::Sharded;
        self.learning.state.iter().any(store) || self.learning.replay.is_some()
    }
}

/// The sizes of batches up to the greatest. There are few sizes, because each is a program to
/// compile. In each size except the smallest, at least a quarter of a batch is not padding.
fn sizes(largest: usize) -> Vec<usize> {
    let mut sizes = vec![largest.max(1)];
    for part in [4, 16] {
        let size = largest.div_ceil(part).max(1);
        if sizes.last().is_some_and(|&last| size < last) {
            sizes.push(size);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_few_sizes() {
        assert_eq!(super::sizes(1), [1]);
        assert_eq!(super::sizes(3), [3, 1]);
        assert_eq!(super::sizes(64), [64, 16, 4]);
        assert_eq!(super::sizes(100), [100, 25, 7]);
    }
}
