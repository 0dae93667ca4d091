use podracer_dsl::prelude::*;
use std::collections::HashMap;

#[derive(Tree, Clone)]
struct Params {
    layers: HashMap<String, Tensor>,
    seen: std::marker::PhantomData<f32>,
}

fn main() {}
