use podracer_dsl::prelude::*;

fn reward(x: Tensor) -> Tensor {
    if x.gt(0.0) { x } else { -x }
}

fn same(x: Tensor, y: Tensor) -> bool {
    x == y
}

fn main() {}
