//! Typed programs: a traced function compiled for devices, called with trees of buffers.
//!
//! Moved means donated, borrowed means kept: `program.run((state, &key))` gives the state's memory
//! to the program and keeps the key.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use podracer_compiler::stablehlo::{ArgumentSpec, Donation, ModuleSpec, Processes, stablehlo};
use podracer_compiler::{TensorType, simplify as passes};
use podracer_dsl::prelude::{Path, Spec, Traced, Tree};

use crate::tree::{self, Device, DeviceArray, Host, OnDevice, Placement};
use crate::warnings;
use crate::{
    Argument, Array, Checkpoint, CheckpointError, Client, CompileOptions, Executable,
    ExecutableCache, ExecuteError, Module, RuntimeError, Transfers, World, XlaOptions, pjrt,
};

/// Options for compiling a traced function. The defaults are one replica, XLA's options by
/// podracer's rule ([`XlaOptions::for_platform`](crate::XlaOptions::for_platform)), and the user's
/// cache.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// Replicas, their devices, XLA's options.
    pub compile: CompileOptions,
    /// The cache of compiled programs.
    pub cache: ExecutableCache,
    /// Simplifications before lowering: by default common subexpressions and dead code only.
    pub simplify: passes::Options,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        ProgramOptions {
            compile: CompileOptions::default(),
            cache: ExecutableCache::user(),
            simplify: passes::Options::default(),
        }
    }
}

/// The most work of a program that is compiled without optimization: about a second's.
const QUICK_WORK: usize = 1 << 30;

/// The options for the program that makes the first state. The program runs once. On a CPU, where
/// optimizing takes longer than running, it is therefore not optimized, unless it has much work,
/// such as orthogonal weights of large layers.
pub(crate) fn quick(options: &ProgramOptions, program: &Lowered, platform: &str) -> ProgramOptions {
    let mut options = options.clone();
    if platform != "cpu" || program.work >= QUICK_WORK {
        return options;
    }
    // Among the given options, the rule's options were not chosen for this program.
    let rule = XlaOptions::of_trainings(platform);
    options.compile.xla.retain(|given| !rule.contains(given));
    options.compile.fill_unoptimized();
    options
}

/// A program as StableHLO, before any device is involved.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// StableHLO, and the types of arguments and results.
    pub module: Module,
    /// The key paths of arguments and results, and the result that each argument may donate its
    /// memory to.
    pub spec: ModuleSpec,
    /// The work of a call in loops, reductions and products:
    /// [`Func::work_apart`](podracer_compiler::Func::work_apart).
    pub work: usize,
}

impl Lowered {
    /// The arguments that may give their memory to a result, by index.
    #[must_use]
    pub fn donated(&self) -> Vec<usize> {
        let arguments = &self.spec.arguments;
        (0..arguments.len()).filter(|&i| arguments[i].donation != Donation::Kept).collect()
    }
}

/// Lowers a traced function. Every argument may donate its memory to a result of its type,
/// preferably the result with the same path; each call decides which arguments are donated.
///
/// # Errors
/// [`RuntimeError::Options`] if the number of replicas differs from the traced number;
/// [`RuntimeError::Lowering`], which is a bug of the compiler.
pub fn lower<A: Tree, R: Tree>(
    name: &str,
    traced: &Traced<A, R>,
    replicas: usize,
) -> Result<Lowered, RuntimeError> {
    lower_with(name, traced, (replicas, Processes::ONE), &passes::Options::default())
}

/// Lowers a traced function for one replica, with all arguments kept by the caller: for programs
/// that others run, who may pass the same buffers again.
///
/// # Errors
/// As [`lower`].
pub fn lower_kept<A: Tree, R: Tree>(
    name: &str,
    traced: &Traced<A, R>,
) -> Result<Lowered, RuntimeError> {
    let kept = |arguments: &[_], _: &[_]| vec![Donation::Kept; arguments.len()];
    lower_as(name, traced, (1, Processes::ONE), &passes::Options::default(), kept)
}

