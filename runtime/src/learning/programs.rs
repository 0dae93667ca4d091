//! The programs of a run, traced and lowered: everything that is scheduled, before any device is
//! involved.

use std::sync::Arc;

use podracer_compiler::Func;
use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::{
    Key, Log, Path, Placed, Replicas, Spec, Tensor, TensorType, TraceErrors, Traced, Tree, Warning,
    bool as bool_spec, collect, eval_shape, i32 as i32_spec, pmean, trace, u32 as u32_spec,
};
use podracer_dsl::trace_replicated;
use podracer_envs::host::{HostSpec, StepOutcome};

use super::error::SebulbaError;
use super::host_replay::{HostReplay, ReplaySupply};
use super::shape::{Origin, SebulbaShape};
use super::supply::{Supply, TrajectoryQueues};
use crate::anakin::metric_name;
use crate::needed::Needed;
use crate::program::{Lowered, lower_with};
use crate::settings::HostLoopSettings;
use crate::{Client, Executable, Placement, Processes, RuntimeError, projection, warnings};

/// The functions of the DSL that Sebulba and central inference schedule. Each becomes a program.
///
/// The methods from [`HostLoopFunctions::act_in`] on are for central inference. In central
/// inference, the actor is the state of `N` lanes that an acting device keeps. Lane and row numbers
/// of `N` or more are padding, and nothing may be written for them.
pub trait HostLoopFunctions {
    /// The parameters for acting: a part of the learner's state.
    type Params: Tree;
    /// The part of the learner's state that is equal on all learner devices.
    type State: Tree;
    /// The part of the learner's state that differs between learner devices.
    type Store: Tree;
    /// The state of an actor thread, on its device.
    type Actor: Tree;
    /// The part of the actor's state that the next trajectory depends on.
    type Carry: Tree;
    /// The part of a trajectory that goes to one learner device.
    type Shard: Tree;
    /// Data of an iteration: one shard of every actor thread in their order, as a `Vec`, or windows
    /// of a replay on the host.
    type Data: Tree;
    /// Scalars of an iteration, f32 `[]`.
    type Metrics: Tree;
    /// An iteration's requests to a replay on the host: the number of gradient steps that need
    /// windows, i32 `[1]`, and the windows over all devices, i32 `[G, B]`. `()` if there is no such
    /// replay.
    type Requests: Tree;
    /// Memory for the unrolls of `N` rows.
    type Unrolls: Tree;

    /// The learner at the start of a run, from the run's key.
    fn init(&self, key: Key) -> Placed<Self::State, Self::Store>;
    /// The leaves of the learner's state that are used for acting, unchanged.
    fn params(&self, learner: &Self::State) -> Self::Params;
    /// An actor thread at the start of a run, from the run's key and the global index of its first
    /// environment, i32 `[]`. `continues`, bool `[]`, is true if the actor will get the carry of
    /// another actor, and its steps follow the other's last step.
    fn start(&self, key: Key, first: Tensor, continues: Tensor) -> Self::Actor;
    /// The leaves of an actor's state that the next trajectory depends on, unchanged, before its
    /// first step.
    fn carried(&self, actor: &Self::Actor) -> Self::Carry;
    /// One step of acting: takes the outcome of the last step, and returns the actions of the next
    /// step.
    fn act(
        &self,
        nets: &Self::Params,
        actor: Self::Actor,
        outcome: StepOutcome,
    ) -> (Tensor, Self::Actor);
    /// The trajectory after its last outcome: a shard for each learner device.
    fn finish(&self, actor: Self::Actor, outcome: StepOutcome) -> Vec<Self::Shard>;
    /// The types of an iteration's data, from the types of a shard.
    ///
    /// # Errors
    /// Mistakes, with the user's lines.
    fn data(&self, shard: &Spec<Self::Shard>) -> Result<Spec<Self::Data>, TraceErrors>;
    /// The sizes of the replay on the host, from the types of a shard; `None` if rollouts stay on
    /// the devices.
    ///
    /// # Errors
    /// Mistakes, with the user's lines.
    fn replay(&self, shard: &Spec<Self::Shard>) -> Result<Option<HostReplay>, TraceErrors>;
    /// One iteration. Averages over learner devices are computed here, except for the metrics.
    fn learn(&self, state: Placed<Self::State, Self::Store>, data: Self::Data) -> LearntBy<Self>;

