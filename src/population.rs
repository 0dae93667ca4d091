//! Populations: many trainings of an agent in an environment as one program. Members differ in
//! their seeds, and in numbers that the program takes as data: learning rates, costs, discounts.

use anyhow::{Context, Result};

use podracer_dsl::prelude::{
    DType, Placed, Spec, Tensor, TensorType, Tree, eval_shape, u32 as u32_spec,
};
use podracer_dsl::{Loc, called_from};
use podracer_envs::Environment;
use podracer_rl::anakin::{AgentLoop, Episodes};
use podracer_rl::learn::{Axes, Learn};
use podracer_rl::population::{Exploit, LoopMember, Population as Members, Rounds};
use podracer_runtime::{
    AnakinLoop, AnakinProgram, AnakinSettings, AnakinState, Array, Checkpoint, CheckpointError,
    Client, CompileOptions, Host, ProgramOptions, RuntimeError,
};

use crate::anakin::{Anakin, STATE, TrainingMetrics};
use crate::{UsageError, builder};

/// The members of a population, traced; a run starts from the keys of its members, u32 `[P, 2]`,
/// and their data.
pub type TracedPopulation<M, E, A> = AnakinLoop<
    Option<Rounds>,
    LoopMember<M, E, A>,
    (),
    Placed<<A as Learn>::Metrics, Episodes>,
    (Tensor, M),
>;
/// The loop of a population, compiled.
pub type PopulationProgram<M, E, A> = AnakinProgram<
    Option<Rounds>,
    LoopMember<M, E, A>,
    (),
    Placed<<A as Learn>::Metrics, Episodes>,
    (Tensor, M),
>;
/// The state of a population on its devices.
pub type PopulationState<M, E, A> = AnakinState<Option<Rounds>, LoopMember<M, E, A>>;

/// Many trainings as one program: `vmap` over the loop of [`Anakin`].
///
/// Each member is an independent run: it has the state and the random numbers of a run with its
/// seed, and ends with the same parameters as that run, except for the rounding of kernels that
/// work on all members at once. No data passes between members. The devices divide the members.
///
/// ```no_run
/// use podracer::population::Population;
/// use podracer::prelude::*;
/// use podracer::rl::learn::AdamSettings;
/// use podracer::rl::agents::PpoSettings;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let environment = podracer::envs::Catch::default();
/// // One learning rate for each member, all with the seed 0.
/// let rates = Array::from_slice([4], &[1e-4_f32, 3e-4, 1e-3, 3e-3])?;
/// let population = Population::new([0; 4], rates, |rate: Tensor| {
///     let settings = PpoSettings { optimizer: AdamSettings::new(rate), ..PpoSettings::default() };
///     let spaces = (environment.observation_space(), environment.action_space());
///     Anakin::new(environment.clone(), Ppo::with(settings, spaces.0, spaces.1)).environments(64)
/// });
/// let program = population.compile(&Client::cpu(ClientOptions::default())?)?;
/// let mut state = program.init()?;
/// for _ in 0..10 {
///     let members;
///     (state, members) = program.run(state)?;
///     for (member, metrics) in members.iter().enumerate() {
///         println!("{member}: {:.2}", metrics.episode_return);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Population<M: Tree, F> {
    seeds: Vec<u64>,
    data: Host<M>,
    make: F,
    name: String,
    devices: usize,
    exploit: Option<Exploit>,
}

impl<M: Tree, F> Population<M, F> {
    /// A population with a member for each seed. `data` has one row per member, `[P, ..]`, and
    /// `make` makes a member's loop from its row. The loops may differ in
    /// [`Number`](podracer_rl::Number)s, such as a learning rate, but not in values that determine
    /// the program, such as sizes of networks, lanes and steps.
    pub fn new<E, A>(
        seeds: impl IntoIterator<Item = u64>,
        data: impl Into<Host<M>>,
        make: F,
    ) -> Self
    where
        F: Fn(M) -> Anakin<E, A>,
    {
        let (seeds, data) = (seeds.into_iter().collect(), data.into());
        let name = "population".to_owned();
        Population { seeds, data, make, name, devices: 1, exploit: None }
    }

