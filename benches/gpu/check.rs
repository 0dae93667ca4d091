//! Checks of the runtime on a device against the reference semantics. Each check prints its result;
//! all of them run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use anyhow::{Result, anyhow, bail, ensure};
use podracer_compiler::ops::{Combiner, Scatter};
use podracer_compiler::transform::jvp;
use podracer_compiler::{Array, DType, OpRef, Sample, TensorType};
use podracer_dsl::prelude::*;
use podracer_envs::{CartPole, Catch, Environment, Pendulum};
use podracer_rl::learn::Learn;
use podracer_rl::optim::{adam, chain, clip_by_global_norm};
use podracer_runtime::{Argument, Buffer, Client, CompileOptions, ExecutableCache, Module};
use podracer_tests::cases::{Expected, batched, forward, one_op, reverse, samples, types};
use podracer_tests::compare::differences;
use podracer_tests::xla::{self, Case, run_all};
use serde_json::json;

#[path = "../../tests/tests/loops.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod loops;

use crate::support::{number, program, run as run_to_end, say};

/// Greatest difference of results if f32 products use tf32, with 10 bits after the point: a GPU's
/// default.
const TF32: f64 = 4e-3;

#[derive(clap::Args)]
pub struct Options {
    /// Number of the only check to make, from 1.
    #[arg(long)]
    number: Option<usize>,
}

type Check = fn(&Client) -> Result<String>;

const CHECKS: [(&str, Check); 12] = [
    ("every element type survives the round trip", round_trip),
    ("a donated argument gives its memory to the result", donation),
    ("a kept argument survives", kept),
    ("a compiled program comes back from the cache", cache),
    ("keys are equal to the bit", keys),
    ("ops compute what the reference semantics do", ops),
    ("batches of ops compute what their slices do", batches),
    ("derivatives of ops compute what the reference semantics do", derivatives),
    ("the derivative of a set is that of the update it kept", kept_updates),
    ("PPO in CartPole and Pendulum, an Anakin call", ppo),
    ("the online actor-critic in Catch, an Anakin call", online),
    ("IMPALA in pixel Catch, Sebulba on one device", sebulba),
];

/// On the platform that `PODRACER_TEST_PLATFORM` names.
pub fn run(options: &Options) -> Result<()> {
    let client = xla::open(1)?;
    let device = client.device(0)?;
    say(&json!({"device": {
        "kind": device.kind(), "devices": client.devices().len(), "platform": client.platform(),
        "version": client.platform_version(), "plugin": client.plugin().library(),
        "pjrt": client.plugin().version(),
    }}));
    let mut failed = 0;
    let numbered = CHECKS.iter().zip(1..);
    let chosen = numbered.filter(|(_, number)| options.number.is_none_or(|only| only == *number));
    for ((name, check), _) in chosen {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&client)))
            .unwrap_or_else(|_| Err(anyhow!("it panicked: see above")));
        let (ok, said) = match outcome {
            Ok(said) => (true, said),
            Err(error) => (false, format!("{error:#}")),
        };
        failed += usize::from(!ok);
        eprintln!("{} {name}: {said}", if ok { "ok    " } else { "FAILED" });
        say(&json!({"check": {"name": name, "ok": ok, "said": said}}));
    }
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

fn round_trip(client: &Client) -> Result<String> {
    let device = client.device(0)?;
    for dtype in DType::ALL {
        for shape in [&[3, 2][..], &[], &[2, 0, 3]] {
            let ty = TensorType::new(dtype, shape);
            let bytes: Vec<u8> = (0..ty.bytes()).map(|byte| (byte % 2) as u8).collect();
            let array = Array::from_bytes(ty.clone(), bytes)?;
            ensure!(
                Buffer::from_host(&array, &device)?.to_host()? == array,
                "{ty} came back changed"
            );
        }
    }
    Ok(format!("{} types", DType::ALL.len()))
}

/// `(x + 1, sum(x))` on `f32[1024]`, where the first result may take over the argument's memory.
fn step() -> Module {
    let (vector, scalar) = (TensorType::new(DType::F32, [1024]), TensorType::new(DType::F32, []));
    let text = r"
module @step {
  func.func public @main(%x: tensor<1024xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<1024xf32>, tensor<f32>) {
    %one = stablehlo.constant dense<1.0> : tensor<1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %next = stablehlo.add %x, %one : tensor<1024xf32>
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
    return %next, %sum : tensor<1024xf32>, tensor<f32>
  }
}";
    Module::new(text, vec![vector.clone()], vec![vector, scalar])
}

fn ones(client: &Client) -> Result<Buffer> {
    let ones = Array::from_slice([1024], &[1.0f32; 1024])?;
    Ok(Buffer::from_host(&ones, &client.device(0)?)?)
}

fn donation(client: &Client) -> Result<String> {
    let executable = client.compile(&step(), &CompileOptions::default())?;
    let x = ones(client)?;
    let address = x.address()?;
    let results = executable.execute(vec![vec![Argument::Donated(x)]])?.remove(0);
    ensure!(results[0].address()? == address, "the result is elsewhere");
    ensure!(results[1].to_host()?.item::<f32>()? == 1024.0, "the sum is wrong");
    ensure!(results[0].to_host()?.to_vec::<f32>()? == [2.0; 1024], "the result is wrong");
    Ok("same address".to_owned())
}

