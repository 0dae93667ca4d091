//! Dead code in bodies, and the dead code around them that results.

use crate::text::parse;
use crate::transform::dce;

#[track_caller]
fn check(text: &str, expected: &str) {
    let func = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let after = dce(&func);
    assert_eq!(after.to_string(), expected);
    assert_eq!(dce(&after), after);
}

#[test]
fn operands_that_only_dead_code_in_a_body_reads_go() {
    check(
        "func main(%0: f64[], %1: i32[]) -> (f64[]) {
  %2: i32[] = negate %1
  %3: f64[] = call[body=func outer(%0: i32[], %1: f64[]) -> (f64[]) {
    %2: i32[], %3: f64[] = scan[body=func inner(%0: i32[], %1: f64[]) -> (i32[], f64[]) {
      %2: f64[] = sine %1
      return %0 %2
    }, length=3, reverse=false, consts=0, carries=2] %0 %1
    return %3
  }, form=INLINED] %2 %0
  return %3
}",
        "func main(%0: f64[], %1: i32[]) -> (f64[]) {
  %2: f64[] = call[body=func outer(%0: f64[]) -> (f64[]) {
    %1: f64[] = scan[body=func inner(%0: f64[]) -> (f64[]) {
      %1: f64[] = sine %0
      return %1
    }, length=3, reverse=false, consts=0, carries=1] %0
    return %1
  }, form=INLINED] %0
  return %2
}",
    );
}

#[test]
fn a_while_keeps_the_carries_that_its_condition_or_a_result_needs() {
    check(
        "func main(%0: i32[], %1: f32[], %2: f32[]) -> (f32[]) {
  %3: i32[], %4: f32[], %5: f32[] = while[condition=func condition(%0: f32[], %1: i32[], %2: f32[], %3: f32[]) -> (bool[]) {
    %4: i32[] = constant[value=i32[](0)]
    %5: bool[] = compare[direction=GT] %1 %4
    return %5
  }, body=func body(%0: f32[], %1: f32[], %2: i32[], %3: f32[], %4: f32[]) -> (i32[], f32[], f32[]) {
    %5: i32[] = constant[value=i32[](1)]
    %6: i32[] = subtract %2 %5
    %7: f32[] = multiply %3 %0
    %8: f32[] = add %4 %1
    return %6 %7 %8
  }, condition_consts=1, body_consts=2] %1 %1 %2 %0 %1 %2
  return %4
}",
        "func main(%0: i32[], %1: f32[], %2: f32[]) -> (f32[]) {
  %3: i32[], %4: f32[] = while[condition=func condition(%0: i32[], %1: f32[]) -> (bool[]) {
    %2: i32[] = constant[value=i32[](0)]
    %3: bool[] = compare[direction=GT] %0 %2
    return %3
  }, body=func body(%0: f32[], %1: i32[], %2: f32[]) -> (i32[], f32[]) {
    %3: i32[] = constant[value=i32[](1)]
    %4: i32[] = subtract %1 %3
    %5: f32[] = multiply %2 %0
    return %4 %5
  }, condition_consts=0, body_consts=1] %1 %0 %1
  return %4
}",
    );
}

/// The index of the body's first parameter differs from its position: reads are looked up by index.
#[test]
fn a_while_whose_body_was_renumbered_keeps_the_right_operands() {
    check(
        "func main(%0: f32[], %1: f32[]) -> (f32[]) {
  %2: f32[], %3: f32[] = while[condition=func condition(%0: f32[], %1: f32[]) -> (bool[]) {
    %2: bool[] = compare[direction=GT] %0 %1
    return %2
  }, body=func body(%0: f32[], %1: f32[], %2: f32[], %3: f32[]) -> (f32[], f32[]) {
    %4: f32[] = add %2 %3
    return %1 %3
  }, condition_consts=0, body_consts=2] %0 %1 %0 %1
  return %2
}",
        "func main(%0: f32[], %1: f32[]) -> (f32[]) {
  %2: f32[], %3: f32[] = while[condition=func condition(%0: f32[], %1: f32[]) -> (bool[]) {
    %2: bool[] = compare[direction=GT] %0 %1
    return %2
  }, body=func body(%0: f32[], %1: f32[], %2: f32[]) -> (f32[], f32[]) {
    return %0 %2
  }, condition_consts=0, body_consts=1] %1 %0 %1
  return %2
}",
    );
}
