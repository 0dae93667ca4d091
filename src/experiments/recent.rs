//! The returns of the last episodes.

use std::collections::VecDeque;

use anyhow::Result;
use podracer_runtime::{Checkpoint, HostArray};
use podracer_stdlib::anakin::Episodes;

/// Their name in a checkpoint.
const NAME: &str = "recent_returns";

/// The returns of the last episodes that ended, at most [`Episodes::KEPT`], oldest first.
#[derive(Default)]
pub struct RecentReturns(VecDeque<f32>);

impl RecentReturns {
    /// Those of a checkpoint; none at the start of a run.
    pub fn restored(from: Option<&Checkpoint>) -> Result<Self> {
        let Some(checkpoint) = from else {
            return Ok(RecentReturns::default());
        };
        Ok(RecentReturns(checkpoint.array(NAME)?.to_vec()?.into()))
    }

    /// Adds them to a checkpoint.
    pub fn save(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let returns = HostArray::from_slice([self.0.len()], self.0.make_contiguous())?;
        checkpoint.insert("", [(NAME.to_owned(), returns)]);
        Ok(())
    }

    /// Adds those of the episodes that ended since, and gives all that are kept.
    pub fn with(&mut self, ended: impl IntoIterator<Item = f32>) -> Vec<f32> {
        self.0.extend(ended);
        let surplus = self.0.len().saturating_sub(Episodes::KEPT);
        self.0.drain(..surplus);
        self.0.iter().copied().collect()
    }
}