fn kept(client: &Client) -> Result<String> {
    let executable = client.compile(&step(), &CompileOptions::default())?;
    let x = ones(client)?;
    let results = executable.execute(vec![vec![Argument::Kept(&x)]])?.remove(0);
    ensure!(results[0].to_host()?.to_vec::<f32>()? == [2.0; 1024], "the result is wrong");
    ensure!(x.to_host()?.to_vec::<f32>()? == [1.0; 1024], "the argument is changed");
    Ok("unchanged".to_owned())
}

fn cache(client: &Client) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let cache = ExecutableCache::at(folder.path(), ExecutableCache::LIMIT);
    let mut sums = Vec::new();
    for expected in [false, true] {
        let (executable, found) = cache.compile(client, &step(), &CompileOptions::default())?;
        ensure!(found == expected, "the cache had it: {found}, and should have: {expected}");
        let results = executable.execute(vec![vec![Argument::Donated(ones(client)?)]])?.remove(0);
        sums.push(results[1].to_host()?.item::<f32>()?);
    }
    ensure!(sums == [1024.0; 2], "sums of {sums:?}");
    Ok("compiled, then loaded".to_owned())
}

fn keys(_: &Client) -> Result<String> {
    let mut cases = Vec::new();
    for seed in [0, 1, 0xffff_ffff_ffff] {
        let traced = trace((key(),), |(key,)| {
            let [a, b, c] = key.split_into();
            (a.words(), b.fold_in(7).bits(U32, [257]), c.bits(U32, [3, 5]))
        })?;
        let words = Array::key(seed);
        cases.push(Case {
            name: format!("seed {seed}"),
            func: traced.func().clone(),
            arguments: vec![words],
        });
    }
    let all = cases.iter().map(|case| (case.clone(), case.func.eval(&case.arguments), 0.0));
    compared(all.collect())
}

/// Runs all, which have the results and the tolerance beside them.
fn compared(all: Vec<(Case, Vec<Array>, f64)>) -> Result<String> {
    let cases: Vec<Case> = all.iter().map(|(case, ..)| case.clone()).collect();
    let (mut coarse, mut wrong) = (Vec::new(), Vec::new());
    for ((case, expected, tolerance), got) in all.iter().zip(run_all(&cases)) {
        let name = &case.name;
        match got {
            Err(error) => wrong.push(format!("{name}: {error:#}")),
            Ok(got) if differences(expected, &got, *tolerance).is_none() => {}
            Ok(got) => match differences(expected, &got, TF32.max(*tolerance)) {
                // Keys and other whole numbers have no tolerance.
                None if *tolerance > 0.0 => coarse.push(name.clone()),
                None => wrong.extend(
                    differences(expected, &got, *tolerance).map(|said| format!("{name}: {said}")),
                ),
                Some(said) => wrong.push(format!("{name}: {said}")),
            },
        }
    }
    let few = |names: &[String]| names.iter().take(12).cloned().collect::<Vec<_>>().join("; ");
    if !wrong.is_empty() {
        bail!("{} of {} are wrong: {}", wrong.len(), cases.len(), few(&wrong));
    }
    let count = cases.len();
    Ok(match coarse.len() {
        0 => format!("{count} cases"),
        some => format!("{count} cases, {some} of them as precise as tf32 only: {}", few(&coarse)),
    })
}

/// The samples with equal results on every platform. A `set` with colliding updates keeps any of
/// them, and has a check of its own ([`kept_updates`]); a GPU's library has no integer convolution.
fn comparable() -> impl Iterator<Item = (String, Sample)> {
    let any = |op: &OpRef| {
        let set = op.downcast::<Scatter>();
        set.is_some_and(|set| set.combiner == Combiner::Set && !set.unique_indices)
    };
    let integers = |sample: &Sample| !sample.inputs[0].ty().dtype.is_float();
    let none = move |sample: &Sample| sample.op.mnemonic() == "convolution" && integers(sample);
    samples().into_iter().filter(move |(_, sample)| !any(&sample.op) && !none(sample))
}

/// The greatest difference of a result: a GPU divides and takes roots to within one in the last place, where a CPU rounds correctly.
fn tolerance(sample: &Sample) -> f64 {
    let coarsest = sample.inputs.iter().map(|input| match input.ty().dtype {
        DType::BF16 => 8e-3,
        DType::F16 => 1e-3,
        DType::F32 => 2e-6,
        DType::F64 => 1e-14,
        _ => 0.0,
    });
    coarsest.fold(sample.tolerance, f64::max)
}

fn ops(_: &Client) -> Result<String> {
    let case = |(name, sample): (String, Sample)| {
        let func = one_op(&sample.op, &types(&sample.inputs));
        let (expected, tolerance) = (sample.op.eval(&sample.inputs), tolerance(&sample));
        (Case { name, func, arguments: sample.inputs }, expected, tolerance)
    };
    compared(comparable().map(case).collect())
}

