//! Whether a policy walks the shortest path from every start of a grid.

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_envs::grid_world::State;
use podracer_envs::{Environment, GridWorld};
use podracer_runtime::{Client, Device, Placement, Program, ProgramOptions};
use podracer_stdlib::agents::Agent;

/// Walks greedily from every start at once, on the first device. Gives `starts` and `shortest_paths`: from how many of
/// them the goal was reached in as few steps as there can be.
///
/// # Errors
/// What the runtime reports.
pub fn shortest_paths<A: Agent<Observation = Tensor>>(
    agent: &A,
    grid: &GridWorld,
    client: &Client,
    nets: &Device<A::Nets>,
) -> Result<Vec<(String, f64)>> {
    let starts = grid.layout.starts();
    let columns = grid.layout.columns();
    let limit = grid.layout.greatest_distance() + 1;
    let places = |of: &dyn Fn(usize) -> usize| {
        let values: Vec<i128> = starts.iter().map(|&cell| of(cell) as i128).collect();
        Array::ints(DType::I32, [starts.len()], &values)
    };
    let (rows, columns) = (places(&|cell| cell / columns), places(&|cell| cell % columns));
    let spec = eval_shape((key(),), |(key,)| agent.init_nets(key))?;
    let traced = trace((spec,), |(nets,)| {
        vmap((constant_of(&rows), constant_of(&columns)), |(row, column)| {
            let state = State { row, column, time: scalar(0) };
            let first = (state, agent.init_actor(), scalar(false), scalar(0));
            let (_, _, arrived, steps) =
                fori_loop(0..limit, first, |_, (state, actor, arrived, steps)| {
                    let (action, actor) = agent.act_greedily(&nets, actor, grid.observe(state));
                    // The walk itself draws nothing.
                    let (next, step) = grid.step(state, action, Key::new(0u32));
                    let steps = steps + (!arrived).astype(I32);
                    (tree_select(arrived, &state, &next), actor, arrived | step.terminated, steps)
                });
            (arrived, steps)
        })
    })?;
    let placements = vec![Placement::Replicated; 2];
    let program = Program::compile(
        client,
        "shortest_paths",
        &traced,
        placements,
        &ProgramOptions::default(),
    )?;
    let (arrived, steps) = &*program.run((nets,))?.to_host()?;
    let (arrived, steps) = (arrived.to_vec::<bool>()?, steps.to_vec::<i32>()?);
    let shortest = |&i: &usize| {
        arrived[i] && grid.layout.distance(starts[i]) == usize::try_from(steps[i]).ok()
    };
    let count = (0..starts.len()).filter(shortest).count();
    Ok(vec![
        ("starts".to_owned(), starts.len() as f64),
        ("shortest_paths".to_owned(), count as f64),
    ])
}
