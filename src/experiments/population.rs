//! Many runs of an agent in an environment as one program, for the command line: one [`Run`] per
//! seed, which advance together.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use podracer_dsl::prelude::{DType, Spec, Tensor, TensorType, eval_shape, key};
use podracer_envs::AnyEnvironment;
use podracer_rl::learn::{AnyAgent, Learn};
use podracer_rl::population::Exploit;
use podracer_rl::{column, with_row};
use podracer_runtime::{Array, Checkpoint, Client, Host};
use toml::{Table, Value};

use super::anakin::AnakinTraining;
use super::exploited::Exploited;
use super::one_program;
use super::recent::RecentReturns;
use crate::anakin;
use crate::parameters;
use crate::population::{CompiledPopulation, Population, PopulationState};
use crate::registry::Evaluation as EnvironmentEvaluation;
use crate::settings::UsageError;
use crate::training::{CallMetrics, Column, Populates, Run, Start};

/// The state of an agent.
type AgentState = <AnyAgent as Learn>::State;

/// The program that the runs share, and its results that runs have not taken yet.
struct SharedLoop {
    program: CompiledPopulation<Option<Tensor>, AnyEnvironment, AnyAgent>,
    /// Index and path of each parameter among the leaves of an agent's state.
    parameters: Vec<(usize, String)>,
    /// Absent only after a call that failed.
    state: Option<PopulationState<Option<Tensor>, AnyEnvironment, AnyAgent>>,
    /// The settings that change when members take over from others: the settings of the columns, or
    /// none.
    changing: Vec<String>,
    iterations: u64,
    /// Calls that a member has not taken; `None` for a member that has ended.
    waiting: Vec<Option<VecDeque<CallMetrics>>>,
    recent: Vec<RecentReturns>,
    /// The members' checkpoints after the last call, if a checkpoint was requested.
    checkpoints: Vec<Checkpoint<'static>>,
    /// The members' agents after the last call, if one was requested.
    agents: OnceCell<Vec<Host<AgentState>>>,
    compile_seconds: f64,
}

/// A member as a run.
struct MemberRun {
    shared: Rc<RefCell<SharedLoop>>,
    member: usize,
    agent: AnyAgent,
    client: Client,
    device: usize,
    evaluation: Option<(EnvironmentEvaluation, Table)>,
}

impl Populates for AnakinTraining {
    fn check(&self, columns: &[Column]) -> Result<()> {
        let table = self.table_of(columns)?;
        let mut made = Ok(());
        let row = Spec::<Tensor>(TensorType::new(DType::F32, [columns.len()]));
        eval_shape((row,), |(row,)| {
            made = with_row(row, || self.entry.agent(&table, &self.task).map(drop));
        })?;
        made.map_err(|mistake| {
            let unfit = self.no_numbers(columns);
            let problem = match &unfit[..] {
                [] => format!(
                    "{mistake}: runs that differ in {} are programs of their own",
                    columns.iter().map(|column| &*column.key).collect::<Vec<_>>().join(", ")
                ),
                keys => format!(
                    "{}: it is not a number that a program takes as data, and runs that differ in it are programs of their own (in the settings of an \
                     agent of one's own such a number has the type `Number`, not `f64`)",
                    keys.join(", ")
                ),
            };
            UsageError::new(problem).into()
        })
    }

