//! Collectives among replicas, of one process and of several: what vmap over an axis of the same name computes in one place, replicas
//! compute together.

use std::process::Command;

use podracer_compiler::ops::{
    AllGather, AllReduce, AxisIndex, CollectivePermute, Combination, REPLICAS,
};
use podracer_compiler::stablehlo::{ModuleSpec, Processes, stablehlo};
use podracer_compiler::transform::{VmapContext, vmap as batched_func};
use podracer_compiler::{Array, Builder, DType, Func, Scalar, TensorType};
use podracer_dsl::prelude::*;
use podracer_dsl::trace_replicated;
use podracer_runtime::pjrt::launched;
use podracer_runtime::{
    Client, ClientOptions, CompileOptions, Placement, Program, ProgramOptions, World,
};
use podracer_test_support::mpi::{mpirun, this_test};
use podracer_test_support::skip::skip;
use podracer_tests::check_all;
use podracer_tests::compare::differences;
use podracer_tests::xla::{run_in_world, run_replicated};

/// Senders and receivers among `n` replicas: a ring, an exchange of neighbours, the first to the
/// last, none.
fn permutations(replicas: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let all: Vec<usize> = (0..replicas).collect();
    let ring = all.iter().map(|&member| (member + 1) % replicas).collect();
    let neighbours = all.iter().map(|&member| member ^ 1).collect();
    vec![(all.clone(), ring), (all, neighbours), (vec![0], vec![replicas - 1]), (vec![], vec![])]
}

/// Every collective, in one function.
fn collectives(types: &[TensorType], replicas: usize) -> Func {
    let axis = REPLICAS.to_string();
    let mut b = Builder::new();
    let params: Vec<_> = types.iter().map(|ty| b.param(ty.clone())).collect();
    let mut results = Vec::new();
    for &computation in Combination::ALL {
        results.extend(b.emit(AllReduce { axis: axis.clone(), computation }, &params));
    }
    for dimension in 0..=types[0].rank() {
        let gather = AllGather { axis: axis.clone(), size: replicas, dimension };
        results.push(b.emit1(gather, &params[..1]));
    }
    for (sources, targets) in permutations(replicas) {
        for param in &params {
            let (sources, targets) = (sources.clone(), targets.clone());
            let permute = CollectivePermute { axis: axis.clone(), sources, targets };
            results.push(b.emit1(permute, std::slice::from_ref(param)));
        }
    }
    results.push(b.emit1(AxisIndex { axis }, &[]));
    b.finish("collectives", results)
}

/// Arguments for each of `n` replicas.
fn arguments(types: &[TensorType], replicas: usize) -> Vec<Vec<Array>> {
    let array = |ty: &TensorType, replica: usize| {
        let value = |i: usize| (7 * i + 5 * replica) as i64 % 9 - 4;
        let data = (0..ty.elements()).map(|i| Scalar::number(ty.dtype, value(i)));
        Array::new(ty.clone(), data)
    };
    (0..replicas).map(|replica| types.iter().map(|ty| array(ty, replica)).collect()).collect()
}

/// Returns the differences between `n` replicas and a vmap over an axis of the same name. `run`
/// returns the results of some replicas, from the replica `first` on.
fn complaints(
    types: &[TensorType],
    replicas: usize,
    (first, run): (usize, impl FnOnce(&Func, &[Vec<Array>]) -> anyhow::Result<Vec<Vec<Array>>>),
) -> Vec<String> {
    let func = collectives(types, replicas);
    let arguments = arguments(types, replicas);
    let got = run(&func, &arguments).expect("the replicas run");

    let mut context = VmapContext::new(replicas);
    context.axis = Some(REPLICAS.to_string());
    let force = vec![true; func.results.len()];
    let (batched, _) = batched_func(&func, &context, &vec![true; types.len()], &force);
    let stacked: Vec<Array> = (0..types.len())
        .map(|i| {
            let members: Vec<Array> = arguments.iter().map(|one| one[i].clone()).collect();
            Array::stack(&types[i], &members)
        })
        .collect();
    let expected = batched.eval(&stacked);
    let one = |(replica, got): (usize, &Vec<Array>)| {
        let expected: Vec<Array> =
            expected.iter().map(|array| array.index_leading(first + replica)).collect();
        let problem = differences(&expected, got, 0.0)?;
        Some(format!("replica {} of {replicas}: {problem}", first + replica))
    };
    got.iter().enumerate().filter_map(one).collect()
}

const TYPES: [(DType, &[usize]); 3] =
    [(DType::F32, &[2, 3]), (DType::I32, &[2]), (DType::F32, &[])];

#[test]
fn replicas_compute_what_a_named_vmap_does() {
    let types = TYPES.map(|(dtype, shape)| TensorType::new(dtype, shape));
    let of = |replicas| complaints(&types, replicas, (0, run_replicated));
    check_all(&[2, 4].map(of).concat());
}

