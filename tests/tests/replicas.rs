//! Collectives among replicas: what vmap over an axis of the same name computes in one place, replicas compute together.

use podracer_compiler::ops::{AllGather, AllReduce, AxisIndex, Combination, REPLICAS};
use podracer_compiler::transform::{VmapContext, vmap};
use podracer_compiler::{Array, Builder, DType, Func, Scalar, TensorType};
use podracer_tests::compare::differences;
use podracer_tests::xla::run_replicated;

const REPLICA_COUNT: usize = 2;

/// Every collective, in one function.
fn collectives(types: &[TensorType]) -> Func {
    let axis = REPLICAS.to_string();
    let mut b = Builder::new();
    let params: Vec<_> = types.iter().map(|ty| b.param(ty.clone())).collect();
    let mut results = Vec::new();
    for &computation in Combination::ALL {
        results.extend(b.emit(AllReduce { axis: axis.clone(), computation }, &params));
    }
    for dimension in 0..=types[0].rank() {
        let gather = AllGather { axis: axis.clone(), size: REPLICA_COUNT, dimension };
        results.push(b.emit1(gather, &params[..1]));
    }
    results.push(b.emit1(AxisIndex { axis }, &[]));
    b.finish("collectives", results)
}

#[test]
fn replicas_compute_what_a_named_vmap_does() {
    let types = [
        TensorType::new(DType::F32, [2, 3]),
        TensorType::new(DType::I32, [2]),
        TensorType::new(DType::F32, []),
    ];
    let array = |ty: &TensorType, replica: usize| {
        let value = |i: usize| (7 * i + 5 * replica) as i64 % 9 - 4;
        let data = (0..ty.elements()).map(|i| Scalar::number(ty.dtype, value(i))).collect();
        Array::new(ty.clone(), data)
    };
    let func = collectives(&types);
    let arguments: Vec<Vec<Array>> = (0..REPLICA_COUNT)
        .map(|replica| types.iter().map(|ty| array(ty, replica)).collect())
        .collect();
    let got = run_replicated(&func, &arguments).expect("two replicas run");

    let mut context = VmapContext::new(REPLICA_COUNT);
    context.axis = Some(REPLICAS.to_string());
    let force = vec![true; func.results.len()];
    let (batched, _) = vmap(&func, &context, &[true; 3], &force);
    let stacked: Vec<Array> = (0..types.len())
        .map(|i| Array::stack(&types[i], &[arguments[0][i].clone(), arguments[1][i].clone()]))
        .collect();
    let expected = batched.eval(&stacked);
    for (replica, got) in got.iter().enumerate() {
        let expected: Vec<Array> =
            expected.iter().map(|array| array.index_leading(replica)).collect();
        assert_eq!(differences(&expected, got, 0.0), None, "replica {replica}");
    }
}
