//! The leaves of a step of a batch, in one table: names, types and lengths.

use std::convert::Infallible;

use super::HostSpec;

/// Declares [`StepLeaves`] and what depends on all of its fields. A line is `name: KIND, "phrase", |spec| length;` with the kind `B` for
/// bytes and `F` for floats, and the number of elements in a batch of `spec`.
macro_rules! step_leaves {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ident, $what:literal, |$spec:ident| $length:expr;)*) => {
        /// One value for each leaf of a step: `B` for leaves of bytes, `F` for leaves of floats.
        ///
        /// [`HostStep`](super::HostStep), [`StepMemory`](super::StepMemory) and [`WorkerStep`](super::WorkerStep) hold slices, vectors and
        /// shared bytes in it. Leaves that the environments do not have are empty.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct StepLeaves<B, F> {
            $($(#[doc = $doc])* pub $name: $kind,)*
        }

        /// The leaves with names for messages.
        pub(super) const LEAVES: StepLeaves<(&str, &str), (&str, &str)> =
            StepLeaves { $($name: (stringify!($name), $what),)* };

        const COUNT: usize = [$(stringify!($name),)*].len();

        impl<B, F> StepLeaves<B, F> {
            /// Applies a function to every leaf of bytes, and another function to every leaf of floats.
            ///
            /// # Errors
            /// The first error of the functions, in the order of the fields.
            pub fn try_map<B2, F2, E>(
                self,
                mut bytes: impl FnMut(B) -> Result<B2, E>,
                mut floats: impl FnMut(F) -> Result<F2, E>,
            ) -> Result<StepLeaves<B2, F2>, E> {
                Ok(StepLeaves { $($name: step_leaves!(@$kind bytes floats)(self.$name)?,)* })
            }

            /// References to the leaves.
            pub fn as_ref(&self) -> StepLeaves<&B, &F> {
                StepLeaves { $($name: &self.$name,)* }
            }

            /// Mutable references to the leaves.
            pub fn as_mut(&mut self) -> StepLeaves<&mut B, &mut F> {
                StepLeaves { $($name: &mut self.$name,)* }
            }

            /// Pairs of the leaves of two steps.
            pub fn zip<B2, F2>(self, other: StepLeaves<B2, F2>) -> StepLeaves<(B, B2), (F, F2)> {
                StepLeaves { $($name: (self.$name, other.$name),)* }
            }
        }

        impl<T> StepLeaves<T, T> {
            /// The leaves in the order of the fields.
            pub(super) fn into_array(self) -> [T; COUNT] {
                [$(self.$name,)*]
            }
        }

        impl HostSpec {
            /// The number of elements of each leaf of a step; 0 for leaves that the environments do not have.
            #[must_use]
            pub fn step_lengths(&self) -> StepLeaves<usize, usize> {
                StepLeaves { $($name: { let $spec = self; $length },)* }
            }
        }
    };
    (@B $bytes:ident $floats:ident) => { $bytes };
    (@F $bytes:ident $floats:ident) => { $floats };
}

step_leaves! {
    /// Observations to act on next, little-endian. `[N, ...]`
    observation: B, "the observations", |spec| spec.observation_type().bytes();
    /// Rewards of the step. f32 `[N]`
    reward: F, "the rewards", |spec| spec.environments;
    /// End flags: 1 if the episode ended by itself, else 0. `[N]`
    terminated: B, "`terminated`", |spec| spec.environments;
    /// End flags: 1 if the episode was cut off, else 0; 1 together with `terminated` in a reset-only step. `[N]`
    truncated: B, "`truncated`", |spec| spec.environments;
    /// Observations after the step and before any reset: `observation` if no episode ended, and otherwise the episode's last
    /// observation. They are read only in a step that ended an episode. Empty if the environments never truncate.
    next_observation: B, "the final observations",
        |spec| if spec.truncates { spec.observation_type().bytes() } else { 0 };
    /// Masks of the actions that are legal next: 1 for each legal action, else 0. `[N, n]`; empty if the environments have no masks.
    legal_actions: B, "the masks of legal actions", |spec| spec.legal_actions_bytes();
    /// Share of the task that was done in the episode that ended, from 0 to 1. It is read only if an episode ended. f32 `[N]`; empty if
    /// the environments have none ([`HostSpec::succeeds`]).
    success: F, "the successes", |spec| if spec.succeeds { spec.environments } else { 0 };
}

/// The step of one environment, for the statistics of its episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResult {
    /// Reward of the step.
    pub reward: f32,
    /// The flags `terminated` and `truncated`; both are true in a reset-only step.
    pub done: (bool, bool),
    /// Share of the task that was done, if the step ended an episode; `None` if the environment has none.
    pub success: Option<f32>,
}

impl<B, F> StepLeaves<B, F> {
    /// Applies a function to every leaf of bytes, and another function to every leaf of floats.
    pub fn map<B2, F2>(
        self,
        mut bytes: impl FnMut(B) -> B2,
        mut floats: impl FnMut(F) -> F2,
    ) -> StepLeaves<B2, F2> {
        let Ok(mapped) =
            self.try_map(|leaf| Ok::<_, Infallible>(bytes(leaf)), |leaf| Ok(floats(leaf)));
        mapped
    }
}

impl HostSpec {
    /// The number of bytes of each leaf of a step.
    pub(super) fn step_bytes(&self) -> StepLeaves<usize, usize> {
        self.step_lengths().map(|bytes| bytes, |floats| 4 * floats)
    }
}

impl<'a> StepLeaves<&'a [u8], &'a [u8]> {
    /// The bytes of each leaf of [`StepOutcome`](super::StepOutcome) that the environments have, in its order.
    pub(super) fn outcome_bytes(self) -> impl Iterator<Item = &'a [u8]> {
        let (always, sometimes) = self.outcome();
        always.into_iter().chain(sometimes.into_iter().filter(|leaf| !leaf.is_empty()))
    }
}

impl<T> StepLeaves<T, T> {
    /// The leaves of [`StepOutcome`](super::StepOutcome), in its order: the leaves that every environment has, and the other leaves.
    pub(super) fn outcome(self) -> ([T; 4], [T; 2]) {
        let StepLeaves { observation, reward, terminated, truncated, .. } = self;
        ([observation, reward, terminated, truncated], [self.next_observation, self.legal_actions])
    }
}
