//! The learner's description of the run for its workers.

use podracer_envs::host::HostSpec;

use crate::proto;
use crate::spaces::{spaces_from_wire, spaces_to_wire};

/// Description of a run for workers: its identity, environment and spaces.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDescription {
    /// Identity of the run: the same after a restart from a checkpoint, another for another run.
    pub id: String,
    /// Name of the environment in the registry.
    pub environment: String,
    /// All settings of the environment, a JSON object.
    pub settings: String,
    /// Spaces of one environment. `environments` is the greatest number for one worker.
    pub spec: HostSpec,
    /// Steps of a rollout, which environments of the DSL use to draw their keys.
    pub unroll: usize,
}

impl RunDescription {
    pub(crate) fn to_wire(&self) -> proto::Run {
        proto::Run {
            protocol: crate::PROTOCOL,
            id: self.id.clone(),
            environment: self.environment.clone(),
            settings: self.settings.clone(),
            spaces: Some(spaces_to_wire(&self.spec)),
            most_environments: u32::try_from(self.spec.environments).unwrap_or(u32::MAX),
            unroll: u32::try_from(self.unroll).unwrap_or(u32::MAX),
        }
    }

    /// Reads a message.
    pub(crate) fn from_wire(run: proto::Run) -> Result<Self, String> {
        if run.protocol == 0 {
            return Err("the learner does not say which protocol it speaks".to_owned());
        }
        let spaces = run.spaces.ok_or("the learner sent no spaces")?;
        let spec = spaces_from_wire(&spaces, run.most_environments as usize)
            .map_err(|problem| format!("the learner's spaces: {problem}"))?;
        let unroll = run.unroll as usize;
        Ok(RunDescription {
            id: run.id,
            environment: run.environment,
            settings: run.settings,
            spec,
            unroll,
        })
    }
}
