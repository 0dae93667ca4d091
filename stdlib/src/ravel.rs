//! Trees as vectors, because XLA would run one kernel for each of many small tensors.

use podracer_dsl::prelude::*;

/// Least number of elements of a leaf that is a separate vector. Copying such a leaf costs more
/// than the kernels of a separate vector. If threads share a vector's kernel, XLA also checks each
/// element of the vector against each leaf in it.
const LARGE: usize = 1 << 16;

/// The vector that contains each leaf of a tree, by index, in the tree's order.
#[derive(Default)]
struct Places {
    /// The dtype of the small leaves in each vector; `None` for a large leaf's.
    vectors: Vec<Option<DType>>,
}

impl Places {
    /// The vector of the next leaf.
    fn next(&mut self, ty: &TensorType) -> usize {
        let small = (ty.elements() < LARGE).then_some(ty.dtype);
        let known = self.vectors.iter().position(|one| small.is_some() && *one == small);
        known.unwrap_or_else(|| {
            self.vectors.push(small);
            self.vectors.len() - 1
        })
    }
}

/// The small leaves of each dtype, concatenated row-major, as one vector per dtype, and each large
/// leaf as a vector, in the order of first appearance.
#[track_caller]
pub(crate) fn ravel<P: Tree>(tree: &P) -> Vec<Tensor> {
    let mut places = Places::default();
    let mut vectors: Vec<Vec<Tensor>> = Vec::new();
    for leaf in tree.leaves() {
        let place = places.next(&leaf.ty());
        vectors.resize_with(places.vectors.len(), Vec::new);
        vectors[place].push(leaf.flatten());
    }
    vectors.iter().map(|leaves| concatenate(leaves, 0)).collect()
}

/// The tree of this type that [`ravel`] turns into `vectors`.
#[track_caller]
pub(crate) fn unravel<P: Tree>(vectors: &[Tensor], spec: &Spec<P>) -> P {
    let mut places = Places::default();
    let mut taken = vec![0; vectors.len()];
    P::from_kind::<Types>(&spec.0, &mut |ty| {
        let i = places.next(ty);
        let Some(vector) = vectors.get(i) else {
            return zeros(ty.dtype, ty.shape.clone());
        };
        let begin = taken[i];
        taken[i] += ty.elements();
        vector.slice(begin..taken[i]).reshape(ty.shape.clone())
    })
}
