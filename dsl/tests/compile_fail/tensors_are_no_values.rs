use podracer_dsl::prelude::*;

fn branch(x: Tensor) -> Tensor {
    if x > 0.0 { x } else { -x }
}

fn index(x: Tensor) -> Tensor {
    x[0]
}

fn iterate(xs: Tensor) -> Vec<Tensor> {
    let mut all = Vec::new();
    for x in xs {
        all.push(x);
    }
    all
}

fn choose(x: Tensor) -> f64 {
    match x {
        0.0 => 1.0,
        _ => 2.0,
    }
}

fn number(x: Tensor) -> f64 {
    f64::from(x)
}

fn print(x: Tensor) {
    println!("{x}");
}

fn shape(x: Tensor) -> Tensor {
    x.reshape("2, 3")
}

fn main() {}
