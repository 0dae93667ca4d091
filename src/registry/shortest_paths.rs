//! Counts the starts in a grid where a policy begins a shortest path.

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use podracer_envs::grid_world::State;
use podracer_envs::{Environment, GridWorld};
use podracer_rl::anakin::Feedback;
use podracer_rl::learn::{Act, Agent, AnyAgent, LaneId, Learn, Mode};
use podracer_runtime::{Client, Device, Placement, Program, ProgramOptions};

/// Walks greedily from every start at once, on the first device. Returns `starts`, and
/// `shortest_paths`: the number of starts with a walk to the goal in as few steps as possible.
///
/// # Errors
/// Errors of the runtime.
pub(super) fn shortest_paths(
    agent: &AnyAgent,
    grid: &GridWorld,
    client: &Client,
    state: &Device<AnyTree>,
) -> Result<Vec<(String, f64)>> {
    let starts = grid.layout.starts();
    let columns = grid.layout.columns();
    let limit = grid.layout.greatest_distance() + 1;
    let places = |coordinate: &dyn Fn(usize) -> usize| {
        let values: Vec<i128> = starts.iter().map(|&cell| coordinate(cell) as i128).collect();
        Array::ints(DType::I32, [starts.len()], &values)
    };
    let (rows, columns) = (places(&|cell| cell / columns), places(&|cell| cell % columns));
    let spec = eval_shape((key(),), |(key,)| agent.init(key))?;
    let traced = trace((&spec,), |(state,)| {
        let params = agent.params(&state);
        let indices = arange(starts.len());
        vmap((indices, constant_of(&rows), constant_of(&columns)), |(index, row, column)| {
            let memory = agent.init_memory(LaneId { index, lanes: starts.len() });
            let memory = agent.begin_episode(memory);
            let feedback = Feedback::begin(&grid.action_space().ty());
            let state = State { row, column, time: scalar(0) };
            let first = (state, memory, feedback, scalar(false), scalar(0));
            let (_, _, _, arrived, steps) =
                fori_loop(0..limit, first, |_, (state, memory, feedback, arrived, steps)| {
                    let input = feedback.input(grid.observe(state), None);
                    // The walk itself draws nothing.
                    let key = Key::new(0u32);
                    let Act { action, memory, .. } =
                        agent.act(&params, memory, input, Mode::Greedy, key);
                    let (next, step) = grid.step(state, action, Key::new(0u32));
                    let feedback = Feedback::after(action, step.reward, step.done());
                    let steps = steps + (!arrived).astype(I32);
                    let state = tree_select(arrived, &state, &next);
                    (state, memory, feedback, arrived | step.terminated, steps)
                });
            (arrived, steps)
        })
    })?;
    let placements = vec![Placement::Replicated; 2];
    let options = ProgramOptions::default();
    let program = Program::compile(client, "shortest_paths", &traced, placements, &options)?;
    // The state may be on several devices; the walk runs on one.
    let state = program.upload(state.to_host()?)?;
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
