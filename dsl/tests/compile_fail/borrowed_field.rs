use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct View<'a> {
    weights: &'a Tensor,
}

fn main() {}