    /// One step of acting in the lanes i32 `[B]`: takes the outcomes of their last steps, and
    /// returns the actions of the next steps. `[B, ..]`
    fn act_in(
        &self,
        params: &Self::Params,
        actor: Self::Actor,
        outcome: StepOutcome,
        lanes: Tensor,
    ) -> (Tensor, Self::Actor);
    /// Memory without unrolls.
    fn unrolls(&self) -> Self::Unrolls;
    /// Writes the unrolls of the lanes i32 `[B]`, with these outcomes of their last steps, into
    /// `rows` i32 `[B]`.
    fn take_out(
        &self,
        unrolls: Self::Unrolls,
        actor: &Self::Actor,
        outcome: StepOutcome,
        lanes: Tensor,
        rows: Tensor,
    ) -> Self::Unrolls;
    /// Divides the unrolls over the learner devices: a shard each.
    fn shards(&self, unrolls: Self::Unrolls) -> Vec<Self::Shard>;
    /// Resets the lanes in the mask bool `[N]` to the start of a run with this key. `first` is the
    /// global index of the first lane.
    fn restart(&self, actor: Self::Actor, key: Key, first: Tensor, lanes: Tensor) -> Self::Actor;
}

/// The results of an iteration: the learner's state, metrics, and requests to a replay on the host.
pub type LearntBy<F> = (
    Placed<<F as HostLoopFunctions>::State, <F as HostLoopFunctions>::Store>,
    <F as HostLoopFunctions>::Metrics,
    <F as HostLoopFunctions>::Requests,
);

/// The programs of a run.
#[derive(Clone, Debug)]
pub struct SebulbaLoop {
    pub(crate) shape: SebulbaShape,
    pub(crate) environments: HostSpec,
    pub(crate) init: SebulbaProgram,
    pub(crate) start: SebulbaProgram,
    pub(crate) act: SebulbaProgram,
    pub(crate) finish: SebulbaProgram,
    pub(crate) learn: SebulbaProgram,
    /// Indices and paths of the leaves of the learner's state that are published.
    pub(crate) nets: Vec<(usize, String)>,
    /// Indices and paths of the leaves of the actor's state that are carried from trajectory to trajectory.
    pub(crate) carried: Vec<(usize, String)>,
    /// The leaves of the learner's state: path, type on each device, placement.
    pub(crate) state: Vec<(String, TensorType, Placement)>,
    /// The types of a shard's leaves.
    pub(crate) shard: Vec<TensorType>,
    /// The replay on the host, if there is one.
    pub(crate) replay: Option<HostReplay>,
    /// Names of the metrics.
    pub(crate) metrics: Vec<String>,
    /// Types of the reports from `check` and `debug_print` in `act`: its last results.
    pub(crate) act_log: Spec<Log>,
    /// Types of the reports from `check` and `debug_print` in `learn`, on each learner device.
    pub(crate) learn_log: Spec<Log>,
    warnings: Vec<Warning>,
}

/// One of the programs.
#[derive(Clone, Debug)]
pub struct SebulbaProgram {
    /// Name of the program: `init`, `start`, `act`, `finish`, `learn`.
    pub name: &'static str,
    /// The function as traced.
    pub func: Func,
    /// The program as StableHLO.
    pub lowered: Lowered,
}

impl SebulbaLoop {
    /// Traces all programs, and lowers them with these groups of simplifications.
    ///
    /// # Errors
    /// Every mistake of the first trace that fails, with the user's lines;
    /// [`SebulbaError::Options`] for functions that do not match each other or the environments.
    #[track_caller]
    pub fn trace<F: HostLoopFunctions>(
        name: &str,
        shape: SebulbaShape,
        environments: &HostSpec,
        functions: &F,
        simplify: &Simplify,
    ) -> Result<Self, SebulbaError> {
        Ok(Self::traces(name, shape, environments, functions, simplify)?.0)
    }