/// [`lower`] for the given replicas and processes, with the simplifications in `options`.
pub(crate) fn lower_with<A: Tree, R: Tree>(
    name: &str,
    traced: &Traced<A, R>,
    replicas: (usize, Processes),
    options: &passes::Options,
) -> Result<Lowered, RuntimeError> {
    lower_as(name, traced, replicas, options, donations)
}

/// The leaves of an argument or result: paths and types.
type Leaves = [(Path, TensorType)];

/// Lowers a traced function. From the leaves of arguments and results, `donations` decides the
/// result that each argument donates its memory to.
fn lower_as<A: Tree, R: Tree>(
    name: &str,
    traced: &Traced<A, R>,
    (replicas, processes): (usize, Processes),
    options: &passes::Options,
    donations: impl FnOnce(&Leaves, &Leaves) -> Vec<Donation>,
) -> Result<Lowered, RuntimeError> {
    if let Some(expected) = traced.replicas().filter(|&expected| expected != replicas) {
        return Err(RuntimeError::Options(format!(
            "the program was traced for {expected} replica(s) and is to run on {replicas}"
        )));
    }
    let func = passes::simplify(traced.func(), options);
    let arguments = traced.arguments().leaves();
    let results = traced.results().leaves();
    let donation = donations(&arguments, &results);
    let spec = ModuleSpec {
        name: name.to_owned(),
        replicas,
        processes,
        whole_loops: options.whole_loops,
        arguments: (arguments.iter().zip(&donation))
            .map(|((path, _), &donation)| ArgumentSpec { name: path.to_string(), donation })
            .collect(),
        result_names: results.iter().map(|(path, _)| path.to_string()).collect(),
    };
    let emitted =
        stablehlo(&func, &spec).map_err(|error| RuntimeError::Lowering(error.to_string()))?;
    let types = |leaves: Vec<(Path, TensorType)>| leaves.into_iter().map(|(_, ty)| ty).collect();
    let module = Module {
        text: emitted.text_with_locations,
        arguments: types(arguments),
        results: types(results),
        key_text: Some(emitted.text),
    };
    Ok(Lowered { module, spec, work: func.work_apart() })
}

/// The result that each argument's buffer can become: a result with the same path below the
/// argument's and the result's position, otherwise any other result with the same type.
fn donations(arguments: &Leaves, results: &Leaves) -> Vec<Donation> {
    let mut taken = vec![false; results.len()];
    let mut donation = vec![Donation::Kept; arguments.len()];
    let tail = |path: &Path| Path(path.0.get(1..).unwrap_or(&[]).to_vec());
    for by_path in [true, false] {
        for (slot, (path, ty)) in donation.iter_mut().zip(arguments) {
            if *slot != Donation::Kept {
                continue;
            }
            let fits = |i: &usize| {
                !taken[*i]
                    && results[*i].1 == *ty
                    && (!by_path || tail(&results[*i].0) == tail(path))
            };
            if let Some(i) = (0..results.len()).find(fits) {
                taken[i] = true;
                *slot = Donation::Into(i);
            }
        }
    }
    donation
}

/// A compiled function from a tree of arguments to a tree of results.
pub struct Program<A: Tree, R: Tree> {
    executable: Executable,
    results: Spec<R>,
    placements: Vec<Placement>,
    /// The processes that run it together; `None` for a single process.
    world: Option<World>,
    compile_time: Duration,
    cached: bool,
    arguments: PhantomData<fn(A)>,
}

