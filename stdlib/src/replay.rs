//! Experience replay in the DSL: stores that a learning agent keeps from iteration to iteration.
//!
//! A store is part of a run's state, which the compiled program is given and changes in place. On several devices each has
//! its own part, and samples from it.

use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// A replay of items of any tree type.
pub trait Replay: Clone + 'static {
    /// The store of one device. The leading axis of each leaf is divided over the devices.
    type State<I: Tree>: Tree;

    /// An empty store, for items of these types.
    #[track_caller]
    fn init<I: Tree>(&self, item: &Spec<I>) -> Self::State<I>;

    /// Adds items `[N, ..]`, in place of the oldest ones where the store is full.
    #[track_caller]
    fn add<I: Tree>(&self, state: Self::State<I>, items: I) -> Self::State<I>;

    /// The number of items in the store. i32 `[]`
    #[track_caller]
    fn size<I: Tree>(&self, state: &Self::State<I>) -> Tensor;

    /// Draws `batch` items with replacement. An empty store gives zeros.
    #[track_caller]
    fn sample<I: Tree>(&self, state: &Self::State<I>, batch: usize, key: Key) -> Sample<I>;

    /// Changes the priorities of sampled items: `indices` i32 `[B]` of [`Sample`], `priorities` f32 `[B]`. A replay without
    /// priorities stays as it is.
    #[track_caller]
    fn set_priorities<I: Tree>(
        &self,
        state: Self::State<I>,
        indices: Tensor,
        priorities: Tensor,
    ) -> Self::State<I> {
        let _ = (indices, priorities);
        state
    }
}

/// Items drawn from a [`Replay`].
#[derive(Tree, Clone)]
pub struct Sample<I: Tree> {
    /// The items. `[B, ..]`
    pub items: I,
    /// Their places in the store. i32 `[B]`
    pub indices: Tensor,
    /// Importance weights, 1 where all items are drawn alike. f32 `[B]`
    pub weights: Tensor,
}

/// A ring of items, drawn from uniformly: Lin, "Self-improving reactive agents based on reinforcement learning, planning
/// and teaching", 1992.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// Greatest number of items on one device.
    pub capacity: usize,
}

/// The store of [`Uniform`].
#[derive(Tree, Clone)]
pub struct Ring<I: Tree> {
    /// Items, the older ones overwritten. `[capacity, ..]`
    pub items: I,
    /// The place of the next item. i32 `[1]`
    pub position: Tensor,
    /// The number of items in the store. i32 `[1]`
    pub size: Tensor,
}

impl Replay for Uniform {
    type State<I: Tree> = Ring<I>;

    fn init<I: Tree>(&self, item: &Spec<I>) -> Ring<I> {
        let items = I::from_kind::<Types>(&item.stacked(self.capacity).0, &mut |ty| {
            zeros(ty.dtype, ty.shape.clone())
        });
        Ring { items, position: zeros(I32, [1]), size: zeros(I32, [1]) }
    }

    fn add<I: Tree>(&self, state: Ring<I>, items: I) -> Ring<I> {
        let added = items.leaves().first().map_or(0, |leaf| leaf.dim(0));
        if added > self.capacity {
            let message = format!(
                "{added} items are added at once, and the replay has room for {}: raise its capacity",
                self.capacity
            );
            let leaves = items.leaves();
            let _ = fail("Replay::add", message, &leaves[..1], leaves[0].ty());
            return state;
        }
        let (capacity, added) = (self.capacity as i32, added as i32);
        let places = (arange(added as usize) + state.position).rem(capacity);
        Ring {
            items: state.items.zip_with(&items, |all, new| all.set(places, new)),
            position: (state.position + added).rem(capacity),
            size: (state.size + added).minimum(capacity),
        }
    }

    fn size<I: Tree>(&self, state: &Ring<I>) -> Tensor {
        state.size.index(0)
    }

    fn sample<I: Tree>(&self, state: &Ring<I>, batch: usize, key: Key) -> Sample<I> {
        let indices = key.randint_between([batch], scalar(0), self.size(state).maximum(1));
        let items = tree_map(&state.items, |all| all.take(indices, 0));
        Sample { items, indices, weights: ones(F32, [batch]) }
    }
}
