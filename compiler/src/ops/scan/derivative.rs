//! scan's derivative in its three forms. Each form finds the carries with a tangent as a least
//! fixpoint, and transforms the body again with these marks. It then sorts the new body's operands
//! back into consts, carries, slices.

use super::Scan;
use crate::ir::{Builder, Slope, Slopes, Var};
use crate::ops::Operand;
use crate::ops::loops::{WithTangents, fixpoint, kept, marked_tangents};
use crate::transform::{
    self, Linearized, TransformError, deal, given, jvp_with, linearize_with, transpose,
};
use std::sync::Arc;

/// Values and tangents in one loop.
pub(super) fn forward(
    scan: &Scan,
    b: &mut Builder,
    inputs: &[Var],
    tangents: &[Slope],
) -> Result<(Vec<Var>, Slopes), TransformError> {
    let mut marked = given(tangents);
    let (jvp, results) =
        fixpoint(&mut marked, scan.carried(), scan.body.results.len(), |marked, force| {
            jvp_with(&scan.body, marked, force)
        })?;

    // The body takes the consts, the carries and the slices, each group followed by its tangents.
    let types = scan.body.param_types();
    let carried = scan.carried();
    let groups = [0..carried.start, carried.clone(), carried.end..types.len()];
    let WithTangents { mut body, arguments, operands, ends } =
        WithTangents::new(b, &types, groups, &marked, inputs, tangents);
    let outputs = body.inline(&jvp, &arguments);
    let (outputs, slopes) = outputs.split_at(scan.body.results.len());
    let carry_slopes = results[..scan.carries].iter().filter(|is| **is).count();
    let ordered: Vec<Var> = outputs[..scan.carries]
        .iter()
        .chain(&slopes[..carry_slopes])
        .chain(&outputs[scan.carries..])
        .chain(&slopes[carry_slopes..])
        .copied()
        .collect();
    let op = Scan {
        body: Arc::new(body.finish(scan.body.name.clone(), ordered)),
        consts: ends[0],
        carries: ends[1] - ends[0],
        ..scan.clone()
    };
    let outputs = b.emit(op, &operands);
    let ys = outputs.len() - scan.carries - slopes.len();
    let value_at = |i: usize| {
        if i < scan.carries { i } else { i + carry_slopes }
    };
    let values = (0..scan.carries + ys).map(|i| outputs[value_at(i)]).collect();
    let slopes = outputs[scan.carries..scan.carries + carry_slopes]
        .iter()
        .chain(&outputs[scan.carries + carry_slopes + ys..]);
    Ok((values, deal(&results, slopes.copied())))
}

/// The place that provides a residual of the body to the linear loop.
enum Residual {
    /// A value outside of the loop: the residual is the same in every iteration.
    Constant(Var),
    /// The slices of an operand that the first loop reads too.
    Operand(usize),
    /// An output that the first loop stacks for the residual, by its number.
    Output(usize),
}