impl<A: Tree, R: Tree> Program<A, R> {
    /// Compiles a traced function. `placements` defines for every leaf of the results how the
    /// replicas share it.
    ///
    /// # Errors
    /// [`RuntimeError::Options`] for missing devices or a number of placements other than the
    /// number of leaves, before anything is lowered; [`RuntimeError::Lowering`]; the errors of
    /// [`Client::compile`].
    pub fn compile(
        client: &Client,
        name: &str,
        traced: &Traced<A, R>,
        placements: Vec<Placement>,
        options: &ProgramOptions,
    ) -> Result<Self, RuntimeError> {
        let start = Instant::now();
        options.compile.placement(client.devices().len())?;
        let leaves = traced.results().leaves();
        if placements.len() != leaves.len() {
            return Err(RuntimeError::Options(format!(
                "the results have {} leaves ({}) and {} placements were given: give one for each leaf",
                leaves.len(),
                tree::quoted(leaves.iter().map(|(path, _)| path)),
                placements.len()
            )));
        }
        traced.warnings().iter().for_each(warnings::tell);
        let replicas = (options.compile.members(), options.compile.processes);
        let lowered = lower_with(name, traced, replicas, &options.simplify)?;
        options.compile.agree(client, &[&lowered.module])?;
        let compiled = options.cache.compile(client, &lowered.module, &options.compile)?;
        let results = traced.results().clone();
        Ok(Self::new(results, (placements, &options.compile), compiled, start.elapsed()))
    }

    /// The program from the types of a function's results, one placement for each, and the compiled
    /// executable.
    pub(crate) fn new(
        results: Spec<R>,
        (placements, options): (Vec<Placement>, &CompileOptions),
        (executable, cached): (Executable, bool),
        compile_time: Duration,
    ) -> Self {
        let client = executable.devices().first().map(pjrt::Device::client);
        let world = client.and_then(Client::world).filter(|_| options.processes.count > 1);
        let arguments = PhantomData;
        Program { executable, results, placements, world, compile_time, cached, arguments }
    }

    /// Runs the program once on all its devices. It may return before the computation is done.
    ///
    /// # Errors
    /// As [`Executable::execute`]; the error contains the moved arguments if nothing was launched.
    pub fn run<X: Arguments<A>>(&self, arguments: X) -> Result<Device<R>, ExecuteError> {
        let mut lists = Vec::new();
        arguments.fill(&mut lists);
        if lists.is_empty() {
            // Arguments without leaves fit any number of devices.
            lists.resize_with(self.executable.devices().len(), Vec::new);
        }
        let outputs = self.executable.execute(lists)?;
        let mut replicas: Vec<_> = outputs.into_iter().map(Vec::into_iter).collect();
        let leaves = self.placements.iter().map(|&placement| DeviceArray {
            buffers: replicas.iter_mut().filter_map(Iterator::next).collect(),
            placement,
            world: self.world,
        });
        Ok(tree::from_leaves::<R, OnDevice>(&self.results, leaves))
    }

