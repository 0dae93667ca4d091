//! Whether a policy walks the shortest path from every start of a grid.

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_envs::grid_world::State;
use podracer_envs::{Environment, GridWorld};
use podracer_runtime::{Client, Device, Placement, Program, ProgramOptions};
use podracer_stdlib::agents::{LaneId, Learn, Mode};
use podracer_stdlib::anakin::Feedback;

/// Walks greedily from every start at once, on the first device. Gives `starts` and `shortest_paths`: from how many of
/// them the goal was reached in as few steps as there can be.
///
/// # Errors
/// What the runtime reports.
pub fn shortest_paths<A: Learn<Observation = Tensor>>(
    agent: &A,
    grid: &GridWorld,
    client: &Client,
    state: &Device<A::State>,
) -> Result<Vec<(String, f64)>> {
    let starts = grid.layout.starts();
    let columns = grid.layout.columns();
    let limit = grid.layout.greatest_distance() + 1;
    let places = |of: &dyn Fn(usize) -> usize| {
        let values: Vec<i128> = starts.iter().map(|&cell| of(cell) as i128).collect();
        Array::ints(DType::I32, [starts.len()], &values)
    };
    let (rows, columns) = (places(&|cell| cell / columns), places(&|cell| cell % columns));
    let spec = eval_shape((key(),), |(key,)| agent.init(key))?;
    let action = grid.action_space().ty();
    let traced = trace((&spec,), |(state,)| {
        let params = agent.params(&state);
        vmap((constant_of(&rows), constant_of(&columns)), |(row, column)| {
            let state = State { row, column, time: scalar(0) };
            let memory = agent.init_memory(LaneId { index: scalar(0), lanes: 1 });
            let first = (state, memory, Feedback::begin(&action), scalar(false), scalar(0));
            let (.., arrived, steps) =
                fori_loop(0..limit, first, |_, (state, memory, feedback, arrived, steps)| {
                    let input = feedback.input(grid.observe(state), None);
                    // A greedy agent and the walk itself draw nothing.
                    let act = agent.act(&params, memory, input, Mode::Greedy, Key::new(0u32));
                    let (next, step) = grid.step(state, act.action, Key::new(1u32));
                    let steps = steps + (!arrived).astype(I32);
                    let feedback = Feedback::after(act.action, step.reward, scalar(false));
                    let state = tree_select(arrived, &state, &next);
                    (state, act.memory, feedback, arrived | step.terminated, steps)
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
    // The state may be on several devices; the walk is on one.
    let leaves = state.named_arrays()?.into_iter().map(|(_, leaf)| leaf).collect::<Vec<_>>();
    let state = program.upload(&spec, &leaves)?;
    let (arrived, steps) = &*program.run((state,))?.to_host()?;
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
