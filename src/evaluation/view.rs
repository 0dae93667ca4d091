//! An agent's view of a state, on the host.

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_envs::host::HostSpec;
use podracer_rl::learn::View;
use podracer_runtime::{Array, Device, Host};

/// An agent's [`View`] of a state, and the action that it took in that state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentView {
    /// The elements of the action: a single element for a discrete action.
    pub action: Vec<f64>,
    /// True if the action is one of a discrete space.
    pub discrete: bool,
    /// The names of the actions, or of the action's elements; empty if they have none.
    pub names: Vec<String>,
    /// [`View::value`].
    pub value: Option<f64>,
    /// [`View::probabilities`]; empty for an agent without them.
    pub probabilities: Vec<f64>,
    /// [`View::action_values`]; empty for an agent without them.
    pub action_values: Vec<f64>,
    /// [`View::picture`]: u8 `[height, width, 3]`.
    pub picture: Option<Array>,
}

impl AgentView {
    /// The view of the first lane.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn read(
        view: &Device<Option<View>>,
        action: &[u8],
        spec: &HostSpec,
    ) -> Result<Self> {
        let ty = spec.action.ty();
        let of_action = action.get(..ty.bytes()).unwrap_or_default();
        let action = Array::from_bytes(ty, of_action)?.to_f64();
        let host = view.to_host()?;
        let Some(view) = host.as_ref() else { return Ok(AgentView::default()) };
        let first = |leaf: Option<&Host<Tensor>>| leaf.map(|leaf| leaf.index_leading(0));
        let numbers = |leaf| first(leaf).map_or_else(Vec::new, |leaf| leaf.to_f64());
        Ok(AgentView {
            action,
            discrete: matches!(spec.action, Space::Discrete { .. }),
            names: spec.action.names(),
            value: numbers(view.value.as_ref()).first().copied(),
            probabilities: numbers(view.probabilities.as_ref()),
            action_values: numbers(view.action_values.as_ref()),
            picture: first(view.picture.as_ref()),
        })
    }
}
