//! Well-formed programs that reach every kind of attribute and of region. The other tests look at their text; the
//! StableHLO verifier judges them all.

use crate::double::{func, op, scalar_region, ty};
use podracer_compiler::lower::{hlo_compare, hlo_constant, hlo_simple, hlo_splat};
use podracer_compiler::{Array, DType, Func, HloAttribute, Scalar};
use std::sync::Arc;

/// `while i < 10 { i += 1; x *= x }`.
pub fn while_loop() -> Func {
    let (i, x) = (ty(DType::I32, &[]), ty(DType::F32, &[4]));
    func("loop", &[i.clone(), x.clone()], &[i, x], |hlo, inputs, types| {
        let arguments = hlo.begin_region(types);
        let ten = hlo_splat(hlo, &types[0], Scalar::Int(10));
        let more = hlo_compare(hlo, "LT", arguments[0], ten);
        let condition = hlo.end_region(&[more]);
        let arguments = hlo.begin_region(types);
        let one = hlo_splat(hlo, &types[0], Scalar::Int(1));
        let next = hlo_simple(hlo, "stablehlo.add", &[arguments[0], one]);
        let square = hlo_simple(hlo, "stablehlo.multiply", &[arguments[1], arguments[1]]);
        let body = hlo.end_region(&[next, square]);
        op(hlo, "stablehlo.while", inputs, Vec::new(), vec![condition, body], types)
    })
}

/// `if p { -x } else { x }`, the branches reading `x` from outside.
pub fn branches() -> Func {
    let x = ty(DType::F32, &[2]);
    func("branches", &[ty(DType::Bool, &[]), x.clone()], &[x], |hlo, inputs, types| {
        hlo.begin_region(&[]);
        let negative = hlo_simple(hlo, "stablehlo.negate", &[inputs[1]]);
        let yes = hlo.end_region(&[negative]);
        hlo.begin_region(&[]);
        let no = hlo.end_region(&[inputs[1]]);
        op(hlo, "stablehlo.if", &inputs[..1], Vec::new(), vec![yes, no], types)
    })
}

/// Three branches by index; the last branch branches again.
pub fn switch() -> Func {
    let x = ty(DType::F32, &[]);
    func("switch", &[ty(DType::I32, &[]), x.clone()], &[x], |hlo, inputs, types| {
        let mut regions = Vec::new();
        for name in ["stablehlo.sine", "stablehlo.cosine"] {
            hlo.begin_region(&[]);
            let value = hlo_simple(hlo, name, &inputs[1..]);
            regions.push(hlo.end_region(&[value]));
        }
        hlo.begin_region(&[]);
        hlo.begin_region(&[]);
        let inner = hlo.end_region(&inputs[1..]);
        let value = op(hlo, "stablehlo.case", &inputs[..1], Vec::new(), vec![inner], types);
        regions.push(hlo.end_region(&value));
        op(hlo, "stablehlo.case", &inputs[..1], Vec::new(), regions, types)
    })
}

/// The sum over the second axis.
pub fn reduce() -> Func {
    func("reduce", &[ty(DType::F32, &[2, 3])], &[ty(DType::F32, &[2])], |hlo, inputs, types| {
        let zero = hlo_splat(hlo, &ty(DType::F32, &[]), Scalar::Float(0.0));
        let body = scalar_region(hlo, "stablehlo.add", DType::F32);
        op(
            hlo,
            "stablehlo.reduce",
            &[inputs[0], zero],
            vec![("dimensions", HloAttribute::I64Array(vec![1]))],
            vec![body],
            types,
        )
    })
}

/// A stable sort by a total order.
pub fn sort() -> Func {
    let x = ty(DType::F32, &[5]);
    func("sort", std::slice::from_ref(&x), std::slice::from_ref(&x), |hlo, inputs, types| {
        let scalar = ty(DType::F32, &[]);
        let arguments = hlo.begin_region(&[scalar.clone(), scalar]);
        let attributes = vec![
            ("comparison_direction", HloAttribute::Enum("comparison_direction", "LT")),
            ("compare_type", HloAttribute::Enum("comparison_type", "TOTALORDER")),
        ];
        let less = op(
            hlo,
            "stablehlo.compare",
            &arguments,
            attributes,
            Vec::new(),
            &[ty(DType::Bool, &[])],
        );
        let comparator = hlo.end_region(&less);
        let attributes =
            vec![("dimension", HloAttribute::I64(0)), ("is_stable", HloAttribute::Bool(true))];
        op(hlo, "stablehlo.sort", inputs, attributes, vec![comparator], types)
    })
}

