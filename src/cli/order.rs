//! The first process's orders to all other processes of a training, and the error of a training
//! that did not begin.

use anyhow::{Context, Result};
use podracer_runtime::pjrt::World;

/// The next joint step of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A call of the compiled loop.
    Advance,
    /// A checkpoint, with or without the agent's store.
    Save { store: bool },
    /// The end of the training, when it is done or interrupted.
    End { done: bool },
}

impl Order {
    const ALL: [Order; 5] = [
        Order::Advance,
        Order::Save { store: false },
        Order::Save { store: true },
        Order::End { done: false },
        Order::End { done: true },
    ];

    /// Sends the order to all other processes.
    pub(super) fn tell(self, world: Option<World>) -> Result<()> {
        if let Some(world) = world {
            let code = Order::ALL.iter().position(|&one| one == self).unwrap_or_default();
            world.hear_first(&[code as u8])?;
        }
        Ok(())
    }

    /// Waits for the first process's order.
    pub(super) fn hear(world: World) -> Result<Self> {
        let code = world.hear_first(&[])?.first().copied();
        let order = code.and_then(|code| Order::ALL.get(usize::from(code)));
        order.copied().context("the first process gives an order that is not known")
    }
}

/// The error of a training that did not begin in one of the processes. The first process reports
/// it.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub(super) struct NotBegun {
    pub(super) problem: String,
    /// True in the process that reports it.
    pub(super) tells: bool,
    /// True if the user made a mistake.
    pub(super) mistake: bool,
}
