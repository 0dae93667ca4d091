//! The first difference of two functions.

use crate::ir::{Eqn, Func, Var};
use std::fmt::{self, Display};

/// The first difference of two functions. Shown as `equation 3 (scan), body: the number of results: 2 against 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path into the functions, outermost first.
    pub path: Vec<String>,
    /// The part that differs at the path, such as `the number of results`.
    pub what: String,
    /// The value of that part in the left function.
    pub left: String,
    /// The value of that part in the right function.
    pub right: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path.join(", "))?;
        }
        write!(f, "{}: {} against {}", self.what, self.left, self.right)
    }
}

type Result = std::result::Result<(), Difference>;

/// The first difference of two functions, in the order of their texts; `None` if they are equal.
/// Names, locations and the variables' indices are ignored.
pub fn diff(left: &Func, right: &Func) -> Option<Difference> {
    let found = funcs(left, right).err();
    debug_assert_eq!(found.is_none(), left == right);
    found
}

fn funcs(left: &Func, right: &Func) -> Result {
    let named = |func: &Func, vars: &[Var]| {
        let numbers = func.numbers();
        let name = |var: &Var| numbers[var.index()].map_or(String::new(), |n| format!("%{n}"));
        vars.iter().map(name).collect::<Vec<_>>()
    };
    let typed = |func: &Func, vars: &[Var]| {
        let ty = |var: &Var| func.ty(*var).to_string();
        vars.iter().map(ty).collect::<Vec<_>>()
    };
    let [l, r] = [left, right].map(|func| typed(func, &func.params));
    lists("parameter", &l, &r)?;
    for (number, (l, r)) in left.eqns.iter().zip(&right.eqns).enumerate() {
        let inside =
            |difference| within(difference, format!("equation {number} ({})", mnemonic(l)));
        same("the op", mnemonic(l), mnemonic(r)).map_err(inside)?;
        ops(l, r).map_err(inside)?;
        let [inputs, others] = [(left, l), (right, r)].map(|(func, eqn)| named(func, &eqn.inputs));
        lists("operand", &inputs, &others).map_err(inside)?;
        let [outputs, others] =
            [(left, l), (right, r)].map(|(func, eqn)| typed(func, &eqn.outputs));
        lists("result", &outputs, &others).map_err(inside)?;
    }
    same("the number of equations", left.eqns.len(), right.eqns.len())?;
    let [l, r] = [left, right].map(|func| named(func, &func.results));
    lists("result", &l, &r)
}

fn mnemonic(eqn: &Eqn) -> &'static str {
    eqn.op.mnemonic()
}

/// The attributes of two ops with the same name, including attributes with bodies.
fn ops(left: &Eqn, right: &Eqn) -> Result {
    let (left, right) = (left.op.attributes(), right.op.attributes());
    for ((name, l), (_, r)) in left.0.iter().zip(&right.0) {
        let (bodies, others) = (l.funcs(), r.funcs());
        if bodies.is_empty() && others.is_empty() {
            same(&format!("attribute {name}"), l, r)?;
            continue;
        }
        same(&format!("the number of {name}"), bodies.len(), others.len())?;
        for (number, (body, other)) in bodies.iter().zip(others).enumerate() {
            let place =
                if bodies.len() == 1 { (*name).to_string() } else { format!("{name} {number}") };
            funcs(body, other).map_err(|difference| within(difference, place))?;
        }
    }
    Ok(())
}

fn lists(what: &str, left: &[String], right: &[String]) -> Result {
    for (number, (l, r)) in left.iter().zip(right).enumerate() {
        same(&format!("{what} {number}"), l, r)?;
    }
    same(&format!("the number of {what}s"), left.len(), right.len())
}

fn same(what: &str, left: impl Display, right: impl Display) -> Result {
    let (left, right) = (left.to_string(), right.to_string());
    if left == right {
        return Ok(());
    }
    let (path, what) = (Vec::new(), what.to_string());
    Err(Difference { path, what, left, right })
}

fn within(mut difference: Difference, place: String) -> Difference {
    difference.path.insert(0, place);
    difference
}

#[cfg(test)]
mod tests {
    use crate::text::{diff, parse};

    const LEFT: &str = "func left(%0: f32[], %1: f32[]) -> (f32[]) {
  %2: f32[] = constant[value=f32[](1.0)]
  %3: f32[] = call[body=func f(%0: f32[]) -> (f32[]) {
    %1: f32[] = add %0 %0
    return %1
  }, form=INLINED] %0
  %4: f32[] = subtract %2 %3
  return %4
}";

    #[track_caller]
    fn check(from: &str, to: &str, expected: &str) {
        assert!(LEFT.contains(from));
        let right = LEFT.replacen(from, to, 1);
        let [left, right] = [LEFT, &right].map(|text| parse(text).expect("it is right"));
        let found = diff(&left, &right).map_or(String::new(), |found| found.to_string());
        assert_eq!(found, expected);
        assert_eq!(diff(&left, &left), None);
    }

    #[test]
    fn names_make_no_difference() {
        check("func left(%0", "func right (%0", "");
        check(
            "(%0: f32[]) -> (f32[]) {\n    %1: f32[] = add %0 %0",
            "(%x: f32[]) -> (f32[]) {\n    %1: f32[] = add %x %x",
            "",
        );
    }

    #[test]
    fn the_first_difference_is_named() {
        check("%1: f32[]) ->", "%1: i32[]) ->", "parameter 1: f32[] against i32[]");
        check(", %1: f32[]) ->", ") ->", "the number of parameters: 2 against 1");
        check(
            "add %0",
            "multiply %0",
            "equation 1 (call), body, equation 0 (add): the op: add against multiply",
        );
        check(
            "f32[](1.0)",
            "f32[](-0.0)",
            "equation 0 (constant): attribute value: f32[](1.0) against f32[](-0.0)",
        );
        check(
            "subtract %2 %3",
            "subtract %3 %2",
            "equation 2 (subtract): operand 0: %2 against %3",
        );
        check(
            "form=INLINED] %0",
            "form=INLINED] %1",
            "equation 1 (call): operand 0: %0 against %1",
        );
        check("return %4", "return %3", "result 0: %4 against %3");
        check(
            "  return %4",
            "  %5: f32[] = negate %4\n  return %4",
            "the number of equations: 3 against 4",
        );
    }
}
