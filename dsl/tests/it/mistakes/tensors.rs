//! Mistakes with single tensors: dtypes, literals, shapes, positions.

use podracer_dsl::prelude::*;

super::mistakes! {
    "tensors.rs":
    matrices_of_the_wrong_order: (f32([2, 3]), f32([2, 3])), |(x, y)| dot(x, y)
        => "dot: f32[2,3] and f32[2,3] do not multiply (axis 1 of the left against axis 0 of the right)", "dot";
    matmul_of_scalars: (f32([]), f32([3])), |(x, y)| matmul(x, y)
        => "matmul: f32[] and f32[3] must both have axes: scale with `*`", "matmul";
    dot_of_different_dtypes: (f32([3]), i32([3])), |(x, y)| dot(x, y)
        => "dot: f32[3] and i32[3] must have one dtype: cast one of them", "dot";
    two_float_types: (f32([3]), bf16([3])), |(x, y)| x * y
        => "multiply: operands must have one dtype, got f32 and bf16: cast one of them", "x * y";
    an_integer_and_a_float: (f32([3]), i32([3])), |(x, n)| x - n
        => "subtract: operands must have one dtype, got f32 and i32: cast one of them", "x - n";
    two_widths_of_integers: (i32([]), i64([])), |(x, n)| x + n
        => "add: operands must have one dtype, got i32 and i64: cast one of them", "x + n";
    a_bool_as_a_number: (f32([3]), bool([3])), |(x, p)| x * p
        => "multiply: operands must have one dtype, got f32 and bool: cast one of them", "x * p";
    a_float_literal_beside_an_integer: i32([3]), |n| n * 0.5
        => "multiply: the literal 0.5 does not become an integer: cast the i32 tensor with `.astype(F32)`", "n * 0.5";
    an_integer_that_is_too_large: u8([]), |n| n + 256
        => "add: 256 is outside of u8's range [0, 255]", "n + 256";
    a_negative_literal_beside_unsigned: u32([]), |n| n.maximum(-1)
        => "maximum: -1 is outside of u32's range [0, 4294967295]", "maximum";
    a_number_beside_a_bool: bool([]), |p| p & 1
        => "and: the literal 1 does not become a bool: compare the tensor, or cast it", "p & 1";
    an_exponential_of_integers: i32([]), |n| n.exp()
        => "exponential: expected floats, got i32: convert it first", "exp";
    a_mean_of_integers: i32([3]), |n| n.mean()
        => "mean: expected floats, got i32[3]: cast with `.astype(F32)`", "mean";
    bits_of_floats: f32([]), |x| x & x
        => "and: expected bools or integers, got f32: convert it first", "x & x";
    a_shift_of_floats: f32([]), |x| x << 1
        => "shift_left: expected integers, got f32: convert it first", "x << 1";
    negating_a_bool: bool([]), |p| -p
        => "negate: expected numbers, got bool: convert it first", "-p";
    not_of_a_float: f32([]), |x| !x
        => "not: expected bools or integers, got f32: convert it first", "!x";
    a_sum_over_an_axis_that_is_not_there: f32([3, 4]), |x| x.sum_axis(2)
        => "sum_axis: axis 2 is outside of rank 2", "sum_axis";
    a_sum_over_an_axis_twice: f32([3, 4]), |x| x.sum_axis([0, 0])
        => "sum_axis: axis 0 is named twice", "sum_axis";
    a_softmax_of_a_scalar: f32([]), |x| x.softmax(-1)
        => "softmax: axis -1 is outside of rank 0", "softmax";
    an_argmax_of_bools: bool([3]), |p| p.argmax(0)
        => "argmax: expected numbers, got bool[3]: convert bools to an integer", "argmax";
    reshaping_to_another_size: f32([3, 4]), |x| x.reshape([5, 2])
        => "reshape: f32[3,4] has 12 elements, f32[5,2] has 10", "reshape";
    transposing_with_a_repeated_axis: f32([3, 4]), |x| x.permute([0, 0])
        => "permute: [0, 0] is not an order of the 2 axes of f32[3,4]", "permute";
    a_permutation_of_the_wrong_length: f32([3, 4]), |x| x.permute([0])
        => "permute: [0] is not an order of the 2 axes of f32[3,4]", "permute";
    squeezing_an_axis_of_three: f32([3, 1]), |x| x.squeeze(0)
        => "squeeze: axis 0 of f32[3,1] has extent 3, not 1", "squeeze";
    expanding_beyond_the_rank: f32([3]), |x| x.expand_dims(3)
        => "expand_dims: axis 3 is outside of rank 2", "expand_dims";
    broadcasting_down: f32([3, 4]), |x| x.broadcast_to([4])
        => "broadcast_to: f32[3,4] does not broadcast to f32[4]", "broadcast_to";
    concatenating_different_shapes: (f32([2, 3]), f32([2, 4])), |(x, y)| concatenate(&[x, y], 0)
        => "concatenate: operands must agree in dtype and in all axes but 0, got f32[2,3] and f32[2,4]", "concatenate";
    concatenating_nothing: (), |()| concatenate(&[], 0)
        => "concatenate: expected at least one tensor", "concatenate";
    concatenating_different_dtypes: (f32([2]), i32([2])), |(x, y)| concatenate(&[x, y], 0)
        => "concatenate: operands must agree in dtype and in all axes but 0, got f32[2] and i32[2]", "concatenate";
    stacking_different_shapes: (f32([2]), f32([3])), |(x, y)| stack(&[x, y], 0)
        => "stack: expected tensors of one type, got f32[2] and f32[3]", "stack";
    splitting_unevenly: f32([5]), |x| x.split(2, 0)
        => "split: axis 0 of f32[5] has extent 5, which is no multiple of 2", "split";
    padding_with_too_few_pairs: f32([2, 3]), |x| x.pad(&[(1, 1)], 0.0)
        => "pad: expected 2 pairs, one for each axis of f32[2,3], got 1", "pad";
    an_index_out_of_range: f32([3]), |x| x.index(3)
        => "index: position 3 is outside of axis 0 of f32[3]", "index";
    an_index_of_a_scalar: f32([]), |x| x.index(0)
        => "index: axis 0 is outside of rank 0", "index";
    a_slice_out_of_range: f32([3]), |x| x.slice_axis(0, 1..5)
        => "slice: 1..5 is not a part of axis 0 of f32[3]", "slice_axis";
    a_slice_backwards: f32([3]), |x| x.slice_axis(0, x.len()..1)
        => "slice: 3..1 is not a part of axis 0 of f32[3]", "slice_axis";
    taking_with_floats: (f32([3]), f32([2])), |(x, i)| x.take(i, 0)
        => "take: expected integer indices, got f32[2]: cast with `.astype(I32)`", "take";
    setting_with_another_shape: f32([3, 2]), |x| x.set(0, constant([1.0, 2.0, 3.0]))
        => "set: f32[3] does not broadcast to a slice, f32[2]", "set";
    a_one_hot_of_floats: f32([3]), |x| one_hot(x, 4)
        => "one_hot: expected an integer index, got f32[3]", "one_hot";
    selecting_with_numbers: (f32([3]), f32([3])), |(p, x)| select(p, x, 0.0)
        => "select: expected a bool predicate, got f32[3]: compare it with something", "select";
    selecting_between_types: (bool([]), f32([]), i32([])), |(p, x, n)| select(p, x, n)
        => "select: both branches must have one type, got f32[] and i32[]", "select";
    a_triangle_of_a_vector: f32([3]), |x| x.tril(0)
        => "tril: expected at least 2 axes, got f32[3]", "tril";
    too_many_top_values: f32([3]), |x| x.top_k(4).0
        => "top_k: f32[3] has no 4 elements along its last axis", "top_k";
    a_clamp_of_another_type: (f32([3]), i32([])), |(x, n)| x.clamp(n, 1.0)
        => "clamp: expected the lower bound to be a scalar f32 or to have the operand's type f32[3], got i32[3]", "clamp";
    letters_for_other_axes: (f32([2, 3]), f32([3])), |(x, y)| einsum("ij,jk->ik", &[x, y])
        => "einsum: `jk` in `ij,jk->ik` names 2 axes of operand 1, which is f32[3]", "einsum";
    a_letter_for_two_extents: (f32([2, 3]), f32([2, 4])), |(x, y)| einsum("ij,jk->ik", &[x, y])
        => "einsum: `j` in `ij,jk->ik` is 3 and, of operand 1, 2", "einsum";
    a_letter_from_nowhere: f32([2, 3]), |x| einsum("ij->ik", &[x])
        => "einsum: the result of `ij->ik` has `k`, which no operand has", "einsum";
    an_operand_without_letters: f32([2, 3]), |x| einsum("ij->i", &[x, x])
        => "einsum: `ij->i` names 1 operands, and 2 are given", "einsum";
    dots_in_place_of_letters: f32([2, 3]), |x| einsum("...j->...", &[x])
        => "einsum: `.` in `...j->...`: expected a letter for each axis, `,` between operands and one `->`", "einsum";
    sums_of_products_of_two_dtypes: (f32([2]), i32([2])), |(x, y)| einsum("i,i", &[x, y])
        => "einsum: f32[2] and i32[2] must have one dtype: cast one of them", "einsum";
}
