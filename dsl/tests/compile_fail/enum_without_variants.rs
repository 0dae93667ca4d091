use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
enum Never {}

fn main() {}
