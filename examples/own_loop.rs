//! A training without the command line, with progress, checkpoints and resume: `cargo run --release
//! --example own_loop`. Run it again to resume from the last checkpoint.
#![allow(clippy::print_stdout)]

use podracer::envs::Catch;
use podracer::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environment = Catch::default();
    let agent = Ppo::new(environment.observation_space(), environment.action_space());
    let anakin =
        Anakin::new(environment, agent).compile(&Client::cpu(ClientOptions::default())?)?;
    let checkpoints = Checkpoints::new("own-loop-checkpoints", 2);
    let (mut state, mut done) = match checkpoints.latest() {
        Ok(found) => (anakin.restore(&found.checkpoint)?, found.checkpoint.iterations),
        Err(CheckpointError::None { .. }) => (anakin.init(0)?, 0),
        Err(error) => return Err(error.into()),
    };
    while done < 200 {
        let metrics;
        (state, metrics) = anakin.run(state)?;
        done += anakin.iterations_per_call() as u64;
        println!("{done} iterations: mean return {:.2}", metrics.episode_return);
        checkpoints.save(&anakin.checkpoint(&state, done)?)?;
    }
    Ok(anakin.save_parameters(&state, "catch.safetensors")?)
}