    /// Number of devices that share the members.
    #[must_use]
    pub fn devices(self, devices: usize) -> Self {
        Population { devices, ..self }
    }

    /// The population with population-based training: now and then, the worst members take over the
    /// agents of the best. The members are then not independent runs, and the numbers in their data
    /// change ([`CompiledPopulation::data`]).
    #[must_use]
    pub fn exploit(self, exploit: Exploit) -> Self {
        Population { exploit: Some(exploit), ..self }
    }

    /// The program's name, for profiles and XLA's messages.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = builder::module_name(name);
        self
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.seeds.len()
    }

    /// Checks the rows of the data, and returns their spec.
    fn rows(&self) -> Result<Spec<M>> {
        let members = self.members();
        check_shares(members, self.devices)?;
        if let Some(exploit) = &self.exploit {
            check_exploit(exploit, members)?;
        }
        let spec = self.data.spec();
        for (path, ty) in spec.leaves() {
            if ty.shape.first() != Some(&members) {
                return Err(UsageError::new(format!(
                    "the data of the members has `{path}` of {ty}: expected a row for each of {members} seeds, [{members}, ..]"
                ))
                .into());
            }
        }
        Ok(spec)
    }
}

impl<M, E, A, F> Population<M, F>
where
    M: Tree,
    E: Environment,
    A: Learn<Observation = E::Observation>,
    F: Fn(M) -> Anakin<E, A>,
{
    /// Traces the population.
    ///
    /// # Errors
    /// [`UsageError`] for data without a row for each member; errors of [`Anakin::trace`].
    #[track_caller]
    pub fn trace(&self) -> Result<TracedPopulation<M, E, A>> {
        Ok(self.traced(Loc::caller())?.0)
    }

    fn traced(&self, here: Loc) -> Result<(TracedPopulation<M, E, A>, AnakinSettings)> {
        let rows = self.rows()?;
        if rows.leaves().is_empty() {
            (self.make)(rows.zeros()).check()?;
        }
        let mut settings = None;
        eval_shape((rows.unstacked(),), |(row,)| {
            settings = Some((self.make)(row).settings().clone());
        })?;
        let settings = settings.context("no member was made")?;
        builder::at_least_one(&[
            ("environments", settings.environments),
            ("unroll", settings.unroll),
            ("iterations_per_call", settings.iterations_per_call),
        ])?;
        let make = |row: M| -> AgentLoop<E, A> { (self.make)(row).on_axes(1, Axes::none()) };
        let members = Members::new(make, self.members() / self.devices, self.devices)
            .exploiting(self.exploit.clone());
        let keys = u32_spec([self.members(), 2]);
        let traced = AnakinLoop::trace_from(
            &self.name,
            self.devices,
            settings.iterations_per_call,
            (keys, rows),
            |(keys, data)| {
                let _scope = called_from("Population", here);
                members.init(keys, data)
            },
            |state| {
                let _scope = called_from("Population", here);
                members.iterate(state)
            },
        )?;
        Ok((traced, settings))
    }

    /// Traces the population and compiles it for the client's first devices. Compiled programs are kept in the user's cache.
    ///
    /// # Errors
    /// Errors of [`Population::trace`], and of the runtime and XLA.
    #[track_caller]
    pub fn compile(&self, client: &Client) -> Result<CompiledPopulation<M, E, A>> {
        self.compile_with(client, &ProgramOptions::default())
    }

    /// Does the same as [`Population::compile`] with other devices, options or cache. XLA's options
    /// default to podracer's for this loop.
    ///
    /// # Errors
    /// As [`Population::compile`].
    #[track_caller]
    pub fn compile_with(
        &self,
        client: &Client,
        options: &ProgramOptions,
    ) -> Result<CompiledPopulation<M, E, A>> {
        let (traced, settings) = self.traced(Loc::caller())?;
        let mut options = options.clone();
        let CompileOptions { replicas, xla, .. } = &mut options.compile;
        *replicas = self.devices;
        if xla.is_empty() {
            *xla = builder::xla_options(client.platform(), &options.simplify);
        }
        let program = traced.compile(client, &options).context("cannot compile the population")?;
        Ok(CompiledPopulation {
            program,
            seeds: self.seeds.clone(),
            data: self.data.clone(),
            settings,
            devices: self.devices,
        })
    }
}

