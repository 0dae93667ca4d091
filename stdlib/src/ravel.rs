//! Trees as vectors: many small tensors would cost XLA a kernel each.

use podracer_dsl::prelude::*;

/// The leaves of each dtype, one after another, row-major: a vector for each, in the order in which the dtypes first appear.
#[track_caller]
pub(crate) fn ravel<P: Tree>(tree: &P) -> Vec<Tensor> {
    let mut vectors: Vec<Vec<Tensor>> = Vec::new();
    for leaf in tree.leaves() {
        let leaf = leaf.flatten();
        match vectors.iter_mut().find(|one| one[0].dtype() == leaf.dtype()) {
            Some(vector) => vector.push(leaf),
            None => vectors.push(vec![leaf]),
        }
    }
    vectors.iter().map(|leaves| concatenate(leaves, 0)).collect()
}

/// The tree of this type that [`ravel`] turns into `vectors`.
#[track_caller]
pub(crate) fn unravel<P: Tree>(vectors: &[Tensor], spec: &Spec<P>) -> P {
    let mut taken = vec![0; vectors.len()];
    P::from_kind::<Types>(&spec.0, &mut |ty| {
        let of_dtype = vectors.iter().position(|one| one.dtype() == ty.dtype);
        let Some(i) = of_dtype else {
            return zeros(ty.dtype, ty.shape.clone());
        };
        let begin = taken[i];
        taken[i] += ty.elements();
        vectors[i].slice(begin..taken[i]).reshape(ty.shape.clone())
    })
}
