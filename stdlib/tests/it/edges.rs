//! Values at the edges: bounds of 0 and infinity, and labels that do not exist.

use crate::golden::run;
use podracer_dsl::prelude::*;
use podracer_rl::Number;
use podracer_rl::agents::AdamSettings;
use podracer_rl::distributions::{Categorical, Distribution, MultiCategorical};
use podracer_rl::losses::softmax_cross_entropy_with_integer_labels;
use podracer_rl::nn::{LayerNorm, RmsNorm};
use podracer_rl::optim::*;

#[test]
fn the_norm_of_f16_gradients_overflowed() {
    let results = run((), &[], |()| global_norm(&constant([300.0, 400.0]).astype(F16)));
    assert_eq!(results[0].to_f64(), [500.0]);
}

#[test]
fn layers_of_f16_normalised_with_infinite_moments() {
    let results = run((), &[], |()| {
        let narrow = |x: Tensor| x.astype(F16);
        let x = narrow(constant([-300.0, 300.0]));
        let (layer, rms) = (LayerNorm::init(2), RmsNorm::init(2));
        (tree_map(&layer, narrow).apply(x), tree_map(&rms, narrow).apply(x), layer.apply(x))
    });
    for result in results {
        assert_eq!(result.ty().dtype, F16);
        assert_eq!(result.to_f64(), [-1.0, 1.0]);
    }
}