/// A population for its devices.
pub struct CompiledPopulation<M: Tree, E: Environment, A: Learn<Observation = E::Observation>> {
    program: PopulationProgram<M, E, A>,
    seeds: Vec<u64>,
    data: Host<M>,
    settings: AnakinSettings,
    devices: usize,
}

/// The state of a population after a call, and the metrics of each member in it.
pub type CalledPopulation<M, E, A> =
    (PopulationState<M, E, A>, Vec<TrainingMetrics<<A as Learn>::Metrics>>);

impl<M: Tree, E: Environment, A: Learn<Observation = E::Observation>> CompiledPopulation<M, E, A> {
    /// The members at the start of their runs.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn init(&self) -> Result<PopulationState<M, E, A>, RuntimeError> {
        let keys: Vec<u8> =
            self.seeds.iter().flat_map(|&seed| Array::key(seed).bytes().to_vec()).collect();
        let ty = TensorType::new(DType::U32, [self.seeds.len(), 2]);
        let keys = Array::from_bytes(ty, keys)?;
        self.program.begin((Host::from(keys), self.data.clone()))
    }

    /// Runs the iterations of one call in each member: one dispatch on all devices.
    ///
    /// # Errors
    /// Errors of the runtime. [`RunError`](podracer_runtime::RunError) by downcast: it returns the
    /// state if nothing was launched.
    pub fn run(&self, state: PopulationState<M, E, A>) -> Result<CalledPopulation<M, E, A>> {
        let (state, metrics) = self.program.run(state)?;
        let iterations = self.settings.iterations_per_call;
        let each = self.seeds.len() / self.devices;
        let members = (0..self.seeds.len()).map(|member| {
            // The devices' parts are concatenated, each `[iterations, members of the device, ..]`.
            let (device, place) = (member / each, member % each);
            let rows = |all: &Array| {
                let first = device * iterations * each + place;
                picked(all, 2, (0..iterations).map(|i| first + i * each), &[iterations])
            };
            let agent = metrics.sharded.replicated.map(rows);
            let episodes = metrics.sharded.sharded.map(rows);
            let reports = metrics.reports.iter().filter_map(|report| {
                // The device if there are several, the iteration, the member.
                let mut report = report.clone();
                let of_device = self.devices == 1 || report.at.first() == Some(&device);
                report.at.drain(..usize::from(self.devices > 1).min(report.at.len()));
                let of_member = report.at.get(1) == Some(&place);
                (of_device && of_member).then(|| {
                    report.at.remove(1);
                    report
                })
            });
            TrainingMetrics::read(agent, &episodes, iterations, reports.collect())
        });
        Ok((state, members.collect::<Result<_, _>>()?))
    }

    /// A checkpoint of each member after `iterations` iterations: the checkpoint of an independent
    /// run, which [`CompiledAnakin`](crate::anakin::CompiledAnakin) can resume.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn members(
        &self,
        state: &PopulationState<M, E, A>,
        iterations: u64,
    ) -> Result<Vec<Checkpoint<'static>>, CheckpointError> {
        let member = || Checkpoint { iterations, ..Checkpoint::default() };
        let mut checkpoints: Vec<Checkpoint<'static>> =
            self.seeds.iter().map(|_| member()).collect();
        for (path, leaf) in state.sharded.state.named_sources() {
            let all = leaf.to_host()?;
            for (member, checkpoint) in checkpoints.iter_mut().enumerate() {
                let own = picked(&all, 1, [member].into_iter(), &[]);
                checkpoint.insert(STATE, [(path.clone(), own)]);
            }
        }
        Ok(checkpoints)
    }

    /// The agents of all members, on the host.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn agents(
        &self,
        state: &PopulationState<M, E, A>,
    ) -> Result<Vec<Host<A::State>>, RuntimeError> {
        let all = state.sharded.state.replicated.agent.to_host()?;
        let agent = |member| all.map(|leaf| picked(leaf, 1, [member].into_iter(), &[]));
        Ok((0..self.seeds.len()).map(agent).collect())
    }

    /// The members' data, which changes if members are exploited.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn data(&self, state: &PopulationState<M, E, A>) -> Result<Host<M>, RuntimeError> {
        state.sharded.data.to_host()
    }

    /// A checkpoint of the whole population after `iterations` iterations.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn checkpoint<'a>(
        &self,
        state: &'a PopulationState<M, E, A>,
        iterations: u64,
    ) -> Result<Checkpoint<'a>, RuntimeError> {
        let mut checkpoint = Checkpoint { iterations, ..Checkpoint::default() };
        checkpoint.insert(STATE, state.named_sources());
        Ok(checkpoint)
    }

    /// Restores a [`CompiledPopulation::checkpoint`] on the devices.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`] for a checkpoint of another population; [`CheckpointError::Runtime`].
    pub fn restore(
        &self,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<PopulationState<M, E, A>, CheckpointError> {
        self.program.restore(checkpoint, STATE)
    }

    /// Environment steps of a call, over all members.
    #[must_use]
    pub fn steps_per_call(&self) -> u64 {
        let AnakinSettings { environments, unroll, iterations_per_call, .. } = &self.settings;
        (self.seeds.len() * environments * unroll * iterations_per_call) as u64
    }

    /// Iterations of a call.
    #[must_use]
    pub fn iterations_per_call(&self) -> usize {
        self.settings.iterations_per_call
    }

    /// The runtime's compiled loop.
    #[must_use]
    pub fn program(&self) -> &PopulationProgram<M, E, A> {
        &self.program
    }
}