/// Emits a loop for the values and a second loop, which is linear in the tangents. The first loop
/// also stacks the values that the second loop reads.
pub(super) fn linearized(
    scan: &Scan,
    b: &mut Builder,
    inputs: &[Var],
    tangents: &[Slope],
) -> Result<(Vec<Var>, Slopes), TransformError> {
    let mut marked = given(tangents);
    let (linearized, results) =
        fixpoint(&mut marked, scan.carried(), scan.body.results.len(), |marked, force| {
            linearize_with(&scan.body, marked, force).map(|linearized| {
                let results = linearized.tangent_results.clone();
                (linearized, results)
            })
        })?;
    let Linearized { primal, linear, residuals, .. } = linearized;
    let slices_at = scan.consts + scan.carries;

    // A residual that depends only on loop constants is computed once, outside. A residual that is
    // a slice of an operand is read from that operand. The rest become outputs of the loop.
    let (outputs, residual_vars) = primal.results.split_at(scan.body.results.len());
    let varies =
        primal.depends_on(&(0..inputs.len()).map(|i| i >= scan.consts).collect::<Vec<_>>());
    let mut stacked_vars = Vec::new();
    let mut places = Vec::with_capacity(residuals);
    for &var in residual_vars {
        if !varies[var.index()] {
            let wanted: Vec<_> = primal
                .eqns
                .iter()
                .filter(|eqn| eqn.inputs.iter().all(|input| !varies[input.index()]))
                .collect();
            let outside = crate::transform::dce(&primal.subset(&primal.params, wanted, &[var]));
            // Carries and slices are not read: any value with the right type serves as their
            // argument.
            let constants =
                outside.subset(&outside.params[..scan.consts], &outside.eqns, &outside.results);
            places.push(Residual::Constant(b.inline(&constants, &inputs[..scan.consts])[0]));
        } else if let Some(i) =
            primal.params.iter().position(|&param| param == var).filter(|&i| i >= slices_at)
        {
            places.push(Residual::Operand(i));
        } else {
            places.push(Residual::Output(stacked_vars.len()));
            stacked_vars.push(var);
        }
    }
    let body_results: Vec<Var> = outputs.iter().chain(&stacked_vars).copied().collect();
    let body = primal.subset(&primal.params, &primal.eqns, &body_results);
    let outputs = b.emit(Scan { body: Arc::new(body), ..scan.clone() }, inputs);
    let (values, stacks) = outputs.split_at(scan.body.results.len());

    // The linear loop: constant residuals and tangents of constants; tangents of carries; stacked residuals and
    // tangents of slices.
    let types = scan.body.param_types();
    let residual_types = linear.param_types()[..residuals].to_vec();
    let mut body = Builder::new();
    let mut arguments: Vec<Option<Var>> = vec![None; residuals];
    let mut operands = Vec::new();
    let mut tangent_arguments = Vec::new();
    let mut take = |body: &mut Builder, operands: &mut Vec<Var>, constant: bool| {
        for (i, place) in places.iter().enumerate() {
            match *place {
                Residual::Constant(var) if constant => operands.push(var),
                Residual::Operand(operand) if !constant => operands.push(inputs[operand]),
                Residual::Output(output) if !constant => operands.push(stacks[output]),
                _ => continue,
            }
            arguments[i] = Some(body.param(residual_types[i].clone()));
        }
    };
    let mut tangents_in = |b: &mut Builder,
                           body: &mut Builder,
                           operands: &mut Vec<Var>,
                           range: std::ops::Range<usize>| {
        tangent_arguments
            .extend(body.add_params(kept(&types[range.clone()], &marked[range.clone()])));
        operands.extend(marked_tangents(b, &marked, inputs, tangents, range));
    };
    take(&mut body, &mut operands, true);
    tangents_in(b, &mut body, &mut operands, 0..scan.consts);
    let consts = operands.len();
    tangents_in(b, &mut body, &mut operands, scan.consts..slices_at);
    let carries = operands.len() - consts;
    take(&mut body, &mut operands, false);
    tangents_in(b, &mut body, &mut operands, slices_at..types.len());

    let arguments: Vec<Var> = arguments
        .into_iter()
        .map(|var| var.expect("every residual has a place"))
        .chain(tangent_arguments)
        .collect();
    let slopes = body.inline(&linear, &arguments);
    let op = Scan {
        body: Arc::new(body.finish(scan.body.name.clone(), slopes)),
        consts,
        carries,
        ..scan.clone()
    };
    let slopes = b.emit(op, &operands);
    Ok((values.to_vec(), deal(&results, slopes)))
}

