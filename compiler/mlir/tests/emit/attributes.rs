//! Each kind of attribute as text.

use crate::double::{check, func, module, module_of, op, ty};
use crate::programs;
use podracer_compiler::stablehlo::ModuleSpec;
use podracer_compiler::{DType, Func, HloAttribute};

#[test]
fn plain_kinds() {
    let x = ty(DType::F32, &[]);
    let func =
        func("plain", std::slice::from_ref(&x), std::slice::from_ref(&x), |hlo, inputs, types| {
            let attributes = vec![
                ("an_array", HloAttribute::I64Array(vec![0, -1, i64::MAX])),
                ("no_array", HloAttribute::I64Array(vec![])),
                ("a_tensor", HloAttribute::I64Tensor(vec![1, 2], vec![3, 4])),
                ("no_tensor", HloAttribute::I64Tensor(vec![0, 2], vec![])),
                ("wide", HloAttribute::I64(i64::MIN)),
                ("narrow", HloAttribute::I32(i32::MIN)),
                ("yes", HloAttribute::Bool(true)),
                ("no", HloAttribute::Bool(false)),
            ];
            op(hlo, "stablehlo.everything", inputs, attributes, Vec::new(), types)
        });
    let parts = [
        "an_array = array<i64: 0, -1, 9223372036854775807>",
        "no_array = array<i64>",
        "a_tensor = dense<[[3, 4]]> : tensor<1x2xi64>",
        "no_tensor = dense<> : tensor<0x2xi64>",
        "wide = -9223372036854775808 : i64",
        "narrow = -2147483648 : i32",
        "yes = true",
        "no = false",
    ];
    check(&module(&func).text, &parts);
}

fn text(func: &Func, replicas: usize) -> String {
    module_of(func, &ModuleSpec::new("m", func).replicas(replicas)).text
}

#[test]
fn dimension_numbers() {
    let dot = "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], \
               lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>";
    check(&text(&programs::dot_general(), 1), &[dot]);
    check(&text(&programs::outer_product(), 1), &["dot_dimension_numbers = #stablehlo.dot<>"]);
    check(
        &text(&programs::convolution(), 1),
        &["dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"],
    );
    let gather = "dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], \
                  start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>";
    check(&text(&programs::gather(), 1), &[gather]);
    let scatter = "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], \
                   input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>";
    check(&text(&programs::scatter(), 1), &[scatter]);
}

#[test]
fn enums_and_channels() {
    check(
        &text(&programs::sort(), 1),
        &[
            "comparison_direction = #stablehlo<comparison_direction LT>",
            "compare_type = #stablehlo<comparison_type TOTALORDER>",
        ],
    );
    let all_reduce = text(&programs::all_reduce(), 2);
    check(
        &all_reduce,
        &[
            "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>",
            "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>",
        ],
    );
    check(&all_reduce, &["mhlo.num_replicas = 2 : i32"]);
}
