use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct Pair<T> {
    left: T,
    right: T,
}

fn main() {
    let _ = trace((f32([]),), |(x,)| Pair {
        left: x.elements(),
        right: 2,
    });
}
