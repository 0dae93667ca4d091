//! Mistakes with branches, loops, batches, derivatives, collectives.

use podracer_dsl::prelude::*;

super::mistakes! {
    "transforms.rs":
    a_predicate_that_is_a_number: f32([]), |x| cond(x, || x, || -x)
        => "cond: the predicate must be bool[], got f32[] (for one choice per element use `select`)", "cond";
    branches_of_different_types: (bool([]), f32([])), |(p, x)| cond(p, || x, || x.astype(I32))
        => "cond: branches differ at `result`: `true` gives f32[], `false` gives i32[]", "cond";
    a_switch_on_a_float: f32([]), |x| switch(x, 2, |i| x * i as f64)
        => "switch: the index must be i32[], got f32[]: cast with `.astype(I32)`", "switch";
    a_switch_without_branches: i32([]), |i| switch(i, 0, |_| i)
        => "switch: expected at least one branch", "switch";
    switch_branches_that_differ: i32([]), |i| switch(i, 3, |b| if b == 1 { ones(F32, [2]) } else { ones(F32, [3]) })
        => "switch: branches differ at `result`: `branch 2` gives f32[3], `branch 1` gives f32[2]", "switch";
    a_carry_of_another_dtype: f32([3]), |x| scan(0, x, |sum, x| ((sum.astype(F32) + x).exp(), ())).0
        => "scan: carry changed type at `carry`: i32[] going in, f32[] coming out", "exp";
    a_carry_of_another_shape: f32([3, 2]), |x| scan(0.0, x, |sum, x| (sum + x, ())).0
        => "scan: carry changed type at `carry`: f32[] going in, f32[2] coming out", "sum + x";
    a_scan_over_a_scalar: f32([]), |x| scan(0.0, x, |sum, x| (sum + x, ())).0
        => "scan: `xs` is a scalar, f32[]: it has no axis to go over (use `whole(..)` or capture it)", "scan";
    a_scan_over_lengths_that_differ: (f32([3]), f32([4])), |(x, y)| scan(0.0, (x, y), |sum, (x, y)| (sum + x * y, ())).0
        => "scan: lengths differ: `xs.0` has 3, `xs.1` has 4 (f32[4])", "scan";
    a_fori_loop_that_changes_its_carry: f32([]), |x| fori_loop(0..3, x, |i, _| i)
        => "fori_loop: carry changed type at `carry`: f32[] going in, i32[] coming out", "fori_loop";
    a_while_condition_that_is_no_bool: f32([]), |x| while_loop(x, |x| x, |x| x * 2.0)
        => "while_loop: the condition must be bool[], got f32[]", "while_loop";
    a_while_carry_that_changes: f32([]), |x| while_loop(x, |x| x.lt(3.0), |x| x.expand_dims(0))
        => "while_loop: carry changed type at `carry`: f32[] going in, f32[1] coming out", "expand_dims";
    mapping_over_different_lengths: (f32([3]), f32([4])), |(x, y)| vmap((x, y), |(x, y)| x + y)
        => "vmap: lengths differ: `xs.0` has 3, `xs.1` has 4 (f32[4])", "vmap";
    mapping_over_a_scalar: f32([]), |x| vmap(x, |x| x)
        => "vmap: `xs` is a scalar, f32[]: it has no axis to go over (use `whole(..)` or capture it)", "vmap";
    mapping_over_an_axis_that_is_not_there: f32([3, 4]), |x| vmap(x.axis(2), |x| x)
        => "move_axis: axis 2 is outside of rank 2", "vmap";
    mapping_batches_of_nothing: f32([3]), |x| map_batched(x, 0, |x| x)
        => "map_batched: a batch must have at least one item, got 0", "map_batched";
    a_tile_of_nothing: f32([3]), |x| tile(0, x, |x| x.sin())
        => "tile: a tile must have at least one lane, got 0", "tile";
    an_out_axis_that_is_not_there: f32([3, 4]), |x| out_axis(vmap(x, |x| x), 2)
        => "move_axis: axis 2 is outside of rank 2", "out_axis";
    a_combination_of_another_shape: f32([4, 2]), |x| associative_scan(x, |a, b| (a * b).sum())
        => "associative_scan: changed type at `element`: f32[2] going in, f32[] coming out", "sum";
    a_gradient_of_a_vector: f32([3]), |x| grad(x, |x| x * x)
        => "grad: the loss must be a float scalar, got f32[3]: take its mean or sum", "x * x";
    a_gradient_of_an_integer_loss: f32([3]), |x| grad(x, |x| x.sum().astype(I32))
        => "grad: the loss must be a float scalar, got i32[]: take its mean or sum", "astype";
    a_gradient_by_integers: i32([3]), |n| grad(n, |n| n.astype(F32).sum())
        => "grad: `argument` is i32[3]: only floats have gradients; capture it, or return it with the loss", "grad";
    a_gradient_of_a_while_loop: f32([]), |x| grad(x, |x| while_loop(x, |x| x.lt(9.0), |x| x * x))
        => "grad: `while` cannot be differentiated so: a loop of unknown length cannot run backward; use `scan` or `fori_loop` with a fixed number of steps, or `jvp` for forward mode", "grad";
    a_tangent_of_another_shape: f32([3]), |x| jvp(x, zeros(F32, [2]), |x| x.exp()).1
        => "jvp: the tangent must be like the argument; it changed type at `tangent`: f32[3] going in, f32[2] coming out", "jvp";
    a_cotangent_of_another_shape: f32([3]), |x| vjp(x, |x| x.exp()).1(zeros(F32, [2]))
        => "vjp: the cotangent must be like the result; it changed type at `cotangent`: f32[3] going in, f32[2] coming out", "vjp";
    a_custom_rule_of_another_shape: f32([3]), |x| custom_jvp(x, |x| x.exp(), |x, dx| (x.exp(), dx.sum()))
        => "custom_jvp: `rule(..).1` must be f32[3], got f32[]", "sum";
    a_custom_value_of_another_type: f32([3]), |x| custom_jvp(x, |x| x.exp(), |x, dx| (x.astype(I32), dx))
        => "custom_jvp: `rule(..).0` must be f32[3], got i32[3]", "astype";
    a_custom_rule_that_is_not_linear: f32([]), |x| grad(x, |x| custom_jvp(x, |x| x.exp(), |x, dx| (x.exp(), dx * dx)))
        => "grad: `custom_jvp` cannot be differentiated so: the tangent that its rule gives is not linear in the tangents that it takes, or its value depends on them", "grad";
    a_cotangent_not_like_the_argument: f32([3]), |x| custom_vjp(x, |x| (x.sum(), ()), |(), ct| ct)
        => "custom_vjp: `backward(..)` must be f32[3], got f32[]", "custom_vjp";
    forward_mode_of_a_custom_pass_back: f32([]), |x| jvp(x, x, |x| custom_vjp(x, |x| (x, ()), |(), ct| ct)).1
        => "jvp: `custom_vjp` cannot be differentiated so: it has a reverse derivative only; use `custom_jvp`: its rule serves forward and reverse mode", "jvp";
    linearizing_a_custom_pass_back: f32([]), |x| linearize(x, |x| custom_vjp(x, |x| (x, ()), |(), ct| ct)).1(x)
        => "linearize: `custom_vjp` cannot be differentiated so: it has a reverse derivative only; use `custom_jvp`: its rule serves forward and reverse mode", "linearize";
    a_custom_rule_that_captures: f32([]), |x| grad(x, |x| custom_vjp(1.0, |y| (y * x, y), |y, ct| ct * y * x))
        => "grad: `custom_vjp` cannot be differentiated so: a tensor that its closures capture is differentiated, and the rule says nothing of it; pass it among the arguments", "grad";
    a_captured_tensor_in_a_custom_rule: f32([]), |x| grad(x, |x| custom_jvp(1.0, |y| y * x, |y, dy| (y * x, dy * x)))
        => "grad: `custom_jvp` cannot be differentiated so: a tensor that its closures capture is differentiated, and the rule says nothing of it; pass it among the arguments", "grad";
    a_sum_over_an_unknown_axis: f32([]), |x| psum(x, "batch")
        => "psum: there is no axis `batch` around: name one with `vmap_named(\"batch\", ..)`", "psum";
    a_sum_over_an_axis_of_another_name: f32([2, 3]), |x| vmap_named("rows", x, |x| vmap_named("columns", x, |x| psum(x, "batch")))
        => "psum: there is no axis `batch` around, only `columns`, `rows`: name one with `vmap_named(\"batch\", ..)`", "psum";
    a_sum_over_an_axis_that_has_ended: f32([3]), |x| psum(vmap_named("batch", x, |x| x), "batch")
        => "psum: there is no axis `batch` around: name one with `vmap_named(\"batch\", ..)`", "psum";
    a_place_along_an_axis_without_a_name: f32([3]), |x| vmap(x, |x| x * axis_index("batch").astype(F32))
        => "axis_index: there is no axis `batch` around: name one with `vmap_named(\"batch\", ..)`", "axis_index";
    an_axis_called_like_that_of_the_replicas: f32([3]), |x| vmap_named("replicas", x, |x| psum(x, Replicas))
        => "vmap_named: `replicas` is the axis of the replicas: choose another name", "vmap_named";
    a_jacobian_by_integers: i32([3]), |x| jacfwd(x, |x| x.astype(F32))
        => "jacfwd: `argument` is i32[3]: only floats have gradients; capture it, or return it with the loss", "jacfwd";
    a_hessian_by_a_tree_with_integers: (f32([3]), i32([])), |(x, n)| hessian((x, n), |(x, n)| x.sum() * n.astype(F32)).0.0
        => "hessian: `argument.1` is i32[]: only floats have gradients; capture it, or return it with the loss", "hessian";
    a_hessian_of_a_vector: f32([3]), |x| hessian(x, |x| x.exp())
        => "hessian: the loss must be a float scalar, got f32[3]: take its mean or sum", "exp";
    a_mean_of_counts_over_an_axis: i32([3]), |n| vmap_named("batch", n, |n| pmean(n, "batch"))
        => "pmean: `argument` is i32[]: only floats have a mean; cast with `.astype(F32)`", "pmean";
    gathering_from_an_unknown_number_of_replicas: f32([]), |x| all_gather(x, Replicas)
        => "all_gather: the number of replicas is not known here: trace with `trace_replicated`", "all_gather";
    a_permutation_of_members_that_are_not_there: f32([3]), |x| vmap_named("ring", x, |x| ppermute(x, "ring", &[(0, 3)]))
        => "ppermute: there is no member 3: the axis `ring` has 3", "ppermute";
    a_permutation_with_two_senders: f32([3]), |x| vmap_named("ring", x, |x| ppermute(x, "ring", &[(0, 1), (2, 1)]))
        => "collective_permute: member 1 is a target twice", "ppermute";
}
