use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct Catch {
    ball: Tensor,
    #[tree(static)]
    rows: usize,
}

fn main() {}
