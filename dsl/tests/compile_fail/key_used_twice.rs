use podracer_dsl::prelude::*;

fn noise(key: Key) -> Tensor {
    key.normal([3]) + key.uniform([3])
}

fn main() {}
