use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct Ball {
    height: Tensor,
}

fn main() {
    let _ = trace((f32([]),), |(height,)| {
        scan(Ball { height }, 0..3, |ball, _| (ball.height, ball.height)).0
    });
}
