//! The check of an agent against the types that loops rely on. An error names the method and the
//! line in the agent.

use super::{Act, Agent, Axes, Input, LaneId, Learn, Mode, Rollout, View};
use podracer_dsl::prelude::*;
use podracer_dsl::{fail, report_at};

/// Checks that an agent's methods trace, except for [`Learn::learn`], and that their results have
/// the types that loops rely on in both modes. Actions must have the action space's type, and
/// memories the type of [`Agent::init_memory`]. `input` has the types of one lane's input, `action`
/// is the action space's type. Nothing runs.
///
/// # Errors
/// Returns all mistakes, with the user's lines.
pub fn check_agent<A: Learn>(
    agent: &A,
    input: &Spec<Input<A::Observation>>,
    action: &TensorType,
) -> Result<(), TraceErrors> {
    let checked = eval_shape((key(), input), |(key, input)| {
        let [state_key, keys @ ..] = [0, 1, 2].map(|i| key.fold_in(i));
        let params = agent.params(&agent.init(state_key));
        let memory = agent.init_memory(LaneId { index: scalar(0), lanes: 1 });
        for (mode, key) in [Mode::Explore, Mode::Greedy].into_iter().zip(keys) {
            let memory = checked_begin_episode(agent, memory.clone());
            let _ = checked_act(agent, &params, memory, input.clone(), mode, key, action);
        }
    });
    checked.map(drop)
}

/// One call of [`Agent::act`]. An action or memory of the wrong type is an error.
#[track_caller]
pub fn checked_act<A: Agent>(
    agent: &A,
    params: &A::Params,
    memory: A::Memory,
    input: Input<A::Observation>,
    mode: Mode,
    key: Key,
    action_type: &TensorType,
) -> Act<A::Memory, A::Extras> {
    let before = memory.spec();
    let _part = part("the agent's act");
    let Act { action, memory, extras } = agent.act(params, memory, input, mode, key);
    Act {
        action: expect_types("act(..).action", action, &Spec(action_type.clone())),
        memory: expect_types("act(..).memory", memory, &before),
        extras,
    }
}

/// One call of [`Agent::view`]. A part with a type other than [`View`] documents is an error.
#[track_caller]
pub fn checked_view<A: Agent>(
    agent: &A,
    params: &A::Params,
    memory: A::Memory,
    input: Input<A::Observation>,
    mode: Mode,
    key: Key,
) -> View {
    let _part = part("the agent's view");
    let View { value, probabilities, action_values, picture } =
        agent.view(params, memory, input, mode, key);
    let checked = |name: &str, leaf: Option<Tensor>, dtype: DType, shape: &[Option<usize>]| {
        let leaf = leaf?;
        let extents = leaf.shape();
        let fits = extents.len() == shape.len()
            && extents
                .iter()
                .zip(shape)
                .all(|(n, wanted)| wanted.is_none_or(|wanted| *n == wanted));
        if leaf.dtype() == dtype && fits {
            return Some(leaf);
        }
        let text = |extent: &Option<usize>| extent.map_or("_".to_owned(), |n| n.to_string());
        let shape: Vec<String> = shape.iter().map(text).collect();
        let message =
            format!("`view(..).{name}` must be {dtype}[{}], got {}", shape.join(","), leaf.ty());
        Some(fail("view", message, &[leaf], leaf.ty()))
    };
    View {
        value: checked("value", value, F32, &[]),
        probabilities: checked("probabilities", probabilities, F32, &[None]),
        action_values: checked("action_values", action_values, F32, &[None]),
        picture: checked("picture", picture, U8, &[None, None, Some(3)]),
    }
}

/// One call of [`Agent::begin_episode`]. A memory with a type other than the previous memory's is
/// an error.
#[track_caller]
pub fn checked_begin_episode<A: Agent>(agent: &A, memory: A::Memory) -> A::Memory {
    let before = memory.spec();
    let _part = part("the agent's begin_episode");
    expect_types("begin_episode(..)", agent.begin_episode(memory), &before)
}

/// The store of an agent at the start of a run.
#[track_caller]
pub(crate) fn checked_store<A: Learn>(
    agent: &A,
    rollout: &Spec<Rollout<A>>,
    axes: &Axes,
) -> A::Store {
    checked_leaves(agent.init_store(rollout, axes))
}

/// Metrics of the run itself. Records and checkpoints are read by these names.
const METRICS_OF_A_RUN: [&str; 6] =
    ["iteration", "iterations", "env_steps", "episodes", "mean_return", "seconds"];

/// The metrics of an iteration. A metric that is not f32 `[]` is an error, and so is a metric with
/// one of the run's names.
#[track_caller]
pub(crate) fn checked_metrics<M: Tree>(metrics: M) -> M {
    let checked = |(path, metric): (Path, Tensor)| {
        let (place, name) = (path.under("learn(..).metrics"), path.to_string());
        if METRICS_OF_A_RUN.contains(&&*name) || name.starts_with("episode_") {
            let message = format!("`{place}` is called like a metric of every run: rename it");
            report_at(metric.made(), "learn", message, &[metric]);
        }
        expect_types(&place, metric, &f32([]))
    };
    let leaves = metrics.paths().into_iter().zip(metrics.leaves()).map(checked);
    metrics.with_leaves(&leaves.collect::<Vec<_>>())
}

/// A store. A scalar in it is an error, because the leading axis of each leaf is divided over the
/// devices.
#[track_caller]
pub(crate) fn checked_leaves<S: Tree>(store: S) -> S {
    for (path, leaf) in store.paths().iter().zip(store.leaves()) {
        if leaf.rank() == 0 {
            let name = path.under("store");
            let message = format!(
                "`{name}` is a scalar, {}: the leading axis of a store is shared out over the learner devices; make it [1]",
                leaf.ty()
            );
            let _ = fail("init_store", message, &[leaf], leaf.ty());
        }
    }
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Tree, Clone)]
    struct Metrics {
        loss: Tensor,
        seconds: Tensor,
        episode_loss: Tensor,
    }

    #[test]
    fn a_metric_with_a_name_of_the_runs_own_is_an_error() {
        let traced = trace(f32([]), |loss| {
            checked_metrics(Metrics { loss, seconds: loss + 1.0, episode_loss: loss + 2.0 })
        });
        let errors = traced.map(drop).expect_err("two names are taken").errors;
        let said = errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>();
        let taken = |name| {
            format!("`learn(..).metrics.{name}` is called like a metric of every run: rename it")
        };
        assert_eq!(said, [taken("seconds"), taken("episode_loss")]);
        assert!(errors.iter().all(|error| error.loc.to_string().starts_with(file!())));
    }
}