/// A loop that is linear in some operands, run backward in time: cotangents of carries are carried,
/// cotangents of constants are summed, and cotangents of slices are stacked.
pub(super) fn transposed(
    scan: &Scan,
    b: &mut Builder,
    inputs: &[Operand],
    cotangents: &[Slope],
) -> Result<Slopes, TransformError> {
    let slices_at = scan.consts + scan.carries;
    let mut marked: Vec<bool> = inputs.iter().map(Operand::is_linear).collect();
    // A carry that starts from a known value (a zero tangent) and becomes linear in a later
    // iteration is linear too.
    let body = &scan.body;
    loop {
        let depends = body.depends_on(&marked);
        let more: Vec<usize> = (0..scan.carries)
            .filter(|&i| depends[body.results[i].index()] && !marked[scan.consts + i])
            .collect();
        if more.is_empty() {
            break;
        }
        more.iter().for_each(|&i| marked[scan.consts + i] = true);
    }
    assert!(
        marked[scan.consts..slices_at].iter().all(|&is| is),
        "a linear loop carries only tangents"
    );

    let mut given = vec![true; scan.carries];
    given.extend(transform::given(&cotangents[scan.carries..]));
    let force: Vec<bool> =
        (0..inputs.len()).filter(|&i| marked[i]).map(|i| i < slices_at).collect();
    let (backward, sent) = transpose(body, &marked, &given, &force)?;

    // backward: known consts, known slices, cotangents of carries, of slices
    //        -> cotangents of linear consts, of carries, of linear slices (those in `sent`).
    let known = |range: std::ops::Range<usize>| range.filter(|&i| !marked[i]).collect::<Vec<_>>();
    let linear = |range: std::ops::Range<usize>| range.filter(|&i| marked[i]).collect::<Vec<_>>();
    let (known_consts, linear_consts) = (known(0..scan.consts), linear(0..scan.consts));
    let (known_xs, linear_xs) = (known(slices_at..inputs.len()), linear(slices_at..inputs.len()));
    let types = body.param_types();
    let result_types = body.result_types();
    let of = |indices: &[usize]| indices.iter().map(|&i| types[i].clone()).collect::<Vec<_>>();
    let y_types = kept(&result_types[scan.carries..], &given[scan.carries..]);

    let mut loop_body = Builder::new();
    let consts = loop_body.add_params(of(&known_consts));
    let carry_cts = loop_body.add_params(result_types[..scan.carries].to_vec());
    let sums = loop_body.add_params(of(&linear_consts));
    let xs = loop_body.add_params(of(&known_xs));
    let y_cts = loop_body.add_params(y_types);
    let arguments: Vec<Var> = consts.into_iter().chain(xs).chain(carry_cts).chain(y_cts).collect();
    let outputs = loop_body.inline(&backward, &arguments);
    let (const_cts, rest) = outputs.split_at(linear_consts.len());
    let (carry_cts, x_cts) = rest.split_at(scan.carries);
    let sums: Vec<Var> =
        sums.iter().zip(const_cts).map(|(&sum, &ct)| loop_body.add(sum, ct)).collect();
    let results: Vec<Var> =
        carry_cts.iter().copied().chain(sums).chain(x_cts.iter().copied()).collect();
    let loop_body = loop_body.finish(body.name.clone(), results);

    let read = |i: &usize| inputs[*i].known().expect("unmarked operands are known");
    let mut operands: Vec<Var> = known_consts.iter().map(read).collect();
    for (ty, cotangent) in result_types.iter().zip(&cotangents[..scan.carries]) {
        operands.push(cotangent.unwrap_or_else(|| b.zeros(ty)));
    }
    for ty in of(&linear_consts) {
        operands.push(b.zeros(&ty));
    }
    operands.extend(known_xs.iter().map(read));
    operands.extend(cotangents[scan.carries..].iter().flatten());
    let op = Scan {
        body: Arc::new(loop_body),
        length: scan.length,
        reverse: !scan.reverse,
        consts: known_consts.len(),
        carries: scan.carries + linear_consts.len(),
    };
    let outputs = b.emit(op, &operands);
    let (carry_outputs, mut x_outputs) = (
        &outputs[..scan.carries + linear_consts.len()],
        outputs[scan.carries + linear_consts.len()..].iter(),
    );

    let mut back: Vec<Option<Var>> = vec![None; inputs.len()];
    for (i, &slot) in linear_consts.iter().enumerate() {
        back[slot] = Some(carry_outputs[scan.carries + i]);
    }
    for i in 0..scan.carries {
        // The cotangent of a carry that started from a known value is dropped.
        back[scan.consts + i] = inputs[scan.consts + i].is_linear().then(|| carry_outputs[i]);
    }
    for (&slot, _) in
        linear_xs.iter().zip(&sent[linear_consts.len() + scan.carries..]).filter(|(_, sent)| **sent)
    {
        back[slot] = x_outputs.next().copied();
    }
    Ok(back)
}
