//! Episodes that are recorded during a training, as animations in its run directory.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use podracer_envs::host::StepMemory;

use super::ready::Ready;
use crate::evaluation::{AgentView, Play};
use crate::play::{Animation, Format, Frame, Picture, Pictures, Reel};
use crate::run_directory::{FilmName, RunDirectory};
use crate::training::{Evaluator, Run};

/// Pictures per second.
const PER_SECOND: f64 = 20.0;
/// Pixels of a picture's longer side.
const SIDE: usize = 320;

/// A recorder of occasional episodes.
pub(crate) struct Recorder {
    evaluator: Box<dyn Evaluator>,
    pictures: Pictures,
    /// Number of iterations between recorded episodes.
    pub(crate) every: u64,
}

impl Recorder {
    /// Compiles the programs that play; `None` for a training without recordings.
    pub(crate) fn compile(ready: &Ready) -> Result<Option<Self>> {
        let train = &ready.settings.train;
        let Some(every) = train.record_every else { return Ok(None) };
        let (seed, sampled) = (train.seed, train.eval_sampled);
        let play = Play { episodes: 1, seed, sampled, allow_nan: true, views: true };
        let environment = &ready.settings.environment;
        let (stage, pictures) = ready.environment.stage(environment, ready.device())?;
        let evaluator = ready.plays()?.evaluator(stage, ready.device(), &play)?;
        Ok(Some(Recorder { evaluator, pictures, every }))
    }

    /// Records an episode: an animation of the environment's pictures, and of the agent's own
    /// pictures if it has any. An episode that `interrupt` ends early is not kept.
    pub(crate) fn record(
        &mut self,
        (iterations, env_steps): (u64, u64),
        run: &mut dyn Run,
        directory: &mut RunDirectory,
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let failed = || format!("the episode after {iterations} iterations cannot be recorded");
        let (mut environment, mut agent) = (Vec::new(), Vec::new());
        let film = |file| Animation::new(file, Format::Gif, PER_SECOND);
        let (mut of_environment, mut of_agent) = (film(&mut environment), film(&mut agent));
        let mut reel = Reel::new(self.pictures.clone());
        let mut over = false;
        let watch = &mut |memory: &StepMemory, view: Option<AgentView>| {
            let shown = if over { None } else { reel.show(memory, view) };
            let Some(shown) = shown else { return Ok(()) };
            over = shown.end.is_some();
            let Some(Frame { picture, view }) = shown.frame else { return Ok(()) };
            of_environment.add(&picture.sized(SIDE))?;
            view.and_then(|view| Picture::of_agent(&view))
                .map_or(Ok(()), |picture| of_agent.add(&picture.sized(SIDE)))
        };
        self.evaluator.play(&run.checkpoint()?, interrupt, watch).with_context(failed)?;
        if !over {
            return Ok(());
        }
        of_environment.finish().with_context(failed)?;
        let drawn = of_agent.has_pictures();
        match drawn {
            true => of_agent.finish().map(drop).with_context(failed)?,
            false => drop(of_agent),
        }
        let mut record = |of_agent, film: &[u8]| {
            directory.record_film(&FilmName { iterations, of_agent }, env_steps, film)
        };
        record(false, &environment)?;
        if drawn { record(true, &agent) } else { Ok(()) }
    }
}
