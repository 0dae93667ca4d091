//! Functions of the IR on the CPU plugin, or on the platform in `PODRACER_TEST_PLATFORM`.
//!
//! Compiling a module takes tens of milliseconds however small it is, so functions are compiled by the hundred: one module takes
//! the arguments of all and gives the results of all.

use anyhow::{Context as _, Result, anyhow};
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};
use podracer_compiler::{Array, Builder, Func, Var};
use podracer_runtime::{
    Argument, Buffer, Client, ClientOptions, CompileOptions, Module, OptionValue, Plugin,
    RuntimeError, World, XlaOptions,
};
use std::sync::OnceLock;

/// A function and what to call it with.
#[derive(Clone, Debug)]
pub struct Case {
    /// Says in a complaint which case it was.
    pub name: String,
    /// Function to run.
    pub func: Func,
    /// One per parameter.
    pub arguments: Vec<Array>,
}

/// Number of functions that share a module.
const CASES_PER_MODULE: usize = 200;

/// A client of the tests' platform: this number of CPU devices, or with
/// `PODRACER_TEST_PLATFORM=cuda13` the GPUs.
///
/// # Errors
/// Where the plugin is not installed or does not start.
pub fn open(cpu_devices: usize) -> Result<Client, RuntimeError> {
    let platform = std::env::var("PODRACER_TEST_PLATFORM").unwrap_or_else(|_| "cpu".to_owned());
    let cpu_devices = (platform == "cpu").then_some(cpu_devices);
    Client::new(Plugin::load(&platform)?, ClientOptions { cpu_devices, ..ClientOptions::default() })
}

/// The client of [`open`] with four devices, opened once in a process.
///
/// # Errors
/// Where the plugin is not installed or does not start.
pub fn client() -> Result<Client> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| open(4).map_err(|error| error.to_string()));
    client.clone().map_err(|error| anyhow!(error))
}

/// Runs one function.
///
/// # Errors
/// Where it is not emitted, not compiled or does not run.
pub fn run(func: &Func, arguments: &[Array]) -> Result<Vec<Array>> {
    Ok(run_replicated(func, &[arguments.to_vec()])?.remove(0))
}

/// Runs one function, compiled without optimisation: for tests of a large program's results, not of
/// XLA's compilation.
///
/// # Errors
/// As [`run`].
pub fn run_quickly(func: &Func, arguments: &[Array]) -> Result<Vec<Array>> {
    Ok(run_with(func, &[arguments.to_vec()], XlaOptions::unoptimized().into())?.remove(0))
}

/// Runs one function on as many devices as there are lists of arguments; gives the results of each.
///
/// # Errors
/// As [`run`].
pub fn run_replicated(func: &Func, arguments: &[Vec<Array>]) -> Result<Vec<Vec<Array>>> {
    run_with(func, arguments, Vec::new())
}

/// [`run_replicated`] on devices of this process and as many of every other process: `arguments`
/// belong to this process's devices, and so do the results.
///
/// # Errors
/// As [`run`], and where the processes do not agree.
pub fn run_in_world(
    world: World,
    func: &Func,
    arguments: &[Vec<Array>],
) -> Result<Vec<Vec<Array>>> {
    let cpu_devices = Some(arguments.len());
    let options = ClientOptions { cpu_devices, world: Some(world), ..ClientOptions::default() };
    run_on(&Client::cpu(options)?, func, arguments, Vec::new())
}

fn run_with(
    func: &Func,
    arguments: &[Vec<Array>],
    xla: Vec<(String, OptionValue)>,
) -> Result<Vec<Vec<Array>>> {
    run_on(&client()?, func, arguments, xla)
}

fn run_on(
    client: &Client,
    func: &Func,
    arguments: &[Vec<Array>],
    xla: Vec<(String, OptionValue)>,
) -> Result<Vec<Vec<Array>>> {
    let (replicas, processes) = (arguments.len(), client.processes());
    let spec = ModuleSpec::new(func.name.clone(), func).replicas(replicas * processes.count);
    let spec = spec.processes(processes);
    let module = stablehlo(func, &spec).context("emitting StableHLO")?;
    let mut compiled =
        Module::new(module.text_with_locations, func.param_types(), func.result_types());
    compiled.key_text = Some(module.text.clone());
    let options = CompileOptions { replicas, processes, xla, ..CompileOptions::default() };
    options.agree(client, &[&compiled])?;
    let executable = client
        .compile(&compiled, &options)
        .with_context(|| format!("compiling{}", shown(&module.text)))?;
    let upload = |(replica, arrays): (usize, &Vec<Array>)| {
        let one = |(i, array)| executable.upload(replica, i, array);
        arrays.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()
    };
    let buffers = arguments.iter().enumerate().map(upload).collect::<Result<Vec<_>, _>>()?;
    let kept = buffers.iter().map(|list| list.iter().map(Argument::Kept).collect()).collect();
    let fetch = |list: &Vec<Buffer>| -> Result<Vec<Array>> {
        list.iter().map(|buffer| Ok(buffer.to_host()?)).collect()
    };
    executable.execute(kept)?.iter().map(fetch).collect()
}

/// Runs many functions, each with its own outcome.
pub fn run_all(cases: &[Case]) -> Vec<Result<Vec<Array>>> {
    cases.chunks(CASES_PER_MODULE).flat_map(run_together).collect()
}

/// Runs functions in one module. Where that fails the half with the failure is found, and so on down to the single case.
fn run_together(cases: &[Case]) -> Vec<Result<Vec<Array>>> {
    let arguments: Vec<Array> = cases.iter().flat_map(|case| case.arguments.clone()).collect();
    let error = match run(&together(cases), &arguments) {
        Ok(mut results) => {
            let take = |case: &Case| Ok(results.drain(..case.func.results.len()).collect());
            return cases.iter().map(take).collect();
        }
        Err(error) => error,
    };
    if cases.len() <= 1 {
        return vec![Err(error)];
    }
    let (left, right) = cases.split_at(cases.len() / 2);
    run_together(left).into_iter().chain(run_together(right)).collect()
}

fn together(cases: &[Case]) -> Func {
    let mut b = Builder::new();
    let params: Vec<Vec<Var>> = cases
        .iter()
        .map(|case| case.func.param_types().into_iter().map(|ty| b.param(ty)).collect())
        .collect();
    let results =
        cases.iter().zip(&params).flat_map(|(case, params)| b.inline(&case.func, params)).collect();
    b.finish("together", results)
}

/// A module's text for an error, shortened if it is long.
fn shown(text: &str) -> String {
    if text.lines().count() <= 15 { format!("\n{text}") } else { String::new() }
}