    /// [`SebulbaLoop::trace`], with the data that other programs of the same functions need.
    #[track_caller]
    pub(crate) fn traces<'a, F: HostLoopFunctions>(
        name: &'a str,
        shape: SebulbaShape,
        environments: &HostSpec,
        functions: &F,
        simplify: &'a Simplify,
    ) -> Result<(Self, Traces<'a, F>), SebulbaError> {
        let lowered = Lowering { name, simplify };
        let key = || u32_spec([2]);
        let init = trace_replicated(shape.all_learners(), (key(),), |(key,)| {
            functions.init(Key::from_words(key))
        })?;
        let start = trace((key(), i32_spec([]), bool_spec([])), |(key, first, continues)| {
            functions.start(Key::from_words(key), first, continues)
        })?;
        let learner: Spec<Placed<F::State, F::Store>> = init.results().clone();
        let params = |state: Placed<F::State, F::Store>| functions.params(&state.replicated);
        let published = projection("params", &learner, params)?;
        let actor = start.results().clone();
        let carried = projection("carried", &actor, |actor| functions.carried(&actor))?;
        let nets = eval_shape((&learner,), |(state,)| params(state))?;
        let outcome = environments.outcome();
        let act = trace((&nets, &actor, &outcome), |(nets, actor, outcome)| {
            collect(|| functions.act(&nets, actor, outcome))
        })?;
        let finish =
            trace((&actor, &outcome), |(actor, outcome)| functions.finish(actor, outcome))?;
        let (acted, act_log) = &**act.results();
        let (action, acted) = &**acted;
        expect("`act` gives actions", &environments.action_type(), action)?;
        same("`act` changes the actor's state", &actor, acted)?;
        let shares = finish.results().iter().collect::<Vec<_>>();
        let Some(packet) = shares.first().filter(|_| shares.len() == shape.learners) else {
            return Err(SebulbaError::Options(format!(
                "`finish` gives {} packets and there are {} learner devices",
                shares.len(),
                shape.learners
            )));
        };
        for share in &shares {
            same("`finish` gives packets of several types", packet, share)?;
        }
        let packet = Spec::clone(packet);
        let (data, replay) = (functions.data(&packet)?, functions.replay(&packet)?);
        let learn = trace_replicated(shape.all_learners(), (&learner, &data), |(state, data)| {
            let ((state, metrics, requests), log) = collect(|| functions.learn(state, data));
            (state, pmean(metrics, Replicas), log, requests)
        })?;
        let (learnt, metrics, learn_log, _) = &**learn.results();
        same("`learn` changes the learner's state", &learner, learnt)?;
        let mut warnings: Vec<Warning> = Vec::new();
        let of_all = [
            init.warnings(),
            start.warnings(),
            act.warnings(),
            finish.warnings(),
            learn.warnings(),
        ];
        for warning in of_all.into_iter().flatten() {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let programs = SebulbaLoop {
            act_log: Spec::clone(act_log),
            learn_log: Spec::clone(learn_log),
            warnings,
            nets: published,
            carried,
            state: placed(&learner),
            metrics: metrics.leaves().iter().map(|(path, _)| metric_name(path)).collect(),
            init: lowered.program("init", (shape.all_learners(), shape.processes), &init)?,
            start: lowered.program("start", ALONE, &start)?,
            act: lowered.program("act", ALONE, &act)?,
            finish: lowered.program("finish", ALONE, &finish)?,
            learn: lowered.program("learn", (shape.all_learners(), shape.processes), &learn)?,
            environments: environments.clone(),
            shape,
            shard: packet.types(),
            replay,
        };
        Ok((programs, Traces { lowering: lowered, nets: Spec::clone(&nets), actor, shard: packet }))
    }

    /// The sizes of the run: threads, learner devices and steps.
    #[must_use]
    pub fn shape(&self) -> SebulbaShape {
        self.shape
    }

    /// Warnings of the programs: mistakes that do not stop them, with the user's lines.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// A lower bound of the arrays that a run holds at the same time. These are the learner's state
    /// and a trajectory on each learner device, the state of each actor thread, and the results of
    /// the largest loops of acting and of learning.
    fn needed(&self, learners: &[usize]) -> Needed {
        let mut needed = Needed::default();
        let learn = &self.learn.lowered;
        for (argument, ty) in learn.spec.arguments.iter().zip(&learn.module.arguments) {
            needed.add(format!("learning's `{}`", argument.name), ty, learners.len());
        }
        let start = &self.start.lowered;
        for (name, ty) in start.spec.result_names.iter().zip(&start.module.results) {
            needed.add(format!("an actor's `{name}`"), ty, self.shape.threads);
        }
        needed.add_largest_loop(&self.act.func, self.shape.threads);
        needed.add_largest_loop(&self.learn.func, learners.len());
        needed
    }

    /// Checks that the machine has room for a run, on the devices and for a replay on the host, and
    /// logs the programs' warnings.
    pub(crate) fn check_machine(
        &self,
        client: &Client,
        settings: &HostLoopSettings,
        origin: Origin<'_>,
    ) -> Result<(), SebulbaError> {
        self.needed(settings.learning()).check(client)?;
        self.check_space(&settings.folder(), origin)?;
        self.warnings.iter().for_each(warnings::tell);
        Ok(())
    }

    /// Checks that the disk of the folder has room for a replay on the host.
    fn check_space(
        &self,
        folder: &std::path::Path,
        origin: Origin<'_>,
    ) -> Result<(), SebulbaError> {
        let Some(replay) = &self.replay else { return Ok(()) };
        let from = match origin {
            Origin::Seed(_) => None,
            Origin::Checkpoint(checkpoint) => Some(checkpoint),
        };
        let shards = (&self.shard[..], self.shape.threads, self.shape.learners);
        Ok(replay.check_space(shards, folder, from)?)
    }

    /// Indices of the leaves of the learner's state that are published.
    pub(crate) fn published(&self) -> Vec<usize> {
        self.nets.iter().map(|(leaf, _)| *leaf).collect()
    }

    /// Names of the learner's threads: the learner thread, and the thread of a replay on the host.
    pub(crate) fn learner_threads(&self) -> impl Iterator<Item = String> {
        ["the learner".to_owned()]
            .into_iter()
            .chain(self.replay.iter().map(|_| "the replay".to_owned()))
    }

    /// Paths and types of the leaves that are carried from trajectory to trajectory.
    pub(crate) fn carried_types(&self) -> Vec<(String, TensorType)> {
        let results = &self.start.lowered.module.results;
        let carried = self.carried.iter();
        carried.map(|(leaf, path)| (path.clone(), results[*leaf].clone())).collect()
    }

    /// The replay on the host; `None` if rollouts stay on the devices.
    #[must_use]
    pub fn replay(&self) -> Option<&HostReplay> {
        self.replay.as_ref()
    }

    /// The supply of a run: a replay in the folder if the programs have a replay on the host,
    /// otherwise `queues`.
    pub(crate) fn supply(
        &self,
        learn: &Arc<Executable>,
        folder: &std::path::Path,
        room: usize,
        queues: impl FnOnce() -> TrajectoryQueues,
    ) -> Result<Box<dyn Supply>, RuntimeError> {
        let Some(replay) = self.replay else {
            return Ok(Box::new(queues()));
        };
        let learn = (Arc::clone(learn), self.state.len());
        let shards = (&self.shard[..], self.shape.threads);
        Ok(Box::new(ReplaySupply::new(replay, shards, folder, learn, room)?))
    }

    /// The parameters among the leaves of the learner's state: position and path of each.
    #[must_use]
    pub fn parameters(&self) -> &[(usize, String)] {
        &self.nets
    }

    /// Names of the metrics.
    #[must_use]
    pub fn metrics(&self) -> &[String] {
        &self.metrics
    }

    /// The program that makes the learner's state at the start of a run.
    #[must_use]
    pub fn init(&self) -> &SebulbaProgram {
        &self.init
    }

    /// The programs that run repeatedly: `act` and `finish` of the actor threads, `learn` of the
    /// learner.
    #[must_use]
    pub fn programs(&self) -> [&SebulbaProgram; 3] {
        [&self.act, &self.finish, &self.learn]
    }
}