/// On a GPU or TPU a program is the same for all devices, whichever process has them; on a CPU it is one process's, and calls the others.
#[test]
fn a_module_is_for_all_devices_where_collectives_span_processes() {
    let types = TYPES.map(|(dtype, shape)| TensorType::new(dtype, shape));
    let func = collectives(&types, 4);
    let text = |processes| {
        let spec = ModuleSpec::new("collectives", &func).replicas(4).processes(processes);
        stablehlo(&func, &spec).expect("StableHLO").text
    };
    let one = text(Processes::ONE);
    assert!(one.contains("mhlo.num_replicas = 4") && !one.contains("podracer_"), "{one}");
    assert_eq!(text(Processes { count: 2, by_calls: false }), one);
    let called = text(Processes { count: 2, by_calls: true });
    assert!(
        called.contains("mhlo.num_replicas = 2") && called.contains("podracer_sum"),
        "{called}"
    );
}

/// The processes are this test once more, as MPI's launcher starts it.
#[test]
fn replicas_of_several_processes_compute_what_a_named_vmap_does() {
    const DEVICES: usize = 2;
    // MPI has no floats of 16 bits.
    let more: [(DType, &[usize]); 5] = [
        (DType::BF16, &[3]),
        (DType::F16, &[2]),
        (DType::F64, &[2]),
        (DType::U8, &[5]),
        (DType::I64, &[2, 1]),
    ];
    let types: Vec<TensorType> =
        TYPES.into_iter().chain(more).map(|(dtype, shape)| TensorType::new(dtype, shape)).collect();
    let name = "replicas::replicas_of_several_processes_compute_what_a_named_vmap_does";
    if let Some(launched) = launched() {
        let world = World::join(launched).expect("the processes meet");
        let first = world.rank() * DEVICES;
        let run = |func: &Func, all: &[Vec<Array>]| {
            run_in_world(world, func, &all[first..first + DEVICES])
        };
        check_all(&complaints(&types, world.size() * DEVICES, (first, run)));
        return world.leave().expect("the processes part");
    }
    for processes in [2, 3] {
        let Some(mut command) = this_test(processes, name) else { return };
        let output = command.output().expect("mpirun starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("1 passed").count(), processes, "{said}");
    }
}

/// Averages the processes' dumps, and compares the mean with the program's.
const MPI4PY: &str = r#"
import sys
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
folder, rank = sys.argv[1], world.rank
own = np.fromfile(f"{folder}/gradient-{rank}", "<f4")
total = np.empty_like(own)
world.Allreduce(own, total)
mean = np.fromfile(f"{folder}/mean-{rank}", "<f4")
assert own.size > 100 and np.abs(own).max() > 0.01, own
assert np.array_equal(total / np.float32(world.size), mean), (total / world.size - mean)
print("equal")
"#;

/// An independent check: mpi4py averages the gradients that two processes dump, bit-identically to
/// their program's mean.
#[test]
fn gradients_are_averaged_as_mpi4py_does() {
    let name = "replicas::gradients_are_averaged_as_mpi4py_does";
    if let Some(launched) = launched() {
        let world = World::join(launched).expect("the processes meet");
        let folder = std::env::var("PODRACER_TEST_FOLDER").expect("the first test names one");
        let traced = trace_replicated(world.size(), (f32([8, 16]),), |(w,)| {
            let mine = axis_index(Replicas).astype(F32);
            let x =
                (arange(4).astype(F32).expand_dims(1) + mine * 0.5 + arange(8).astype(F32)).sin();
            let gradient = grad(w, |w| x.matmul(w).tanh().square().mean());
            (gradient, pmean(gradient, Replicas))
        })
        .expect("a program");
        let options =
            ClientOptions { cpu_devices: Some(1), world: Some(world), ..Default::default() };
        let client = Client::cpu(options).expect("the plugin");
        let compile = CompileOptions { processes: client.processes(), ..CompileOptions::default() };
        let options = ProgramOptions { compile, ..ProgramOptions::default() };
        // Each process has its own gradient: the buffers are read, and not put together.
        let placements = vec![Placement::Replicated; 2];
        let program = Program::compile(&client, "gradients", &traced, placements, &options);
        let program = program.expect("it compiles");
        let values: Vec<f32> = (0..8 * 16).map(|i| (i as f32 * 0.7).sin()).collect();
        let w = program.upload(Array::from_slice([8, 16], &values).expect("a matrix"));
        let results = program.run((&w.expect("an argument"),)).expect("it runs").to_host();
        let results = results.expect("results").into_leaves();
        for (what, array) in ["gradient", "mean"].iter().zip(results) {
            let file = format!("{folder}/{what}-{}", world.rank());
            std::fs::write(file, array.bytes()).expect("a file");
        }
        return world.leave().expect("the processes part");
    }
    let Some(mut processes) = this_test(2, name) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let output = processes.env("PODRACER_TEST_FOLDER", folder.path()).output();
    let output = output.expect("mpirun starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let python = std::env::var("PODRACER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let probe = Command::new(&python).args(["-P", "-c", "import mpi4py, numpy"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skip(
            "no mpi4py: `make test` installs it, and PODRACER_PYTHON names a Python that has it",
        );
    }
    let mut processes = mpirun(2).expect("a launcher");
    let output = processes.arg(&python).args(["-P", "-c", MPI4PY]).arg(folder.path()).output();
    let output = output.expect("mpirun starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(said.matches("equal").count(), 2, "{said}");
}
