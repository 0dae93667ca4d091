//! The training of an update rule for the command line.

use std::time::Instant;

use anyhow::{Context, Result};
use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::{Key, eval_shape};
use podracer_dsl::tree::AnyTree;
use podracer_envs::{AnyEnvironment, AnyTasks, Environment};
use podracer_rl::Number;
use podracer_rl::anakin::{AgentLoop, Episodes, LoopState};
use podracer_rl::learn::{Axes, Task};
use podracer_rl::meta::{
    Life, LifeMetrics, LpgRule, MetaState, MetaTraining, Rule, UpdateRule, ValueState,
};
use podracer_rl::optim::{
    Adam, Chain, ClipByGlobalNorm, Optimizer, adam, chain, clip_by_global_norm,
};
use podracer_runtime::{
    AnakinLoop, AnakinProgram, AnakinState, Array, Checkpoint, OptionValue, projection,
};

use super::one_program;
use super::recent::RecentReturns;
use crate::anakin::{STATE, STORE, TrainingMetrics, portable};
use crate::builder;
use crate::export::Portable;
use crate::learned::{LearnedSettings, Learner};
use crate::registry::parse;
use crate::settings::{MetaLoopSettings, Settings, UsageError};
use crate::training::{
    CallMetrics, LoopModule, Plays, Programs, Repeats, Run, Stage, Start, Training,
};

type MetaOptimizer = Chain<ClipByGlobalNorm, Adam>;
type Replicated = MetaState<<MetaOptimizer as Optimizer>::State<LpgRule>>;
type Sharded = Life<Option<AnyTree>, LoopState<AnyEnvironment, Learner>, ValueState>;
type Traced = AnakinLoop<Replicated, Sharded, LifeMetrics, Episodes>;

/// The training of a rule by agents in tasks.
pub(super) struct RuleTraining {
    settings: MetaLoopSettings,
    agent: LearnedSettings,
    environment: AnyEnvironment,
    /// The environment as a distribution of tasks, one for each life; without it all lives are in
    /// the environment itself.
    tasks: Option<AnyTasks>,
    task: Task,
    steps_per_iteration: u64,
    name: String,
    simplify: Simplify,
}

/// The training that settings describe.
///
/// # Errors
/// [`UsageError`] for an agent that learns by no rule or by a rule of its own, and for an agent
/// that does not fit the environment.
pub(super) fn training(
    settings: &Settings,
    meta: &MetaLoopSettings,
    (environment, tasks): (AnyEnvironment, Option<AnyTasks>),
) -> Result<RuleTraining, UsageError> {
    if settings.agent_kind() != "learned" {
        return Err(UsageError::new(format!(
            "agent.kind is {} and must be learned: [meta] trains the rule of such agents",
            settings.agent_kind()
        )));
    }
    let agent: LearnedSettings = parse(&settings.agent, "agent").map_err(UsageError::new)?;
    if let Some(rule) = &agent.rule {
        return Err(UsageError::new(format!(
            "agent.rule is `{}`: [meta] trains a rule, and takes none",
            rule.display()
        )));
    }
    let task = Task {
        observation: environment.observation_space(),
        action: environment.action_space(),
        // Schedules of an agent extend over its life.
        iterations: meta.meta.lifetime[1],
        model: None,
    };
    let training = RuleTraining {
        settings: meta.clone(),
        agent,
        environment,
        tasks,
        task,
        steps_per_iteration: settings.plan().steps_per_iteration,
        name: builder::module_name(&settings.experiment),
        simplify: settings.program.options(&settings.train.platform, false),
    };
    // Its mistakes are reported before anything is traced.
    let spec = LpgRule::spec_of(&meta.meta.rule);
    let mut made = Ok(());
    let traced = eval_shape((spec,), |(rule,)| {
        made = training.agent.learner(&training.task, rule.into(), 1.0.into()).map(drop);
    });
    traced.map_err(|error| UsageError::new(error.to_string()))?;
    made.map_err(UsageError::new)?;
    Ok(training)
}

impl RuleTraining {
    /// The loop of an agent in a task.
    fn agent_loop(
        &self,
        task: Option<AnyTree>,
        rule: LpgRule,
        factor: Number,
    ) -> AgentLoop<AnyEnvironment, Learner> {
        let environment = match (&self.tasks, task) {
            (Some(tasks), Some(task)) => tasks.world(&task),
            _ => self.environment.clone(),
        };
        let agent = self.agent.learner(&self.task, Rule::from(rule), factor);
        let agent = agent.expect("the training was made of these settings");
        let MetaLoopSettings { environments, unroll, .. } = self.settings;
        AgentLoop::new(environment, agent, environments, unroll).spread(Axes::none())
    }

