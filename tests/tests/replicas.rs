//! Collectives among replicas: what vmap over an axis of the same name computes in one place, replicas compute together.

use podracer_compiler::ops::{
    AllGather, AllReduce, AxisIndex, CollectivePermute, Combination, REPLICAS,
};
use podracer_compiler::transform::{VmapContext, vmap};
use podracer_compiler::{Array, Builder, DType, Func, Scalar, TensorType};
use podracer_tests::check_all;
use podracer_tests::compare::differences;
use podracer_tests::xla::run_replicated;

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

/// Says where so many replicas compute something else than a vmap over an axis of the same name.
fn complaints(replicas: usize) -> Vec<String> {
    let types = [
        TensorType::new(DType::F32, [2, 3]),
        TensorType::new(DType::I32, [2]),
        TensorType::new(DType::F32, []),
    ];
    let array = |ty: &TensorType, replica: usize| {
        let value = |i: usize| (7 * i + 5 * replica) as i64 % 9 - 4;
        let data = (0..ty.elements()).map(|i| Scalar::number(ty.dtype, value(i)));
        Array::new(ty.clone(), data)
    };
    let func = collectives(&types, replicas);
    let arguments: Vec<Vec<Array>> =
        (0..replicas).map(|replica| types.iter().map(|ty| array(ty, replica)).collect()).collect();
    let got = run_replicated(&func, &arguments).expect("the replicas run");

    let mut context = VmapContext::new(replicas);
    context.axis = Some(REPLICAS.to_string());
    let force = vec![true; func.results.len()];
    let (batched, _) = vmap(&func, &context, &[true; 3], &force);
    let stacked: Vec<Array> = (0..types.len())
        .map(|i| {
            let members: Vec<Array> = arguments.iter().map(|one| one[i].clone()).collect();
            Array::stack(&types[i], &members)
        })
        .collect();
    let expected = batched.eval(&stacked);
    let one = |(replica, got): (usize, &Vec<Array>)| {
        let expected: Vec<Array> =
            expected.iter().map(|array| array.index_leading(replica)).collect();
        let problem = differences(&expected, got, 0.0)?;
        Some(format!("replica {replica} of {replicas}: {problem}"))
    };
    got.iter().enumerate().filter_map(one).collect()
}

#[test]
fn replicas_compute_what_a_named_vmap_does() {
    check_all(&[2, 4].map(complaints).concat());
}
