use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct Grid {
    cells: Tensor,
    #[tree(fixed = true)]
    rows: usize,
}

fn main() {}