/// A batched matrix product.
pub fn dot_general() -> Func {
    let params = [ty(DType::F32, &[7, 2, 3]), ty(DType::F32, &[7, 3, 4])];
    func("dot_general", &params, &[ty(DType::F32, &[7, 2, 4])], |hlo, inputs, types| {
        let dot = HloAttribute::Dot {
            lhs_batch: vec![0],
            rhs_batch: vec![0],
            lhs_contract: vec![2],
            rhs_contract: vec![1],
        };
        op(
            hlo,
            "stablehlo.dot_general",
            inputs,
            vec![("dot_dimension_numbers", dot)],
            Vec::new(),
            types,
        )
    })
}

/// An outer product: dimension numbers without a single axis.
pub fn outer_product() -> Func {
    let params = [ty(DType::F32, &[2]), ty(DType::F32, &[3])];
    func("outer_product", &params, &[ty(DType::F32, &[2, 3])], |hlo, inputs, types| {
        let dot = HloAttribute::Dot {
            lhs_batch: vec![],
            rhs_batch: vec![],
            lhs_contract: vec![],
            rhs_contract: vec![],
        };
        op(
            hlo,
            "stablehlo.dot_general",
            inputs,
            vec![("dot_dimension_numbers", dot)],
            Vec::new(),
            types,
        )
    })
}

/// An image under a kernel, with every attribute that a convolution has.
pub fn convolution() -> Func {
    let params = [ty(DType::F32, &[8, 9, 7, 2]), ty(DType::F32, &[3, 3, 2, 4])];
    func("convolution", &params, &[ty(DType::F32, &[8, 5, 4, 4])], |hlo, inputs, types| {
        let dimensions = HloAttribute::Convolution {
            lhs: vec![0, 3, 1, 2],
            rhs: vec![3, 2, 0, 1],
            out: vec![0, 3, 1, 2],
        };
        let attributes = vec![
            ("window_strides", HloAttribute::I64Array(vec![2, 2])),
            ("padding", HloAttribute::I64Tensor(vec![2, 2], vec![1, 1, 1, 1])),
            ("lhs_dilation", HloAttribute::I64Array(vec![1, 1])),
            ("rhs_dilation", HloAttribute::I64Array(vec![1, 1])),
            ("dimension_numbers", dimensions),
            ("feature_group_count", HloAttribute::I64(1)),
            ("batch_group_count", HloAttribute::I64(1)),
        ];
        op(hlo, "stablehlo.convolution", inputs, attributes, Vec::new(), types)
    })
}

/// Rows by index, of a batch of tables.
pub fn gather() -> Func {
    let params = [ty(DType::F32, &[5, 10, 4]), ty(DType::I32, &[5, 6, 1])];
    func("gather", &params, &[ty(DType::F32, &[5, 6, 4])], |hlo, inputs, types| {
        let numbers = HloAttribute::Gather {
            offset_dims: vec![2],
            collapsed_slice_dims: vec![1],
            operand_batching_dims: vec![0],
            start_indices_batching_dims: vec![0],
            start_index_map: vec![1],
            index_vector_dim: 2,
        };
        let attributes = vec![
            ("dimension_numbers", numbers),
            ("slice_sizes", HloAttribute::I64Array(vec![1, 1, 4])),
            ("indices_are_sorted", HloAttribute::Bool(false)),
        ];
        op(hlo, "stablehlo.gather", inputs, attributes, Vec::new(), types)
    })
}

/// Rows added at indices, in a batch of tables.
pub fn scatter() -> Func {
    let table = ty(DType::F32, &[5, 10, 4]);
    let params = [table.clone(), ty(DType::I32, &[5, 6, 1]), ty(DType::F32, &[5, 6, 4])];
    func("scatter", &params, &[table], |hlo, inputs, types| {
        let numbers = HloAttribute::Scatter {
            update_window_dims: vec![2],
            inserted_window_dims: vec![1],
            input_batching_dims: vec![0],
            scatter_indices_batching_dims: vec![0],
            scatter_dims_to_operand_dims: vec![1],
            index_vector_dim: 2,
        };
        let body = scalar_region(hlo, "stablehlo.add", DType::F32);
        op(
            hlo,
            "stablehlo.scatter",
            inputs,
            vec![("scatter_dimension_numbers", numbers)],
            vec![body],
            types,
        )
    })
}

