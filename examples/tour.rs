//! A tour of the DSL: plain functions of tensors, their gradients, batches and loops, the programs that they become, and one of
//! them run. `cargo run --release --example tour`
#![allow(clippy::print_stdout)]

use podracer::prelude::*;
use podracer::runtime::{Placement, Program};

/// A line: `weight * x + bias`.
#[derive(Tree, Clone, Copy)]
struct Line {
    weight: Tensor,
    bias: Tensor,
}

/// The squared error of a line at one point.
fn error(line: Line, x: Tensor, y: Tensor) -> Tensor {
    (line.weight * x + line.bias - y).square()
}

/// The mean over a batch of points. `vmap` takes the arguments first and the closure last; the closure captures `line`.
fn loss(line: Line, xs: Tensor, ys: Tensor) -> Tensor {
    vmap((xs, ys), |(x, y)| error(line, x, y)).mean()
}

/// A hundred steps of gradient descent: one loop on the device. Gives the line and the loss of every step.
fn fit(line: Line, xs: Tensor, ys: Tensor) -> (Line, Tensor) {
    scan(line, 0..100, |line, _step| {
        let (loss, slope) = value_and_grad(line, |line| loss(line, xs, ys));
        let line =
            Line { weight: line.weight - 0.3 * slope.weight, bias: line.bias - 0.3 * slope.bias };
        (line, loss)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Tracing runs a function once and leaves a program. Types are known then, values are not.
    println!("x * sin(x) becomes\n{}\n", trace(f32([]), |x| x * x.sin())?);
    println!("its derivative\n{}\n", trace(f32([]), |x| grad(x, |x| x * x.sin()))?);
    println!(
        "its second derivative\n{}\n",
        trace(f32([]), |x| grad(x, |x| grad(x, |x| x * x.sin())))?
    );
    println!("a batch of three\n{}\n", trace(f32([3]), |xs| vmap(xs, |x| x * x.sin()))?);

    // A loop is one op with a body that is a separate function; the gradient of a loop is two
    // loops.
    let decay = |x: Tensor| scan(x, 0..10, |x, _| (0.9 * x.sin(), ())).0;
    println!("a loop\n{}\n", trace(f32([]), decay)?);
    println!("its derivative\n{}\n", trace(f32([]), |x| grad(x, decay))?);

    // A mistake is an error with the line of its author, here in this file.
    let mistake = trace((f32([2, 3]), f32([4])), |(x, y)| x + y);
    println!("{}\n", mistake.err().ok_or("these shapes do not broadcast")?);

    // Traced, compiled, run: points of the line 2 x - 1 with a little noise, and the line that fits them.
    let traced = trace((key(),), |(key,)| {
        let (points, noise) = key.split();
        let xs = points.uniform([64]);
        let ys = 2.0 * xs - 1.0 + 0.01 * noise.normal([64]);
        let zero = scalar(0.0);
        fit(Line { weight: zero, bias: zero }, xs, ys)
    })?;
    println!("fitting a line has {} equations", traced.func().eqn_count());
    let client = Client::cpu(ClientOptions::default())?;
    let placements = vec![Placement::Replicated; traced.result_paths().len()];
    let program =
        Program::compile(&client, "fit", &traced, placements, &ProgramOptions::default())?;
    let seed = program.upload(Array::key(7))?;
    let results = program.run((seed,))?.to_host()?;
    let (line, losses) = &*results;
    let (weight, bias) = (line.weight.item::<f32>()?, line.bias.item::<f32>()?);
    let losses = losses.to_vec::<f32>()?;
    println!(
        "y = {weight:.2} x + {bias:.2}; the loss fell from {:.3} to {:.6}",
        losses[0], losses[99]
    );
    Ok(())
}
