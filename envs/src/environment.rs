//! The trait of environments, and the results of their steps.

use crate::space::Space;
use crate::space_tree::Spaces;
use crate::wrappers::{
    AutoReset, FlattenObservation, FrameStack, RewardChange, StickyActions, TimeLimit,
    TransformReward, WithStatistics,
};
use podracer_dsl::prelude::*;

/// Result of a step beside the next state.
#[derive(Tree, Clone, Copy)]
pub struct TimeStep<O: Tree = Tensor> {
    /// Observation after the step; at an episode's end that of the final state, before any reset.
    pub observation: O,
    /// Reward of the step. `f32[]`
    pub reward: Tensor,
    /// True if the episode ended by itself. No step follows, so the value of `observation` counts as 0. `bool[]`
    pub terminated: Tensor,
    /// True if the episode was cut off from outside, by a time limit. The steps that would have followed have a value, that
    /// of `observation`. Never true together with `terminated`. `bool[]`
    pub truncated: Tensor,
}

impl<O: Tree> TimeStep<O> {
    /// A step of an environment that never truncates.
    #[track_caller]
    pub fn new(observation: O, reward: Tensor, terminated: Tensor) -> Self {
        TimeStep { observation, reward, terminated, truncated: constant(false) }
    }

    /// True if the episode is over, terminated or truncated. `bool[]`
    #[track_caller]
    pub fn done(&self) -> Tensor {
        self.terminated | self.truncated
    }

    /// Discount of the value of `observation`: 0 if terminated, `gamma` otherwise, also for a truncated episode, as its
    /// value is that of going on. `f32[]`
    #[track_caller]
    pub fn discount(&self, gamma: f64) -> Tensor {
        select(self.terminated, 0.0, gamma)
    }
}

