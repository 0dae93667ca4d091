//! Episodes that are recorded during a training, as films in its run directory.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use podracer_envs::host::StepMemory;

use super::ready::Ready;
use crate::evaluation::Play;
use crate::play::{Animation, Format, Pictures, Reel};
use crate::run_directory::RunDirectory;
use crate::training::{Evaluator, Run};

/// Pictures a second, and pixels of a picture's longer side.
const LOOK: (f64, usize) = (15.0, 320);

/// A recorder of an episode now and then.
pub(super) struct Recorder {
    evaluator: Box<dyn Evaluator>,
    pictures: Pictures,
    /// Iterations from one episode to the next.
    pub(super) every: u64,
}

impl Recorder {
    /// Compiles what plays; `None` for a training of which nothing is recorded.
    pub(super) fn compile(ready: &Ready) -> Result<Option<Self>> {
        let train = &ready.settings.train;
        let Some(every) = train.record_every else { return Ok(None) };
        let play =
            Play { episodes: 1, seed: train.seed, sampled: train.eval_sampled, allow_nan: true };
        let environment = &ready.settings.environment;
        let (stage, pictures) = ready.environment.stage(environment, ready.device())?;
        let evaluator = ready.plays()?.evaluator(stage, ready.device(), &play)?;
        Ok(Some(Recorder { evaluator, pictures, every }))
    }

    /// Records an episode. One that `interrupt` ends early is not kept.
    pub(super) fn record(
        &mut self,
        iterations: u64,
        run: &mut dyn Run,
        directory: &RunDirectory,
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let failed = || format!("the episode after {iterations} iterations cannot be recorded");
        let mut file = Vec::new();
        let mut film = Animation::new(&mut file, Format::Gif, LOOK);
        let mut reel = Reel::new(self.pictures.clone());
        let mut over = false;
        let watch = &mut |memory: &StepMemory| {
            let shown = if over { None } else { reel.show(memory) };
            let Some(shown) = shown else { return Ok(()) };
            over = shown.end.is_some();
            shown.picture.map_or(Ok(()), |picture| film.add(&picture))
        };
        self.evaluator.play(&run.checkpoint()?, interrupt, watch).with_context(failed)?;
        if !over {
            return Ok(());
        }
        film.finish().with_context(failed)?;
        directory.write_episode(iterations, &file)
    }
}