    fn populate(
        &self,
        start: Start<'_>,
        seeds: &[u64],
        columns: &[Column],
        exploit: Option<&Exploit>,
    ) -> Result<Vec<Box<dyn Run>>> {
        let Start { client, devices, .. } = start;
        let began = Instant::now();
        let options = one_program::options(&start, &self.simplify);
        let table = self.table_of(columns)?;
        // A device with one member less than others repeats the last member, which belongs to no
        // run.
        let places = seeds.len().next_multiple_of(devices.len());
        let places: Vec<usize> = (0..places).map(|place| place.min(seeds.len() - 1)).collect();
        let placed: Vec<u64> = places.iter().map(|&member| seeds[member]).collect();
        let rows = rows(columns, &places)?;
        let make = |row: Option<Tensor>| match row
            .map(|row| with_row(row, || self.entry.agent(&table, &self.task)))
        {
            Some(Ok(agent)) => self.anakin.clone().with_agent(agent),
            // Mistakes in the columns were reported before.
            Some(Err(_)) | None => self.anakin.clone(),
        };
        let population = Population::new(placed, rows, make).devices(devices.len());
        let population = match exploit {
            Some(exploit) => population.exploit(exploit.clone()),
            None => population,
        };
        let program = population.compile_with(client, &options)?;
        let compile_seconds = began.elapsed().as_secs_f64();
        let agent = self.anakin.agent();
        let state = eval_shape((key(),), |(key,)| agent.init(key))?;
        let shared = SharedLoop {
            state: Some(program.init()?),
            parameters: parameters::positions(agent, &state)?,
            program,
            changing: match exploit {
                Some(_) => columns.iter().map(|column| column.key.clone()).collect(),
                None => Vec::new(),
            },
            iterations: 0,
            waiting: seeds.iter().map(|_| Some(VecDeque::new())).collect(),
            recent: seeds.iter().map(|_| RecentReturns::default()).collect(),
            checkpoints: Vec::new(),
            agents: OnceCell::new(),
            compile_seconds,
        };
        let shared = Rc::new(RefCell::new(shared));
        let member = |member| -> Box<dyn Run> {
            Box::new(MemberRun {
                shared: Rc::clone(&shared),
                member,
                agent: agent.clone(),
                client: client.clone(),
                device: devices[0],
                evaluation: self.evaluation.clone(),
            })
        };
        Ok((0..seeds.len()).map(member).collect())
    }
}

impl AnakinTraining {
    /// The settings of these columns that the agent's struct of settings does not accept as data.
    fn no_numbers<'a>(&self, columns: &'a [Column]) -> Vec<&'a str> {
        let row = Spec::<Tensor>(TensorType::new(DType::F32, [columns.len()]));
        let is_unfit = |index: usize, key: &str| {
            let mut table = self.table.clone();
            table.insert(key.trim_start_matches("agent.").to_owned(), column(index).into());
            let mut mistake = None;
            let made = eval_shape((row.clone(),), |(row,)| {
                mistake = with_row(row, || self.entry.agent(&table, &self.task)).err();
            });
            // For a wrong type, the error quotes the text that stands for the column.
            made.is_ok()
                && mistake.is_some_and(|mistake| format!("{mistake}").contains(&column(index)))
        };
        let unfit = columns.iter().enumerate().filter(|(index, one)| is_unfit(*index, &one.key));
        unfit.map(|(_, one)| &*one.key).collect()
    }

    /// The settings of the agent, with these columns in place of values.
    fn table_of(&self, columns: &[Column]) -> Result<Table, UsageError> {
        let mut table = self.table.clone();
        for (index, Column { key, .. }) in columns.iter().enumerate() {
            let place = key.strip_prefix("agent.").filter(|key| !key.contains('.'));
            let Some(place) = place else {
                return Err(UsageError::new(format!(
                    "{key}: only numbers of [agent] differ between the runs of one program"
                )));
            };
            table.insert(place.to_owned(), Value::String(column(index)));
        }
        Ok(table)
    }
}

/// The numbers of these runs, f32 `[runs, columns]`; `None` without columns.
fn rows(columns: &[Column], runs: &[usize]) -> Result<Host<Option<Tensor>>> {
    let ty = TensorType::new(DType::F32, [runs.len(), columns.len()]);
    let numbers = |&run: &usize| columns.iter().map(move |column| column.values[run] as f32);
    let numbers: Vec<f32> = runs.iter().flat_map(numbers).collect();
    let some = !columns.is_empty();
    let spec: Spec<Option<Tensor>> = Spec(some.then(|| Spec(ty)));
    let numbers = Array::from_slice([runs.len(), columns.len()], &numbers)?;
    Ok(Host::from_named(&spec, some.then_some(("[0]", numbers)))?)
}

impl SharedLoop {
    fn state(&self) -> Result<&PopulationState<Option<Tensor>, AnyEnvironment, AnyAgent>> {
        self.state.as_ref().context("the runs ended with an error before")
    }

