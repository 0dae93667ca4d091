use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct Catch {
    ball: Tensor,
    rows: usize,
    name: Option<String>,
}

fn main() {}