/// An environment written in the DSL, one at a time: `vmap` makes batches.
///
/// Act on [`observe`](Environment::observe) of the state, learn from the [`TimeStep`]: under
/// [`auto_reset`](Environment::auto_reset) the state is already that of the next episode while the time step still has
/// the end of the last one.
pub trait Environment: Clone + 'static {
    /// Everything that the next step depends on. Scalar fields batch best.
    type State: Tree;

    /// Input of the agent: a tensor, or a tree of them, such as a struct. The built-in networks read a tensor, which
    /// [`flatten_observation`](Environment::flatten_observation) makes of a tree; an agent of one's own may read the tree.
    type Observation: Tree;

    /// Checks that settings fit together, each of which is in its range: what a program says of an environment before it makes one.
    ///
    /// # Errors
    /// Settings that do not fit, as a sentence that names them.
    fn check_settings(&self) -> Result<(), String> {
        Ok(())
    }

    /// The first state of an episode.
    fn initial_state(&self, key: Key) -> Self::State;

    /// Takes one step. `action` has the type of [`action_space`](Environment::action_space). The loops
    /// [clip](Space::clip_action) its numbers to their bounds.
    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<Self::Observation>);

    /// The observation of a state.
    fn observe(&self, state: Self::State) -> Self::Observation;

    /// The type and bounds of the observation: a [`Space`] for a tensor, a tree of spaces for a tree; see [`Spaces`].
    fn observation_space(&self) -> Spaces<Self::Observation>;

    /// The type and bounds of the action.
    fn action_space(&self) -> Space;

    /// The actions that are allowed in a state: bool `[n]`, true where allowed, for a discrete action space of `n`
    /// values. At least one is true wherever an episode goes on. `None` if every action of the space is always allowed;
    /// whether there is a mask must not depend on the state.
    ///
    /// For a multi-discrete space the masks of the elements stand one behind the other, bool `[n0 + n1 + ..]`: what one
    /// element may be cannot depend on the choice of another, as the elements are drawn independently.
    fn legal_actions(&self, state: &Self::State) -> Option<Tensor> {
        let _ = state;
        None
    }

    /// A picture of a state, u8 `[height, width, 3]`: [`render::Canvas`](crate::render::Canvas) draws one. `podracer play` shows
    /// it; training never asks for it. `None` if the environment draws nothing; whether there is a picture must not depend on
    /// the state.
    fn render(&self, state: &Self::State) -> Option<Tensor> {
        let _ = state;
        None
    }

    /// A state as text, u8 `[rows, columns]`: characters of ASCII, such as a board in the format that it is read from. `podracer play --output board.txt` writes
    /// that of the last state. `None` if the environment has none; whether there is text must not depend on the state.
    fn text(&self, state: &Self::State) -> Option<Tensor> {
        let _ = state;
        None
    }

    /// Share of the task that is done in a state, f32 `[]` from 0 to 1, such as that of the wires that are connected. Its mean over the last
    /// states of episodes is the metric `episode_success`, for tasks of which the return says little. `None` if there is no such share; whether
    /// there is must not depend on the state.
    fn success(&self, state: &Self::State) -> Option<Tensor> {
        let _ = state;
        None
    }

    /// Number of players who take turns, 1 or 2. With 2, the observation and the legal actions are those of the player to move, the
    /// reward is that of the player who just moved, and the next step is the other player's; see [`boards`](crate::boards).
    fn players(&self) -> usize {
        1
    }

    /// A state that steps and looks as any other state with this observation does: what an agent needs that searches with the
    /// environment itself as its model. What no step, observation or mask depends on, such as which player began, may differ, and so may
    /// the number of forced steps before the end of a game whose outcome is settled. `None` if observations do not tell; whether they do
    /// must not depend on the observation.
    fn state_of(&self, observation: Self::Observation) -> Option<Self::State> {
        let _ = observation;
        None
    }

    /// False if `truncated` is never true. Agents then need not keep the last observations of episodes, from which they
    /// would bootstrap.
    fn truncates(&self) -> bool {
        true
    }

    /// True if `step` begins the next episode itself, as under [`AutoReset`]: then nothing around may do so too.
    fn resets(&self) -> bool {
        false
    }

    /// The first state of the episode after `finished`, for [`AutoReset`]. A wrapper keeps here the part of its state that
    /// outlives episodes, such as statistics; environments themselves have no such part.
    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        let _ = finished;
        self.initial_state(key)
    }

    /// Cuts episodes off after `steps` steps, as `truncated`.
    #[track_caller]
    fn time_limit(self, steps: usize) -> TimeLimit<Self>
    where
        Self: Sized,
    {
        TimeLimit::new(self, steps)
    }

    /// Shows an observation of several leaves as one vector f32 `[n]`; see [`FlattenObservation`].
    fn flatten_observation(self) -> FlattenObservation<Self>
    where
        Self: Sized,
    {
        FlattenObservation::new(self)
    }

    /// Shows the last `frames` observations as one, the newest last; see [`FrameStack`].
    #[track_caller]
    fn frame_stack(self, frames: usize) -> FrameStack<Self>
    where
        Self: Sized,
    {
        FrameStack::new(self, frames)
    }

    /// Takes the action of the step before with this probability; see [`StickyActions`].
    #[track_caller]
    fn sticky_actions(self, probability: f64) -> StickyActions<Self>
    where
        Self: Sized,
    {
        StickyActions::new(self, probability)
    }

    /// Multiplies rewards by `scale`.
    #[track_caller]
    fn scale_reward(self, scale: f64) -> TransformReward<Self>
    where
        Self: Sized,
    {
        TransformReward::new(self, RewardChange::Scale(scale))
    }

    /// Clips rewards to `[low, high]`; an infinite end clips nothing.
    #[track_caller]
    fn clip_reward(self, low: f64, high: f64) -> TransformReward<Self>
    where
        Self: Sized,
    {
        TransformReward::new(self, RewardChange::Clip { low, high })
    }

    /// Keeps the return and length of the running and of the last finished episode in the state.
    fn with_statistics(self) -> WithStatistics<Self>
    where
        Self: Sized,
    {
        WithStatistics::new(self)
    }

    /// Begins the next episode in the step that ends one. The types of state and observation stay the same.
    fn auto_reset(self) -> AutoReset<Self>
    where
        Self: Sized,
    {
        AutoReset::new(self)
    }
}

