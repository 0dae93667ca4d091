//! Collectives among replicas: what vmap over an axis of the same name computes in one place, replicas compute together.

use podracer_compiler::ops::{
    AllGather, AllReduce, AxisIndex, CollectivePermute, Combination, REPLICAS,
};
use podracer_compiler::transform::{VmapContext, vmap};
use podracer_compiler::{Array, Builder, DType, Func, Scalar, TensorType};
use podracer_runtime::World;
use podracer_runtime::pjrt::launched;
use podracer_tests::check_all;
use podracer_tests::compare::differences;
use podracer_tests::mpi::mpirun;
use podracer_tests::xla::{run_in_world, run_replicated};

/// Who sends to whom among so many: a ring, an exchange of neighbours, the first to the last, nobody.
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

/// Arguments for each of so many replicas.
fn arguments(types: &[TensorType], replicas: usize) -> Vec<Vec<Array>> {
    let array = |ty: &TensorType, replica: usize| {
        let value = |i: usize| (7 * i + 5 * replica) as i64 % 9 - 4;
        let data = (0..ty.elements()).map(|i| Scalar::number(ty.dtype, value(i)));
        Array::new(ty.clone(), data)
    };
    (0..replicas).map(|replica| types.iter().map(|ty| array(ty, replica)).collect()).collect()
}

/// Says where so many replicas compute something else than a vmap over an axis of the same name. `run` gives the results of some, from
/// the replica `first` on.
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
    let (batched, _) = vmap(&func, &context, &vec![true; types.len()], &force);
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
        let Some(mut mpirun) = mpirun(processes) else { return };
        let this = std::env::current_exe().expect("this program");
        let output = mpirun.arg(this).args([name, "--exact", "--nocapture"]).output();
        let output = output.expect("mpirun starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("1 passed").count(), processes, "{said}");
    }
}