    /// Puts a whole argument on each of the program's devices. The argument is a [`Host`] tree with
    /// named leaves ([`Host::from_named`]), or the array of a single-leaf tree.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn upload<T: Tree>(&self, tree: impl Into<Host<T>>) -> Result<Device<T>, RuntimeError> {
        tree.into().on_devices(self.executable.devices())
    }

    /// Restores results of this program on its devices from the part of a checkpoint, with the
    /// arrays from [`Device::named_arrays`].
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`] for another tree or other types; [`CheckpointError::Runtime`].
    pub fn restore(
        &self,
        checkpoint: &Checkpoint<'_>,
        part: &str,
    ) -> Result<Device<R>, CheckpointError> {
        let devices = self.executable.devices();
        let members = devices.len() * self.world.map_or(1, World::size);
        let leaves = || self.results.leaves().into_iter().zip(&self.placements);
        let whole = leaves()
            .map(|((path, ty), placement)| (path.to_string(), placement.global(ty, members)));
        let arrays = checkpoint.part(part, &whole.collect::<Vec<_>>())?;
        let leaves = leaves().zip(arrays).map(|(((_, ty), &placement), array)| {
            array.upload(&ty, placement, (devices, self.world))
        });
        let leaves = leaves.collect::<Result<Vec<_>, _>>()?;
        Ok(tree::from_leaves::<R, OnDevice>(&self.results, leaves))
    }

    /// Transfers between host and devices by this program.
    #[must_use]
    pub fn transfers(&self) -> &Transfers {
        self.executable.transfers()
    }

    /// The executable that the program runs.
    #[must_use]
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Time from the traced function to the executable, lowering included.
    #[must_use]
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }

    /// Returns true if the executable came from the cache.
    #[must_use]
    pub fn was_cached(&self) -> bool {
        self.cached
    }
}

/// An argument tree of type `T`: a `Device<T>` by value, which is donated, or a `&Device<T>`, which is kept.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of type `{T}`",
    label = "expected `Device<{T}>` (donated) or `&Device<{T}>` (kept)"
)]
pub trait Pass<T: Tree> {
    /// Adds its buffers to the list of each replica.
    fn fill<'a>(self, lists: &mut Vec<Vec<Argument<'a>>>)
    where
        Self: 'a;
}

/// Adds a leaf's buffers to the lists of the replicas. If there are no lists yet, one is made for
/// each buffer.
fn add<'a>(
    lists: &mut Vec<Vec<Argument<'a>>>,
    buffers: impl ExactSizeIterator<Item = Argument<'a>>,
) {
    lists.resize_with(lists.len().max(buffers.len()), Vec::new);
    lists.iter_mut().zip(buffers).for_each(|(list, buffer)| list.push(buffer));
}

impl<T: Tree> Pass<T> for Device<T> {
    fn fill<'a>(self, lists: &mut Vec<Vec<Argument<'a>>>)
    where
        Self: 'a,
    {
        for leaf in self.into_leaves() {
            add(lists, leaf.buffers.into_iter().map(Argument::Donated));
        }
    }
}

impl<T: Tree> Pass<T> for &Device<T> {
    fn fill<'a>(self, lists: &mut Vec<Vec<Argument<'a>>>)
    where
        Self: 'a,
    {
        T::visit_kind::<OnDevice>(&self.0, &mut Path::root(), &mut |_, leaf: &'a DeviceArray| {
            add(lists, leaf.buffers.iter().map(Argument::Kept));
        });
    }
}

/// The arguments of a program: a tuple with one entry for each.
#[diagnostic::on_unimplemented(
    message = "`{Self}` are not the arguments `{A}`",
    label = "expected a tuple with `Device<T>` (donated) or `&Device<T>` (kept) for each argument"
)]
pub trait Arguments<A: Tree> {
    /// Adds their buffers to the list of each replica, in order.
    fn fill<'a>(self, lists: &mut Vec<Vec<Argument<'a>>>)
    where
        Self: 'a;
}

macro_rules! arguments {
    ($($tree:ident $pass:ident),+) => {
        #[allow(non_snake_case)]
        impl<$($tree: Tree, $pass: Pass<$tree>),+> Arguments<($($tree,)+)> for ($($pass,)+) {
            fn fill<'a>(self, lists: &mut Vec<Vec<Argument<'a>>>)
            where
                Self: 'a,
            {
                let ($($pass,)+) = self;
                $($pass.fill(lists);)+
            }
        }
    };
}
arguments!(A X);
arguments!(A X, B Y);
arguments!(A X, B Y, C Z);
arguments!(A X, B Y, C Z, D W);

/// Naming the leaves of a tree on devices.
impl<T: Tree> Device<T> {
    /// Key path and value of every leaf, in order: the contents of a checkpoint.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`] if the computation failed.
    pub fn named_arrays(&self) -> Result<Vec<(String, Array)>, RuntimeError> {
        let host: Host<T> = self.to_host()?;
        let mut named = Vec::new();
        host.visit(|path, leaf| named.push((path.to_string(), leaf.clone())));
        Ok(named)
    }
}
