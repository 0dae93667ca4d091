//! Einstein's summation convention.

use super::{Tensor, dot_general, fail};
use podracer_compiler::{DType, TensorType};

/// Products summed over axes, by letters: `einsum("bij,bjk->bik", &[x, y])`. Each operand's axes
/// are named by letters. Axes with the same letter run together; letters that the result does not
/// name are summed over. Without `->` the result has the letters that occur once, in alphabetical
/// order. `jax.numpy.einsum`, without the dots for unnamed axes.
///
/// Several operands are multiplied from left to right, two at a time.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let scores = trace((f32([2, 5, 4]), f32([2, 7, 4])), |(q, k)| einsum("bqd,bkd->bqk", &[q, k]))?;
/// assert_eq!(scores.results().to_string(), "f32[2,5,7]");
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// Errors: an operand with a different number of letters than axes; one letter for axes of
/// different extents; operands of different dtypes. Also a result that names a letter twice, or a
/// letter that no operand has.
#[track_caller]
pub fn einsum(subscripts: &str, operands: &[Tensor]) -> Tensor {
    let (letters, result) = match parse(subscripts, operands) {
        Ok(parsed) => parsed,
        Err(message) => {
            let guess = operands.first().map_or(TensorType::scalar(DType::F32), |x| x.ty());
            return fail("einsum", message, operands, guess);
        }
    };
    // There is a first operand, because there are letters. This is a loop and not closures: an
    // operation records the line that called it.
    let mut product = diagonal(operands[0], letters[0].clone());
    for position in 1..operands.len() {
        let next = diagonal(operands[position], letters[position].clone());
        let later = letters[position + 1..].concat();
        let wanted = |letter: &char| result.contains(letter) || later.contains(letter);
        product = multiply(product, next, wanted);
    }
    let (product, names) = sum_out(product, |letter| result.contains(letter));
    let place = |letter: &char| names.iter().position(|name| name == letter);
    product.permute(result.iter().filter_map(place).collect::<Vec<usize>>())
}

/// A tensor and the letters of its axes; no letter occurs twice.
type Term = (Tensor, Vec<char>);

/// The letters of each operand, and the letters of the result.
fn parse(subscripts: &str, operands: &[Tensor]) -> Result<(Vec<Vec<char>>, Vec<char>), String> {
    let text: String = subscripts.split_whitespace().collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (&text[..], None),
    };
    if let Some(other) =
        [left, right.unwrap_or("")].concat().chars().find(|c| !c.is_ascii_alphabetic() && *c != ',')
    {
        return Err(format!(
            "`{other}` in `{subscripts}`: expected a letter for each axis, `,` between operands and one `->`"
        ));
    }
    let letters: Vec<Vec<char>> = left.split(',').map(|names| names.chars().collect()).collect();
    if letters.len() != operands.len() {
        let (named, given) = (letters.len(), operands.len());
        return Err(format!("`{subscripts}` names {named} operands, and {given} are given"));
    }
    if let [first, rest @ ..] = operands
        && let Some(other) = rest.iter().find(|x| x.dtype() != first.dtype())
    {
        let (first, other) = (first.ty(), other.ty());
        return Err(format!("{first} and {other} must have one dtype: cast one of them"));
    }
    let mut extents: Vec<(char, usize)> = Vec::new();
    for (position, (names, x)) in letters.iter().zip(operands).enumerate() {
        let ty = x.ty();
        if names.len() != ty.rank() {
            let names: String = names.iter().collect();
            return Err(format!(
                "`{names}` in `{subscripts}` names {} axes of operand {position}, which is {ty}",
                names.len()
            ));
        }
        for (&name, &extent) in names.iter().zip(&ty.shape) {
            match extents.iter().find(|(other, _)| *other == name) {
                None => extents.push((name, extent)),
                Some((_, other)) if *other != extent => {
                    return Err(format!(
                        "`{name}` in `{subscripts}` is {other} and, of operand {position}, {extent}"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    let result: Vec<char> = match right {
        Some(names) => names.chars().collect(),
        None => {
            let all = letters.concat();
            let once = |name: &char| all.iter().filter(|other| *other == name).count() == 1;
            let mut names: Vec<char> = all.iter().copied().filter(once).collect();
            names.sort_unstable();
            names
        }
    };
    for (position, name) in result.iter().enumerate() {
        if result[..position].contains(name) {
            return Err(format!("the result of `{subscripts}` has `{name}` twice"));
        }
        if !extents.iter().any(|(other, _)| other == name) {
            return Err(format!("the result of `{subscripts}` has `{name}`, which no operand has"));
        }
    }
    Ok((letters, result))
}

/// Takes the diagonal of each pair of axes with the same letter, so that every letter occurs once.
#[track_caller]
fn diagonal(mut x: Tensor, mut names: Vec<char>) -> Term {
    let again = |names: &[char]| {
        (0..names.len())
            .flat_map(|b| (0..b).map(move |a| (a, b)))
            .find(|&(a, b)| names[a] == names[b])
    };
    while let Some((a, b)) = again(&names) {
        let name = names.remove(b);
        names.remove(a);
        // Both axes first, merged into one axis of n^2 positions; every (n + 1)-th of them is on
        // the diagonal.
        let moved = x.move_axis(b as isize, 0).move_axis(a as isize + 1, 0);
        let shape = moved.shape();
        let (n, rest) = (shape[0], &shape[2..]);
        let flat = moved.reshape([&[n * n], rest].concat());
        x = flat.slice_strided(&[(0, (n * n) as isize)], &[n + 1]);
        names.insert(0, name);
    }
    (x, names)
}

/// Sums over the axes that are not `wanted`.
#[track_caller]
fn sum_out((x, names): Term, wanted: impl Fn(&char) -> bool) -> Term {
    let axes: Vec<isize> = (names.iter().enumerate())
        .filter(|(_, name)| !wanted(name))
        .map(|(axis, _)| axis as isize)
        .collect();
    let kept = names.into_iter().filter(wanted).collect();
    if axes.is_empty() {
        return (x, kept);
    }
    (x.sum_axis(&axes[..]), kept)
}

/// The product of two terms, summed over the letters that are not `wanted`.
#[track_caller]
fn multiply(left: Term, right: Term, wanted: impl Fn(&char) -> bool) -> Term {
    // An axis of only one term that is not wanted need not be multiplied.
    let (l, l_names) = sum_out(left.clone(), |name| wanted(name) || right.1.contains(name));
    let (r, r_names) = sum_out(right, |name| wanted(name) || left.1.contains(name));
    let mut batch = (Vec::new(), Vec::new());
    let mut contract = (Vec::new(), Vec::new());
    for (axis, name) in l_names.iter().enumerate() {
        if let Some(other) = r_names.iter().position(|other| other == name) {
            let axes = if wanted(name) { &mut batch } else { &mut contract };
            axes.0.push(axis);
            axes.1.push(other);
        }
    }
    let product = dot_general(l, r, (&contract.0, &contract.1), (&batch.0, &batch.1));
    let free = |names: &[char], others: &[char]| -> Vec<char> {
        names.iter().copied().filter(|name| !others.contains(name)).collect()
    };
    let shared: Vec<char> = batch.0.iter().map(|&axis| l_names[axis]).collect();
    let names = [shared, free(&l_names, &r_names), free(&r_names, &l_names)].concat();
    (product, names)
}
