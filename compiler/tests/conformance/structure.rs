//! Checks of the properties that passes over region ops rely on: bodies can be exchanged, unneeded results removed,
//! calls opened.

use super::{cases, check_all, close, types_of};

#[test]
fn an_op_with_its_own_bodies_is_itself() {
    check_all(cases(), |case| {
        let op = &case.sample.op;
        let funcs: Vec<_> = op.funcs().into_iter().cloned().collect();
        match (funcs.is_empty(), op.with_funcs(funcs)) {
            (true, None) => Ok(()),
            (true, Some(other)) => Err(format!("has no bodies, yet takes others: {other:?}")),
            (false, Some(same)) if same == *op => Ok(()),
            (false, other) => Err(format!("with its own bodies it is {other:?}")),
        }
    });
}

#[test]
fn an_inlined_body_is_the_op() {
    check_all(cases(), |case| {
        let Some(body) = case.sample.op.inline_body() else {
            return Ok(());
        };
        for (got, expected) in
            body.eval(&case.sample.inputs).iter().zip(case.sample.op.eval(&case.sample.inputs))
        {
            close("the body's result", got, &expected, 0.0)?;
        }
        Ok(())
    });
}

#[test]
fn a_pruned_op_gives_the_results_that_are_used() {
    check_all(cases(), |case| {
        let (op, inputs) = (&case.sample.op, &case.sample.inputs);
        let results = op.eval(inputs);
        for bits in 0..1usize << results.len() {
            let used: Vec<bool> = (0..results.len()).map(|i| bits >> i & 1 == 1).collect();
            let Some(pruned) = op.prune(&used) else {
                continue;
            };
            if let Some(lost) = (0..results.len()).find(|i| used[*i] && !pruned.outputs.contains(i))
            {
                return Err(format!("pruned to {used:?} it loses result {lost}"));
            }
            let kept: Vec<_> = pruned.inputs.iter().map(|&i| inputs[i].clone()).collect();
            pruned
                .op
                .infer(&types_of(&kept))
                .map_err(|error| format!("pruned to {used:?} it is ill-typed: {error}"))?;
            for (got, &i) in pruned.op.eval(&kept).iter().zip(&pruned.outputs) {
                close(&format!("pruned to {used:?}, result {i}"), got, &results[i], 0.0)?;
            }
        }
        Ok(())
    });
}
