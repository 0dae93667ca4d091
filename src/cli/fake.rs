//! A fake training, for the tests of the commands.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use podracer_compiler::{DType, TensorType};
use podracer_envs::host::{HostEnvironment, NativeCartPole, Pool};
use podracer_rl::learn::AnyAgent;
use podracer_runtime::{Array, Checkpoint, Client, Module, OptionValue};
use serde_json::Value;

use super::console::Console;
use super::program::Program;
use super::run;
use crate::evaluation::{Play, Played, Watch};
use crate::export::Portable;
use crate::registry::Registry;
use crate::settings::Settings;
use crate::training::{
    CallMetrics, Evaluator, FinishedEpisodes, LoopModule, Plays, Programs, Repeats, Run, Stage,
    Start, Training,
};

/// Returns grow by one with every call. Its result is its seed.
#[derive(Clone)]
struct Fake {
    settings: Settings,
    /// The call that fails, and the call in which Ctrl-C is pressed.
    fails: Option<u64>,
    interrupted: Option<(u64, Rc<AtomicBool>)>,
}

struct FakeRun {
    fake: Fake,
    calls: u64,
    seed: u64,
}

impl Programs for Fake {
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String> {
        Ok(format!("{stage:?} for {replicas}"))
    }

    fn modules(&self, replicas: usize) -> Result<Vec<LoopModule>> {
        let elements = self.settings.training_loop.environments() / replicas * 1024;
        let ty = TensorType::new(DType::F32, [elements]);
        let tensor = format!("tensor<{elements}xf32>");
        let body =
            format!("%0 = \"stablehlo.add\"(%arg0, %arg0) : ({tensor}, {tensor}) -> {tensor}");
        let text = format!(
            "module attributes {{mhlo.num_replicas = {replicas} : i32}} {{\n  func.func @main(%arg0: {tensor} \
             {{tf.aliasing_output = 0 : i32}}) -> {tensor} {{\n    {body}\n    return %0 : {tensor}\n  }}\n}}\n"
        );
        Ok(vec![LoopModule {
            name: "loop",
            replicas,
            threads: 1,
            waiting_bytes: 0,
            module: Module::new(text, vec![ty.clone()], vec![ty]),
        }])
    }

    fn programs(&self, _: Option<usize>) -> Result<Vec<Portable>> {
        bail!("the fake has no programs")
    }

    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        match platform {
            "cpu" => vec![("xla_cpu_prefer_vector_width".to_owned(), OptionValue::Int(256))],
            _ => Vec::new(),
        }
    }
}

impl Training for Fake {
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>> {
        let Start { devices, xla, seed, from, .. } = start;
        assert!(!devices.is_empty() && !xla.is_empty());
        let calls = from.map(|from| Ok::<u64, anyhow::Error>(from.array("store.calls")?.item()?));
        Ok(Box::new(FakeRun { fake: self.clone(), calls: calls.transpose()?.unwrap_or(0), seed }))
    }

    fn plays(&self) -> Result<&dyn Plays, String> {
        Ok(self)
    }

    fn repeats(&self) -> Result<&dyn Repeats, String> {
        Err("the fake has nothing to explain".to_owned())
    }
}

impl Plays for Fake {
    fn agent(&self) -> &AnyAgent {
        unreachable!("the fake plays without an agent")
    }

    fn environments(
        &self,
        _: (&Client, usize),
        episodes: usize,
    ) -> Result<Box<dyn HostEnvironment>> {
        Ok(Box::new(Pool::new(&NativeCartPole::new(500), episodes.max(1))))
    }

    fn evaluator(
        &self,
        _: Box<dyn HostEnvironment>,
        _: (&Client, usize),
        play: &Play,
    ) -> Result<Box<dyn Evaluator>> {
        Ok(Box::new(FakeEvaluator(*play)))
    }
}

/// Plays episodes with a return that is the number of calls, or one more; after the fourth call it
/// is 0.
struct FakeEvaluator(Play);

impl Evaluator for FakeEvaluator {
    fn play(
        &mut self,
        checkpoint: &Checkpoint,
        _: &AtomicBool,
        _: Watch<'_>,
    ) -> Result<Vec<Played>> {
        let calls: u64 = checkpoint.array("state.replicated.agent.calls")?.item()?;
        let episode = |index: usize| Played {
            episode_return: if calls == 4 { 0.0 } else { (calls as usize + index % 2) as f32 },
            length: calls as u32,
            success: None,
        };
        Ok((0..self.0.episodes).map(episode).collect())
    }
}

impl Run for FakeRun {
    fn compile_seconds(&self) -> f64 {
        0.25
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        self.calls += 1;
        if self.fake.fails == Some(self.calls) {
            bail!("the device is on fire");
        }
        if let Some((call, flag)) = &self.fake.interrupted
            && *call == self.calls
        {
            flag.store(true, Ordering::Relaxed);
        }
        let iterations = self.fake.settings.training_loop.iterations_per_call();
        let loss: Vec<f32> = (0..iterations).map(|iteration| iteration as f32).collect();
        Ok(CallMetrics {
            env_steps: self.fake.settings.plan().steps_per_iteration * iterations as u64,
            iterations: iterations as u64,
            per_iteration: vec![("loss".to_owned(), loss)],
            recent: FinishedEpisodes { episodes: 100, return_sum: 100.0 * self.calls as f64 },
            episodes: 3,
            ..CallMetrics::default()
        })
    }

    fn checkpoint(&mut self) -> Result<Checkpoint<'_>> {
        let mut checkpoint = Checkpoint {
            iterations: self.calls * self.fake.settings.training_loop.iterations_per_call() as u64,
            ..Checkpoint::default()
        };
        for part in ["state.replicated.agent.", "store."] {
            checkpoint.insert(part, [("calls".to_owned(), Array::scalar(self.calls))]);
        }
        Ok(checkpoint)
    }

    fn store(&self) -> &'static str {
        "store."
    }

    fn parameters(&self) -> Result<Vec<(String, Array)>> {
        Ok(vec![("policy.layers[0].weight".to_owned(), Array::from_slice([1], &[self.seed])?)])
    }

    fn evaluate(&mut self) -> Result<Vec<(String, f64)>> {
        Ok(vec![("greedy_return".to_owned(), 1.0)])
    }
}

pub(crate) struct Printed {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Printed {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.out.lines().last().unwrap()).unwrap()
    }
}

pub(crate) fn podracer(arguments: &[&str]) -> Printed {
    with(arguments, None, None)
}

pub(super) fn with(arguments: &[&str], fails: Option<u64>, interrupted: Option<u64>) -> Printed {
    let flag = Rc::new(AtomicBool::new(false));
    let build = |settings: &Settings| {
        let interrupted = interrupted.map(|call| (call, flag.clone()));
        let training = Fake { settings: settings.clone(), fails, interrupted };
        Ok(Box::new(training) as Box<dyn Training>)
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut console = Console::new(&mut out, &mut err, false);
    let arguments = ["podracer"].iter().chain(arguments).map(Into::into);
    let registry = Registry::built_in();
    let program = Program { registry: &registry, build: &build };
    let code = run(arguments, &mut console, program, &flag, Instant::now());
    Printed { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// The options that make a short run in `folder`.
pub(super) fn short<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["train", "cartpole-ppo", "--steps", "40000", "--run-dir"];
    arguments.push(folder.to_str().unwrap());
    arguments.extend(more);
    arguments
}