    /// Makes the next call for all members.
    fn advance(&mut self) -> Result<()> {
        let state = self.state.take().context("the runs ended with an error before")?;
        let (state, members) = self.program.run(state)?;
        self.state = Some(state);
        let iterations = self.program.iterations_per_call() as u64;
        self.iterations += iterations;
        self.checkpoints.clear();
        self.agents.take();
        let env_steps = self.program.steps_per_call() / members.len() as u64;
        let exploited = self.exploited()?;
        let of_members = members.into_iter().zip(&mut self.recent).zip(&mut self.waiting);
        for (((metrics, recent), waiting), Exploited(values)) in of_members.zip(exploited) {
            let Some(waiting) = waiting else { continue };
            let call = recent.call(metrics, (env_steps, iterations))?;
            waiting.push_back(CallMetrics { per_call: values, ..call });
        }
        Ok(())
    }

    /// The changed settings of each member.
    fn exploited(&self) -> Result<Vec<Exploited>> {
        let keys = &self.changing;
        let data = match keys.is_empty() {
            true => Vec::new(),
            false => self.program.data(self.state()?)?.into_leaves(),
        };
        let numbers = data.first().map(Array::to_f64).unwrap_or_default();
        let of_member = |member: usize| {
            let row = numbers[member * keys.len()..].iter().copied();
            Exploited(keys.iter().cloned().zip(row).collect())
        };
        Ok((0..self.waiting.len()).map(of_member).collect())
    }

    /// The agent of a member after the last call.
    fn agent(&self, member: usize) -> Result<&Host<AgentState>> {
        if let Some(agents) = self.agents.get() {
            return Ok(&agents[member]);
        }
        let agents = self.program.agents(self.state()?)?;
        Ok(&self.agents.get_or_init(|| agents)[member])
    }

    /// The checkpoint of a member after the last call.
    fn checkpoint(&mut self, member: usize) -> Result<Checkpoint<'static>> {
        if self.checkpoints.is_empty() {
            self.checkpoints = self.program.members(self.state()?, self.iterations)?;
            let exploited = self.exploited()?;
            let of_members = self.checkpoints.iter_mut().zip(&self.recent).zip(exploited);
            for ((checkpoint, recent), exploited) in of_members {
                recent.save(checkpoint)?;
                exploited.save(checkpoint);
            }
        }
        Ok(self.checkpoints[member].clone())
    }
}

impl Drop for MemberRun {
    fn drop(&mut self) {
        self.shared.borrow_mut().waiting[self.member] = None;
    }
}

impl Run for MemberRun {
    fn compile_seconds(&self) -> f64 {
        self.shared.borrow().compile_seconds
    }

    fn together(&self) -> usize {
        self.shared.borrow().waiting.len()
    }

    /// The first member to advance makes the call for all members.
    fn advance(&mut self) -> Result<CallMetrics> {
        let mut shared = self.shared.borrow_mut();
        if shared.waiting[self.member].as_ref().is_none_or(VecDeque::is_empty) {
            shared.advance()?;
        }
        let call = shared.waiting[self.member].as_mut().and_then(VecDeque::pop_front);
        let ahead = shared.waiting.iter().flatten().any(|waiting| waiting.len() > 1);
        ensure!(!ahead, "the members of a population advance together");
        call.context("a call gives metrics of every member")
    }

    fn checkpoint(&mut self) -> Result<Checkpoint<'_>> {
        self.shared.borrow_mut().checkpoint(self.member)
    }

    fn store(&self) -> &'static str {
        anakin::STORE
    }

    fn parameters(&self) -> Result<Vec<(String, Array)>> {
        let shared = self.shared.borrow();
        let leaves = shared.agent(self.member)?.clone().into_leaves();
        let picked = shared.parameters.iter();
        Ok(picked.map(|(leaf, path)| (path.clone(), leaves[*leaf].clone())).collect())
    }

    fn evaluate(&mut self) -> Result<Vec<(String, f64)>> {
        let Some((evaluation, table)) = &self.evaluation else { return Ok(Vec::new()) };
        let shared = self.shared.borrow();
        let agent = shared.agent(self.member)?;
        let state = agent.on_devices(&[self.client.device(self.device)?.clone()])?;
        evaluation(table, &self.agent, &self.client, &state)
    }
}