    fn trace(&self, devices: usize) -> Result<Traced> {
        let settings = &self.settings;
        let optimizer =
            chain(clip_by_global_norm(settings.max_gradient_norm), adam(settings.learning_rate));
        let draw = |key: Key| self.tasks.as_ref().map(|tasks| tasks.draw(key));
        let make = |task, rule: LpgRule, factor: Number| self.agent_loop(task, rule, factor);
        let agents = (settings.agents / devices, devices);
        let training = MetaTraining::new(draw, make, optimizer, agents, settings.meta.clone());
        Ok(AnakinLoop::trace(
            &self.name,
            devices,
            settings.iterations_per_call,
            |key| training.init(key),
            |state| training.iterate(state),
        )?)
    }
}

impl Programs for RuleTraining {
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String> {
        one_program::text(&self.trace(replicas)?, stage, &self.simplify)
    }

    fn modules(&self, replicas: usize) -> Result<Vec<LoopModule>> {
        Ok(vec![one_program::module(&self.trace(replicas)?, replicas, &self.simplify)?])
    }

    fn programs(&self, _batch: Option<usize>) -> Result<Vec<Portable>> {
        let traced = self.trace(1)?;
        let about = format!("{} update(s) of the rule", self.settings.iterations_per_call);
        Ok(portable(&self.name, &traced, rule_in(&traced)?, about)?.into())
    }

    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        builder::xla_options(platform, &self.simplify)
    }

    fn products(&self) -> Result<Option<(usize, usize)>> {
        Ok(Some(self.trace(1)?.traced().func().library_work()))
    }
}

/// The rule's arrays among the leaves of the replicated state: index and path of each.
fn rule_in(traced: &Traced) -> Result<Vec<(usize, String)>> {
    let state = &traced.traced_init().results().replicated;
    Ok(projection("parameters", state, |state| state.rule.params)?)
}

impl Training for RuleTraining {
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>> {
        let Start { client, devices, seed, from, .. } = start;
        let began = Instant::now();
        let options = one_program::options(&start, &self.simplify);
        let traced = self.trace(devices.len())?;
        let parameters = rule_in(&traced)?;
        let program =
            traced.compile(client, &options).context("cannot compile the training loop")?;
        let compile_seconds = began.elapsed().as_secs_f64();
        let state = match from {
            Some(checkpoint) => program.restore(checkpoint, STATE)?,
            None => program.init(seed)?,
        };
        let iterations_per_call = self.settings.iterations_per_call;
        Ok(Box::new(RuleRun {
            program,
            parameters,
            state: Some(state),
            compile_seconds,
            iterations: from.map_or(0, |checkpoint| checkpoint.iterations),
            iterations_per_call,
            steps_per_call: self.steps_per_iteration * iterations_per_call as u64,
            recent: RecentReturns::restored(from)?,
        }))
    }

    fn plays(&self) -> Result<&dyn Plays, String> {
        Err("the training makes an update rule and no agent: agents of kind `learned` learn by it, with agent.rule = \
             the run's parameters.safetensors"
            .to_owned())
    }

    fn repeats(&self) -> Result<&dyn Repeats, String> {
        Err("the iterations of [meta] are not made again one by one".to_owned())
    }
}

/// A training of a rule on its devices.
struct RuleRun {
    program: AnakinProgram<Replicated, Sharded, LifeMetrics, Episodes>,
    /// The rule's arrays among the leaves of the replicated state: index and path.
    parameters: Vec<(usize, String)>,
    /// Absent only after a call that failed.
    state: Option<AnakinState<Replicated, Sharded>>,
    compile_seconds: f64,
    iterations: u64,
    iterations_per_call: usize,
    steps_per_call: u64,
    recent: RecentReturns,
}

impl RuleRun {
    fn state(&self) -> Result<&AnakinState<Replicated, Sharded>> {
        self.state.as_ref().context("the run ended with an error before")
    }
}

impl Run for RuleRun {
    fn compile_seconds(&self) -> f64 {
        self.compile_seconds
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        let state = self.state.take().context("the run ended with an error before")?;
        let (state, metrics) = self.program.run(state)?;
        self.state = Some(state);
        self.iterations += self.iterations_per_call as u64;
        let (of_rule, episodes) = (metrics.replicated.clone(), metrics.sharded.clone());
        let calls = self.iterations_per_call;
        let metrics = TrainingMetrics::read(of_rule, &episodes, calls, metrics.reports)?;
        self.recent.call(metrics, (self.steps_per_call, calls as u64))
    }

    fn checkpoint(&mut self) -> Result<Checkpoint<'_>> {
        let mut checkpoint = Checkpoint { iterations: self.iterations, ..Checkpoint::default() };
        checkpoint.insert(STATE, self.state()?.named_sources());
        self.recent.save(&mut checkpoint)?;
        Ok(checkpoint)
    }

    fn store(&self) -> &'static str {
        STORE
    }

    fn parameters(&self) -> Result<Vec<(String, Array)>> {
        let leaves = self.state()?.replicated.named_sources();
        let picked = self.parameters.iter();
        picked.map(|(leaf, path)| Ok((path.clone(), leaves[*leaf].1.to_host()?))).collect()
    }
}
