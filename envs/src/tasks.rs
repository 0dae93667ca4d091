//! Environments that are distributions of tasks; each lane or each agent may have its own task.

use crate::any::AnyEnvironment;
use crate::environment::Environment;
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use std::rc::Rc;

/// A distribution of tasks. A task is data of the program: a `vmap` over tasks steps thousands of
/// different worlds, and `[meta]` gives each life of an agent its own task. As an environment it is
/// the world of one task, which its settings choose.
///
/// ```
/// use podracer_dsl::prelude::*;
/// use podracer_envs::{DelayedChains, Environment, Tasks};
///
/// let chains = DelayedChains::default();
/// let observations = trace((key(),), |(key,)| {
///     let (task_key, state_key) = key.split();
///     let tasks = vmap(task_key.split_n(1000), |key| chains.draw(key));
///     vmap((tasks, state_key.split_n(1000)), |(task, key)| {
///         let world = chains.world(task);
///         world.observe(world.initial_state(key))
///     })
/// })?;
/// assert_eq!(observations.results().to_string(), "i32[1000]");
/// # Ok::<(), TraceErrors>(())
/// ```
pub trait Tasks: Environment {
    /// A task, such as the map of a world.
    type Task: Tree;
    /// The environment of a task.
    type World: Environment;

    /// Draws a task from a key. The same key gives the same task everywhere.
    fn draw(&self, key: Key) -> Self::Task;

    /// The world of a task. The worlds of all tasks have the spaces of this environment.
    fn world(&self, task: Self::Task) -> Self::World;
}

/// [`Tasks`] of any type, as [`AnyEnvironment`] is an environment of any type.
#[derive(Clone)]
pub struct AnyTasks(Rc<dyn ErasedTasks>);

/// Object-safe form of [`Tasks`], with an [`AnyTree`] as the task.
trait ErasedTasks {
    fn draw(&self, key: Key) -> AnyTree;
    fn world(&self, task: &AnyTree) -> AnyEnvironment;
}

impl<T: Tasks> ErasedTasks for T {
    fn draw(&self, key: Key) -> AnyTree {
        AnyTree::new(Tasks::draw(self, key))
    }
    fn world(&self, task: &AnyTree) -> AnyEnvironment {
        AnyEnvironment::new(Tasks::world(self, task.get()))
    }
}

impl AnyTasks {
    /// Erases the type of a distribution.
    pub fn new<T: Tasks>(tasks: T) -> Self {
        AnyTasks(Rc::new(tasks))
    }

    /// A task drawn from a key.
    pub fn draw(&self, key: Key) -> AnyTree {
        self.0.draw(key)
    }

    /// The world of a task that this distribution has drawn.
    pub fn world(&self, task: &AnyTree) -> AnyEnvironment {
        self.0.world(task)
    }
}