/// The sum over two replicas.
pub fn all_reduce() -> Func {
    let x = ty(DType::F32, &[3]);
    func("all_reduce", std::slice::from_ref(&x), std::slice::from_ref(&x), |hlo, inputs, types| {
        let groups = (0..hlo.replicas() as i64).collect();
        let body = scalar_region(hlo, "stablehlo.add", DType::F32);
        let attributes = vec![
            ("replica_groups", HloAttribute::I64Tensor(vec![1, hlo.replicas()], groups)),
            ("channel_handle", HloAttribute::Channel(1, 1)),
        ];
        op(hlo, "stablehlo.all_reduce", inputs, attributes, vec![body], types)
    })
}

/// A call of the runtime by name.
pub fn custom_call() -> Func {
    let x = ty(DType::F32, &[3]);
    func("custom_call", std::slice::from_ref(&x), std::slice::from_ref(&x), |hlo, inputs, types| {
        let attributes = vec![
            ("api_version", HloAttribute::I32(4)),
            ("call_target_name", HloAttribute::Text("podracer_sum")),
            ("has_side_effect", HloAttribute::Bool(true)),
        ];
        op(hlo, "stablehlo.custom_call", inputs, attributes, Vec::new(), types)
    })
}

/// A call into XLA by name: the attribute kind that nothing above has.
pub fn rng() -> Func {
    let state = ty(DType::U64, &[2]);
    func(
        "rng",
        std::slice::from_ref(&state),
        &[state.clone(), ty(DType::U32, &[3])],
        |hlo, inputs, types| {
            let attributes =
                vec![("rng_algorithm", HloAttribute::Enum("rng_algorithm", "THREE_FRY"))];
            op(hlo, "stablehlo.rng_bit_generator", inputs, attributes, Vec::new(), types)
        },
    )
}

/// A function that returns constants of one dtype: values at its edges, a splat, an empty constant.
pub fn constants(dtype: DType) -> Func {
    let shapes: [&[usize]; 4] = [&[6], &[2, 3], &[], &[0, 3]];
    let results: Vec<_> = shapes.iter().map(|shape| ty(dtype, shape)).collect();
    func("constants", &[], &results, |hlo, _, types| {
        let edges = edge_values(types[0].dtype);
        let at = |i: usize| edges[i % edges.len()];
        let arrays = [
            Array::new(types[0].clone(), (0..6).map(at)),
            Array::splat(types[1].clone(), at(1)),
            Array::new(types[2].clone(), vec![at(0)]),
            Array::new(types[3].clone(), Vec::new()),
        ];
        arrays.into_iter().map(|array| hlo_constant(hlo, Arc::new(array))).collect()
    })
}

/// A constant of each dtype with more elements than MLIR prints one by one.
pub fn large_constants() -> Func {
    let results: Vec<_> = DType::ALL.iter().map(|&dtype| ty(dtype, &[3, 50])).collect();
    func("large_constants", &[], &results, |hlo, _, types| {
        let array = |ty: &podracer_compiler::TensorType| {
            let edges = edge_values(ty.dtype);
            Array::new(ty.clone(), (0..150).map(|i| edges[i * i % 7 % edges.len()]))
        };
        types.iter().map(|ty| hlo_constant(hlo, Arc::new(array(ty)))).collect()
    })
}

/// Values that a careless conversion would lose.
pub fn edge_values(dtype: DType) -> Vec<Scalar> {
    if dtype == DType::Bool {
        return vec![Scalar::Bool(true), Scalar::Bool(false), Scalar::Bool(true)];
    }
    if dtype.is_integer() {
        let (least, greatest) = dtype.integer_range();
        return [least, greatest, 0, 1, least + 1, greatest - 1]
            .into_iter()
            .map(Scalar::Int)
            .collect();
    }
    let (tiny, greatest) = match dtype {
        DType::F16 => (half::f16::from_bits(1).to_f64(), half::f16::MAX.to_f64()),
        DType::BF16 => (half::bf16::from_bits(1).to_f64(), half::bf16::MAX.to_f64()),
        DType::F32 => (f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        _ => (f64::from_bits(1), f64::MAX),
    };
    [f64::NAN, -0.0, f64::NEG_INFINITY, tiny, greatest, 1.0 / 3.0]
        .into_iter()
        .map(Scalar::Float)
        .collect()
}

/// Every program above with the number of replicas it is for.
pub fn all() -> Vec<(Func, usize)> {
    let mut programs = vec![(all_reduce(), 2)];
    let single = [
        while_loop(),
        branches(),
        switch(),
        reduce(),
        sort(),
        dot_general(),
        outer_product(),
        convolution(),
        gather(),
        scatter(),
        rng(),
        custom_call(),
        large_constants(),
    ];
    programs.extend(single.into_iter().map(|func| (func, 1)));
    programs.extend(DType::ALL.iter().map(|&dtype| (constants(dtype), 1)));
    programs
}
