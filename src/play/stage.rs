//! Single environments on the host with a picture of every state.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use podracer_dsl::prelude::*;
use podracer_envs::host::server::Servers;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep};
use podracer_envs::{Environment, Space, TimeStep, check_environment, forward};
use podracer_rl::host_loop::HostLoop;
use podracer_runtime::{Client, CompiledEnvironments};

use super::Picture;
use crate::sebulba::compiled_environments;

/// The pictures of the last reset or step: of the state after it, and, if an episode ended, of the
/// next episode's first state.
#[derive(Clone, Debug, Default)]
pub struct Pictures(Arc<Mutex<Vec<Picture>>>);

impl Pictures {
    /// Takes the pictures, oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<Picture> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, pictures: impl IntoIterator<Item = Picture>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = pictures.into_iter().collect();
    }
}

/// One environment with pictures, as a batch.
///
/// # Errors
/// The mistakes of the environment; an environment without pictures; errors of the runtime.
pub fn of_dsl<E: Environment<Observation = Tensor>>(
    environment: E,
    client: &Client,
    device: usize,
) -> Result<(Box<dyn HostEnvironment>, Pictures)> {
    check_environment(&environment)?;
    let draws = eval_shape(key(), |key| environment.render(&environment.initial_state(key)))?;
    if draws.leaves().is_empty() {
        let environments = compiled_environments(client, device, environment, 1, 1)?;
        return of_observations(Box::new(environments));
    }
    let pictured = Pictured { environment };
    let state =
        eval_shape(key(), |key| HostLoop::new(pictured.clone(), 1, 1).begin(key, scalar(0)).0)?;
    let drawing = |name: &str| -> Result<Drawing> {
        let picture = place(&state, &format!("environment.{name}.picture"));
        let text = place(&state, &format!("environment.{name}.text[0]"));
        Ok(Drawing { picture: picture.context("the state has a picture")?, text })
    };
    let (shown, ended) = (drawing("shown")?, drawing("ended")?);
    let environments = compiled_environments(client, device, pictured, 1, 1)?;
    let pictures = Pictures::default();
    let drawn = Drawn { environments, shown, ended, pictures: pictures.clone() };
    Ok((Box::new(drawn), pictures))
}

/// One environment with its observations as pictures.
///
/// # Errors
/// Observations that are neither images nor boards.
pub fn of_observations(
    environments: Box<dyn HostEnvironment>,
) -> Result<(Box<dyn HostEnvironment>, Pictures)> {
    watched(environments, "it draws none", "; write `Environment::render` for it")
}

/// One environment of servers with
/// [`ServerOptions::pictures`](podracer_envs::host::server::ServerOptions::pictures), with the
/// pictures that its server draws, or otherwise with its observations.
///
/// # Errors
/// A server without pictures, if the observations are neither images nor boards.
pub fn of_servers(environments: Servers) -> Result<(Box<dyn HostEnvironment>, Pictures)> {
    match environments.picture_size() {
        Ok([height, width]) => {
            let ty = TensorType::new(U8, [height, width, 3]);
            let pictures = Pictures::default();
            let drawn = DrawnInServer { environments, ty, pictures: pictures.clone() };
            Ok((Box::new(drawn), pictures))
        }
        Err(why) => {
            let why = why.to_owned();
            watched(Box::new(environments), &why, "")
        }
    }
}

/// One environment with its observations, if it has no pictures for the reason `why`.
fn watched(
    environments: Box<dyn HostEnvironment>,
    why: &str,
    remedy: &str,
) -> Result<(Box<dyn HostEnvironment>, Pictures)> {
    let space = environments.spec().observation.clone();
    let zeros = vec![0; space.ty().bytes()];
    Picture::of_observation(&space, &zeros).with_context(|| {
        format!(
            "there is no picture of the environment: {why}, and its observation, {}, is neither an image nor a board{remedy}",
            space.ty()
        )
    })?;
    let pictures = Pictures::default();
    let watched = Watched { environments, space, pictures: pictures.clone() };
    Ok((Box::new(watched), pictures))
}

/// The bytes of a leaf in the snapshot of a state, and its type, without the axis of environments.
fn place<T: Tree>(state: &Spec<T>, name: &str) -> Option<(Range<usize>, TensorType)> {
    let mut from = 0;
    for (path, ty) in state.leaves() {
        let to = from + ty.bytes();
        if path.to_string() == name {
            return Some((from..to, ty.unstacked()));
        }
        from = to;
    }
    None
}

/// An environment with a state that contains its own picture.
#[derive(Clone)]
struct Pictured<E> {
    environment: E,
}

/// The state of a [`Pictured`] environment.
#[derive(Tree, Clone)]
struct PicturedState<S: Tree> {
    environment: S,
    /// Picture and text of this state.
    shown: Shown,
    /// Picture and text of the previous episode's last state.
    ended: Shown,
}

/// Picture and text of a state.
#[derive(Tree, Clone)]
struct Shown {
    /// u8 `[height, width, 3]`
    picture: Tensor,
    /// u8 `[rows, columns]`, if the environment has text.
    text: Vec<Tensor>,
}

impl<E: Environment<Observation = Tensor>> Pictured<E> {
    #[track_caller]
    fn draw(&self, environment: E::State, ended: Option<Shown>) -> PicturedState<E::State> {
        let picture = self.environment.render(&environment);
        let picture = picture.unwrap_or_else(|| zeros(U8, [1, 1, 3]));
        let text = self.environment.text(&environment).into_iter().collect();
        let shown = Shown { picture, text };
        PicturedState { environment, ended: ended.unwrap_or_else(|| shown.clone()), shown }
    }
}

