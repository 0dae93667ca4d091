use podracer_dsl::prelude::*;

#[derive(Tree)]
struct State {
    position: Tensor,
}

fn main() {}
