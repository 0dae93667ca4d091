use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
enum Phase {
    Running(Tensor),
    Over,
}

fn main() {}