impl<E: Environment<Observation = Tensor>> Environment for Pictured<E> {
    type State = PicturedState<E::State>;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Self::State {
        self.draw(self.environment.initial_state(key), None)
    }
    fn step(&self, state: Self::State, action: Tensor, key: Key) -> (Self::State, TimeStep) {
        let (environment, timestep) = self.environment.step(state.environment, action, key);
        (self.draw(environment, Some(state.ended)), timestep)
    }
    fn observe(&self, state: Self::State) -> Tensor {
        self.environment.observe(state.environment)
    }
    forward!(environment, |state| &state.environment, except resets, render, text);

    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        let first = self.environment.next_episode(finished.environment, key);
        self.draw(first, Some(finished.shown))
    }
}

/// An environment of the DSL with pictures that are read back with its state.
struct Drawn {
    environments: CompiledEnvironments,
    shown: Drawing,
    /// The last episode's last state.
    ended: Drawing,
    pictures: Pictures,
}

/// Bytes of a state's picture and text in a snapshot, and their types.
struct Drawing {
    picture: (Range<usize>, TensorType),
    text: Option<(Range<usize>, TensorType)>,
}

impl Drawing {
    fn of(&self, snapshot: &[u8]) -> Option<Picture> {
        let (place, ty) = &self.picture;
        let picture = Picture::new(ty, snapshot.get(place.clone())?)?;
        match &self.text {
            Some((place, ty)) => Some(picture.with_text(ty, snapshot.get(place.clone())?)),
            None => Some(picture),
        }
    }
}

impl Drawn {
    fn show(&self, ended: bool) -> Result<(), HostError> {
        let bytes = self.environments.snapshot()?.unwrap_or_default();
        let picture = |drawing: &Drawing| {
            let none = || HostError::Snapshot("the state has no picture".to_owned());
            drawing.of(&bytes).ok_or_else(none)
        };
        let last = if ended { Some(picture(&self.ended)?) } else { None };
        self.pictures.put(last.into_iter().chain([picture(&self.shown)?]));
        Ok(())
    }
}

impl HostEnvironment for Drawn {
    fn spec(&self) -> &HostSpec {
        self.environments.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.environments.reset(seed, first, step)?;
        self.show(false)
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.environments.send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.environments.receive(step)?;
        self.show(step.terminated.contains(&1) || step.truncated.contains(&1))
    }
}

/// An environment with a server that draws its pictures.
struct DrawnInServer {
    environments: Servers,
    /// Type of a picture.
    ty: TensorType,
    pictures: Pictures,
}

impl DrawnInServer {
    fn show(&mut self) -> Result<(), HostError> {
        let drawn = self.environments.draw()?;
        self.pictures.put(drawn.iter().filter_map(|bytes| Picture::new(&self.ty, bytes)));
        Ok(())
    }
}

impl HostEnvironment for DrawnInServer {
    fn spec(&self) -> &HostSpec {
        self.environments.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.environments.reset(seed, first, step)?;
        self.show()
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.environments.send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.environments.receive(step)?;
        self.show()
    }
    fn restarts(&self) -> usize {
        self.environments.restarts()
    }
}

/// An environment with observations as pictures.
struct Watched {
    environments: Box<dyn HostEnvironment>,
    space: Space,
    pictures: Pictures,
}

impl Watched {
    fn show(&self, step: &HostStep<'_>) {
        let picture = |bytes: &[u8]| Picture::of_observation(&self.space, bytes);
        let ended = step.terminated.contains(&1) || step.truncated.contains(&1);
        // Only environments that truncate provide an episode's last observation.
        let known = ended && !step.next_observation.is_empty();
        let last = known.then(|| picture(step.next_observation)).flatten();
        self.pictures.put(last.into_iter().chain(picture(step.observation)));
    }
}

impl HostEnvironment for Watched {
    fn spec(&self) -> &HostSpec {
        self.environments.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.environments.reset(seed, first, step)?;
        self.show(step);
        Ok(())
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.environments.send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.environments.receive(step)?;
        self.show(step);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use podracer_envs::host::{NativeCartPole, PixelCatch, Pool, StepMemory};

    use super::*;

    #[test]
    fn an_environment_without_pictures_is_refused() {
        let numbers = Pool::new(&NativeCartPole::new(9), 1);
        let error = of_observations(Box::new(numbers)).err().unwrap().to_string();
        assert!(error.contains("there is no picture of the environment"), "{error}");
        assert!(error.contains("f32[4]") && error.contains("Environment::render"), "{error}");
    }

    #[test]
    fn observations_that_are_images_are_shown() {
        let pixels = Pool::new(&PixelCatch::default(), 1);
        let (mut stage, pictures) = of_observations(Box::new(pixels)).unwrap();
        let mut memory = StepMemory::new(stage.spec());
        stage.reset(0, 0, &mut memory.step()).unwrap();
        let first = pictures.take();
        assert_eq!((first.len(), first[0].height, first[0].width), (1, 84, 84));
        assert_eq!(first[0].pixels.len(), 84 * 84);
        stage.step(&1i32.to_le_bytes(), &mut memory.step()).unwrap();
        let second = pictures.take();
        assert!(second.len() == 1 && second != first && pictures.take().is_empty());
    }
}
