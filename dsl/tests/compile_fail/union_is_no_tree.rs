use podracer_dsl::prelude::*;

#[derive(Tree, Clone, Copy)]
union Choice {
    left: Tensor,
    right: Tensor,
}

fn main() {}