/// Checks that the devices can divide this number of members.
pub(crate) fn check_shares(members: usize, devices: usize) -> Result<(), UsageError> {
    builder::at_least_one(&[("seeds", members), ("devices", devices)])?;
    if members.is_multiple_of(devices) {
        return Ok(());
    }
    Err(UsageError::new(format!(
        "{members} members do not divide over {devices} devices: their number must be a multiple of {devices}"
    )))
}

/// Checks that the worst members of a population can take over from the best.
pub(crate) fn check_exploit(exploit: &Exploit, members: usize) -> Result<(), UsageError> {
    builder::at_least_one(&[("every", exploit.every)])?;
    let wrong = |problem: String| Err(UsageError::new(problem));
    if members < 2 {
        return wrong(format!("{members} member: the worst of at least 2 take over from the best"));
    }
    if !(exploit.share > 0.0 && exploit.share <= 0.5) {
        return wrong(format!("share is {} and must be above 0 and at most a half", exploit.share));
    }
    if exploit.factors.is_empty() || exploit.factors.iter().any(|x| !(x.is_finite() && *x > 0.0)) {
        return wrong(format!(
            "factors are {:?} and must be at least one above 0",
            exploit.factors
        ));
    }
    Ok(())
}

/// Some rows of an array with its first `axes` axes merged; the result has the given `shape`.
fn picked(all: &Array, axes: usize, rows: impl Iterator<Item = usize>, shape: &[usize]) -> Array {
    let row = TensorType::new(all.ty().dtype, &all.ty().shape[axes..]);
    let size = row.bytes();
    let bytes: Vec<u8> =
        rows.flat_map(|i| all.bytes()[i * size..(i + 1) * size].to_vec()).collect();
    let ty = TensorType::new(row.dtype, [shape, &row.shape[..]].concat());
    Array::from_bytes(ty, bytes).expect("as many rows as the shape says")
}
