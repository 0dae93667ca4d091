//! The returns of the last episodes.

use std::collections::VecDeque;

use podracer_stdlib::anakin::Episodes;

/// The returns of the last episodes that ended, at most [`Episodes::KEPT`], oldest first.
#[derive(Default)]
pub struct RecentReturns(VecDeque<f32>);

impl RecentReturns {
    /// Adds those of the episodes that ended since, and gives all that are kept.
    pub fn with(&mut self, ended: impl IntoIterator<Item = f32>) -> Vec<f32> {
        self.0.extend(ended);
        let surplus = self.0.len().saturating_sub(Episodes::KEPT);
        self.0.drain(..surplus);
        self.0.iter().copied().collect()
    }
}
