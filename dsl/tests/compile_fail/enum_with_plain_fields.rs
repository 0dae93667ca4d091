use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
enum Schedule {
    Constant(f64),
    Linear { begin: Tensor, steps: usize },
    Custom(#[tree(fix)] String),
}

fn main() {}
