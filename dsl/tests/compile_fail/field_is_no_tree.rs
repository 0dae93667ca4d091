use podracer_dsl::prelude::*;

#[derive(Clone)]
struct Inner {
    x: Tensor,
}

#[derive(Tree, Clone)]
struct Outer {
    inner: Inner,
}

fn main() {}