/// Writes the methods of a wrapper that answer as the wrapped [`Environment`] does: every method that a wrapper can forward, except
/// those that are listed after `except`, which the wrapper writes itself or leaves at their default.
///
/// The first argument is the field with the wrapped environment. The second argument tells the wrapped environment's state, by reference,
/// from the wrapper's. `Tensor` must be in scope. A new method of [`Environment`] is added to this macro, and to no wrapper.
///
/// ```
/// use podracer_dsl::prelude::*;
/// use podracer_envs::{Catch, Environment, TimeStep, forward};
///
/// /// An environment that pays nothing.
/// #[derive(Clone)]
/// struct Unpaid<E>(E);
///
/// impl<E: Environment> Environment for Unpaid<E> {
///     type State = E::State;
///     type Observation = E::Observation;
///
///     fn initial_state(&self, key: Key) -> E::State {
///         self.0.initial_state(key)
///     }
///     fn step(&self, state: E::State, action: Tensor, key: Key) -> (E::State, TimeStep<E::Observation>) {
///         let (state, timestep) = self.0.step(state, action, key);
///         (state, TimeStep { reward: constant(0.0), ..timestep })
///     }
///     fn observe(&self, state: E::State) -> E::Observation {
///         self.0.observe(state)
///     }
///     fn next_episode(&self, finished: E::State, key: Key) -> E::State {
///         self.0.next_episode(finished, key)
///     }
///     forward!(0, |state| state, except text);
/// }
/// assert_eq!(Unpaid(Catch::default()).action_space(), Catch::default().action_space());
/// ```
#[macro_export]
macro_rules! forward {
    // A method in the list of exceptions is not written.
    (@observation_space [observation_space $($rest:ident)*] $method:tt) => {};
    (@action_space [action_space $($rest:ident)*] $method:tt) => {};
    (@players [players $($rest:ident)*] $method:tt) => {};
    (@truncates [truncates $($rest:ident)*] $method:tt) => {};
    (@resets [resets $($rest:ident)*] $method:tt) => {};
    (@legal_actions [legal_actions $($rest:ident)*] $method:tt) => {};
    (@render [render $($rest:ident)*] $method:tt) => {};
    (@text [text $($rest:ident)*] $method:tt) => {};
    (@success [success $($rest:ident)*] $method:tt) => {};
    (@$name:ident [$except:ident $($rest:ident)*] $method:tt) => {
        $crate::forward!(@$name [$($rest)*] $method);
    };
    (@$name:ident [] { $($method:tt)* }) => { $($method)* };
    ($inner:tt, |$state:ident| $inner_state:expr $(, except $($except:ident),+)?) => {
        $crate::forward!(@observation_space [$($($except)+)?] {
            fn observation_space(&self) -> $crate::Spaces<Self::Observation> {
                self.$inner.observation_space()
            }
        });
        $crate::forward!(@action_space [$($($except)+)?] {
            fn action_space(&self) -> $crate::Space {
                self.$inner.action_space()
            }
        });
        $crate::forward!(@players [$($($except)+)?] {
            fn players(&self) -> usize {
                self.$inner.players()
            }
        });
        $crate::forward!(@truncates [$($($except)+)?] {
            fn truncates(&self) -> bool {
                self.$inner.truncates()
            }
        });
        $crate::forward!(@resets [$($($except)+)?] {
            fn resets(&self) -> bool {
                self.$inner.resets()
            }
        });
        $crate::forward!(@legal_actions [$($($except)+)?] {
            fn legal_actions(&self, $state: &Self::State) -> Option<Tensor> {
                self.$inner.legal_actions($inner_state)
            }
        });
        $crate::forward!(@render [$($($except)+)?] {
            fn render(&self, $state: &Self::State) -> Option<Tensor> {
                self.$inner.render($inner_state)
            }
        });
        $crate::forward!(@text [$($($except)+)?] {
            fn text(&self, $state: &Self::State) -> Option<Tensor> {
                self.$inner.text($inner_state)
            }
        });
        $crate::forward!(@success [$($($except)+)?] {
            fn success(&self, $state: &Self::State) -> Option<Tensor> {
                self.$inner.success($inner_state)
            }
        });
    };
}