/// Types of a run's functions, and the settings for lowering its programs.
pub(crate) struct Traces<'a, F: HostLoopFunctions> {
    pub(crate) lowering: Lowering<'a>,
    pub(crate) nets: Spec<F::Params>,
    pub(crate) actor: Spec<F::Actor>,
    pub(crate) shard: Spec<F::Shard>,
}

/// The replicas of a program of one device.
pub(crate) const ALONE: (usize, Processes) = (1, Processes::ONE);

/// The names and options for lowering every program of a run.
pub(crate) struct Lowering<'a> {
    /// The run's name.
    name: &'a str,
    simplify: &'a Simplify,
}

impl Lowering<'_> {
    /// Lowers a program for the given replicas and processes.
    pub(crate) fn program<A: Tree, R: Tree>(
        &self,
        program: &'static str,
        replicas: (usize, Processes),
        traced: &Traced<A, R>,
    ) -> Result<SebulbaProgram, RuntimeError> {
        let name = format!("{}_{program}", self.name);
        Ok(SebulbaProgram {
            name: program,
            func: traced.func().clone(),
            lowered: lower_with(&name, traced, replicas, self.simplify)?,
        })
    }
}

/// The leaves of the learner's state.
fn placed<L: Tree, E: Tree>(state: &Spec<Placed<L, E>>) -> Vec<(String, TensorType, Placement)> {
    let replicated = state.replicated.leaves().len();
    let leaf = |(index, (path, ty)): (usize, (Path, TensorType))| {
        let placement = if index < replicated { Placement::Replicated } else { Placement::Sharded };
        (path.to_string(), ty, placement)
    };
    state.leaves().into_iter().enumerate().map(leaf).collect()
}

pub(crate) fn expect(
    what: &str,
    expected: &TensorType,
    got: &TensorType,
) -> Result<(), SebulbaError> {
    if expected == got {
        return Ok(());
    }
    Err(SebulbaError::Options(format!("{what} {got} and the environments take {expected}")))
}

pub(crate) fn same<T: Tree>(
    problem: &str,
    one: &Spec<T>,
    other: &Spec<T>,
) -> Result<(), SebulbaError> {
    if one == other {
        return Ok(());
    }
    Err(SebulbaError::Options(format!("{problem}: {one} and {other}")))
}