fn batches(_: &Client) -> Result<String> {
    let cases = |(name, sample): (String, Sample)| {
        let tolerance = tolerance(&sample);
        let with = move |Expected { case, results }| (case, results, tolerance);
        batched(&name, &sample).into_iter().map(with).collect::<Vec<_>>()
    };
    compared(comparable().flat_map(cases).collect())
}

fn derivatives(_: &Client) -> Result<String> {
    let mut all = Vec::new();
    for (name, sample) in comparable() {
        let floats = sample.inputs.iter().filter(|input| input.ty().dtype.is_float());
        if !sample.differentiable || floats.count() == 0 {
            continue;
        }
        let tolerance = tolerance(&sample);
        for case in [forward(&name, &sample), reverse(&name, &sample)].into_iter().flatten() {
            let expected = case.func.eval(&case.arguments);
            all.push((case, expected, tolerance));
        }
    }
    compared(all)
}

/// Eight updates collide at each of eight positions, each with a tangent: the result's tangent must
/// belong to the kept update.
fn kept_updates(_: &Client) -> Result<String> {
    let (x, count) = (Array::from_slice([9], &[0.5_f32; 9])?, 64);
    let places: Vec<i32> = (0..count).map(|i| i * 5 % 8).collect();
    let numbers: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let updates = Array::from_slice([64], &numbers)?;
    let op = Scatter::at(1, 1, 0, Combiner::Set);
    let inputs = [x.clone(), Array::from_slice([64], &places)?, updates.clone()];
    let func = one_op(&OpRef::new(op), &types(&inputs));
    let (with_tangents, _) = jvp(&func, &[true, false, true])?;
    let tangents = Array::from_slice([64], &numbers.iter().map(|x| 100.0 + x).collect::<Vec<_>>())?;
    let name = "set".to_owned();
    let arguments = [&inputs[..], &[x, tangents]].concat();
    let [got] = &run_all(&[Case { name, func: with_tangents, arguments }])[..] else {
        bail!("one case has one outcome");
    };
    let got = got.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let [values, tangents] = [got[0].to_vec::<f32>()?, got[1].to_vec::<f32>()?];
    for (place, (value, tangent)) in values.iter().zip(&tangents).enumerate() {
        let (kept, expected) = match place {
            8 => (*value == 0.5, 0.5),
            _ => (*value as i32 * 5 % 8 == place as i32, 100.0 + value),
        };
        ensure!(
            kept && *tangent == expected,
            "place {place} has {value} with the tangent {tangent}"
        );
    }
    Ok(format!("kept {:?}", &values[..8]))
}

/// One call of the loop on the device and by the reference semantics, from the same state.
fn anakin<E: Environment, A: Learn<Observation = E::Observation>>(
    client: &Client,
    environment: &E,
    agent: &A,
) -> Result<String> {
    let traced = loops::traced(environment, agent, loops::TINY);
    // The options of `loops` are for speed of compiling on a CPU.
    let mut options = loops::options(1);
    options.compile.xla.clear();
    let program = traced.compile(client, &options)?;
    let state = program.init(2)?;
    let expected =
        traced.traced().eval(&loops::arrays(&state)).map_err(|error| anyhow!("{error}"))?;
    let got: Vec<Array> = loops::arrays(&program.program().run((state,))?);
    for (tolerance, said) in [(2e-6, "as on a CPU"), (TF32, "as precise as tf32 only")] {
        if differences(&expected, &got, tolerance).is_none() {
            return Ok(format!("{} arrays, {said}", got.len()));
        }
    }
    bail!("{}", differences(&expected, &got, TF32).unwrap_or_default())
}

fn ppo(client: &Client) -> Result<String> {
    let optimizer = || chain(clip_by_global_norm(0.5), adam(1e-3).eps(1e-5));
    let (cart_pole, pendulum) = (CartPole::default(), Pendulum::default());
    let first = anakin(client, &cart_pole, &loops::ppo(&cart_pole, optimizer()))?;
    let second = anakin(client, &pendulum, &loops::ppo(&pendulum, optimizer()))?;
    Ok(format!("{first}; {second}"))
}

fn online(client: &Client) -> Result<String> {
    let environment = Catch { rows: 4, columns: 3 };
    anakin(client, &environment, &loops::online(&environment, adam(1e-3).eps(1e-5)))
}

fn sebulba(client: &Client) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program()?);
    command.args(["train", "catch-impala", "--json", "--steps=20000", "--set=sebulba.actors=[0]"]);
    command.args(["--set=sebulba.learners=[0]", "--set=sebulba.iterations_per_call=5"]);
    command.arg(format!("--set=train.platform={}", client.plugin().name()));
    command.arg("--run-dir").arg(folder.path().join("run"));
    let line = run_to_end(&mut command)?;
    Ok(format!(
        "mean return {} after {} steps",
        number(&line, "mean_return")?,
        number(&line, "env_steps")?
    ))
}
