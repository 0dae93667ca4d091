//! The text of every kind of program, and one test for each kind of mistake in it.

use super::*;
use crate::ir::Loc;
use crate::ops::TypeError;
use crate::{Array, Builder, DType, Func, Scalar, TensorType};
use proptest::prelude::*;

/// Whitespace is free and variables have any names, but the printed text is canonical.
#[track_caller]
fn check(text: &str, canonical: &str) {
    let func = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(func.to_string(), canonical);
    assert_eq!(parse(canonical).as_ref(), Ok(&func));
}

#[track_caller]
fn error(text: &str) -> ParseError {
    match parse(text) {
        Ok(func) => panic!("no error in\n{func}"),
        Err(error) => error,
    }
}

/// The error of an equation with the f32 scalar `%x` in scope, at 2:1.
#[track_caller]
fn error_in(equation: &str) -> ParseError {
    error(&format!("func(%x: f32[]) -> (f32[]) {{\n{equation}\nreturn %x\n}}"))
}

#[track_caller]
fn check_error(error: &ParseError, expected: &str) {
    assert_eq!(error.to_string(), expected);
}

#[test]
fn spaces_comments_and_names_are_free() {
    check(
        "// Twice.\nfunc  twice ( %x:f32[ 2 , 3 ] )->( f32[2,3] ){%sum:f32[2,3]=add %x %x// x + x\nreturn %sum}\n",
        "func twice(%0: f32[2,3]) -> (f32[2,3]) {\n  %1: f32[2,3] = add %0 %0\n  return %1\n}",
    );
}

#[test]
fn nothing_in_and_nothing_out() {
    check("func()->(){return}", "func() -> () {\n  return\n}");
}

#[test]
fn an_equation_without_results_stands_behind_others() {
    let text = "func(%0: f32[]) -> (f32[]) {
  %1: f32[] = negate %0
  = call[body=func body(%0: f32[]) -> () {
    return
  }, form=INLINED] %1
  return %1
}";
    check(text, text);
}

#[test]
fn names_that_are_no_words_are_quoted() {
    for name in ["catch-ppo", "a\"b\\c", "two\nlines", "1", "ä", "// no comment", "{"] {
        let func = Builder::new().finish(name, Vec::new());
        let text = func.to_string();
        assert!(text.starts_with("func \""), "{text}");
        assert_eq!(parse(&text).map(|func| func.name).as_deref(), Ok(name));
    }
}

#[test]
fn words_that_are_something_else_are_quoted() {
    for axis in ["true", "f32", "func", "a b", "", "batch"] {
        let mut b = Builder::new();
        let axis = axis.to_string();
        let index = b.emit1(crate::ops::AxisIndex { axis: axis.clone() }, &[]);
        let func = b.finish("", vec![index]);
        let quoted = func.to_string().contains(&format!("axis=\"{axis}\""));
        assert_eq!(quoted, axis != "batch", "{func}");
        assert_eq!(parse(&func.to_string()), Ok(func));
    }
}

#[test]
fn variables_are_numbered_as_they_are_defined() {
    let mut b = Builder::new();
    let zero = b.zeros(&TensorType::scalar(DType::F32));
    let x = b.param(TensorType::scalar(DType::F32));
    let sum = b.add(x, zero);
    let func = b.finish("late", vec![sum]);
    let read = parse(&func.to_string());
    assert_eq!(read.as_ref().map(ToString::to_string), Ok(func.to_string()));
    assert_eq!(read, Ok(func));
}

#[test]
fn locations_print_on_request_and_read_back() {
    let mut b = Builder::new();
    let x = b.param(TensorType::scalar(DType::F32));
    let loc = Loc::caller();
    b.set_loc(loc);
    let y = b.neg(x);
    b.set_loc(Loc::NONE);
    let z = b.neg(y);
    let func = b.finish("placed", vec![z]);
    let text = format!("{func:#}");
    let (file, line, column) = loc.parts().expect("it is here");
    assert!(text.contains(&format!("negate %0 loc(\"{file}\":{line}:{column})\n")));
    assert!(!func.to_string().contains("loc"));
    let read = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format!("{read:#}"), text);
    assert_eq!((read.eqns[0].loc, read.eqns[1].loc), (loc, Loc::NONE));
}

/// An array printed as a constant, and read back.
fn reread(array: &Array) -> Result<Array, ParseError> {
    let mut b = Builder::new();
    let value = b.constant(array.clone());
    let func = b.finish("constant", vec![value]);
    Ok(parse(&func.to_string())?.eval(&[]).remove(0))
}

#[test]
fn constants_of_every_dtype_read_back_at_their_edges() {
    for dtype in DType::ALL {
        let values = if dtype == DType::Bool {
            vec![Scalar::Bool(true), Scalar::Bool(false)]
        } else if dtype.is_float() {
            let (greatest, least, tiniest) = match dtype {
                DType::F16 => (65504.0, 2f64.powi(-14), 2f64.powi(-24)),
                DType::BF16 => (half::bf16::MAX.to_f64(), 2f64.powi(-126), 2f64.powi(-133)),
                DType::F32 => (f64::from(f32::MAX), 2f64.powi(-126), 2f64.powi(-149)),
                _ => (f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)),
            };
            let edges = [greatest, -greatest, least, tiniest, -tiniest, 0.0, -0.0, 0.1, 1e6];
            let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            edges.into_iter().chain(odd).map(Scalar::Float).collect()
        } else {
            let (least, greatest) = dtype.integer_range();
            [least, greatest, 0, 1].map(Scalar::Int).to_vec()
        };
        let count = values.len();
        let array = Array::new(TensorType::new(dtype, [count]), values);
        assert_eq!(reread(&array), Ok(array));
    }
}

#[test]
fn every_half_and_every_brain_float_reads_back() {
    for dtype in [DType::F16, DType::BF16] {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let array = Array::from_bytes(TensorType::new(dtype, [1 << 16]), bytes).unwrap();
        assert_eq!(reread(&array), Ok(array));
    }
}

proptest! {
    #[test]
    fn floats_of_any_bits_read_back(bits: u64) {
        let double = Array::from_bytes(TensorType::scalar(DType::F64), bits.to_le_bytes()).unwrap();
        prop_assert_eq!(reread(&double), Ok(double));
        let single = Array::from_bytes(TensorType::scalar(DType::F32), &bits.to_le_bytes()[..4]).unwrap();
        prop_assert_eq!(reread(&single), Ok(single));
    }
}

#[test]
fn the_sign_and_the_payload_of_a_nan_are_not_kept() {
    let payload = 0xffc0_1234u32;
    let array = Array::from_bytes(TensorType::scalar(DType::F32), payload.to_le_bytes()).unwrap();
    let read = reread(&array).map(|array| array.bytes().to_vec());
    assert_eq!(read, Ok(f32::NAN.to_le_bytes().to_vec()));
}

/// 1 + 2^-24 + 2^-60 is above the middle of two f32 numbers; rounded to f64 first, it would be in
/// the middle.
#[test]
fn decimals_round_once() {
    let literal = "1.000000059604644776257986737988403547205962240695953369140625";
    let text =
        format!("func() -> (f32[]) {{ %0: f32[] = constant[value=f32[]({literal})] return %0 }}");
    let value = parse(&text).expect("it is right").eval(&[]).remove(0);
    assert_eq!(value.to_f64(), [f64::from(1.0f32.next_up())]);
}

#[test]
fn arrays_without_elements_and_of_one_value() {
    for array in ["f32[0,2]()", "f32[1](2.0)", "i8[2,2](splat -128)", "bool[2](true, false)"] {
        let ty = &array[..=array.find(']').expect("a type")];
        let text =
            format!("func() -> ({ty}) {{\n  %0: {ty} = constant[value={array}]\n  return %0\n}}");
        check(&text, &text);
    }
    check(
        "func()->(i8[2]){%0:i8[2]=constant[value=i8[2](7,7)] return %0}",
        "func() -> (i8[2]) {\n  %0: i8[2] = constant[value=i8[2](splat 7)]\n  return %0\n}",
    );
}

#[test]
fn what_may_stand_at_a_place_is_listed() {
    for (text, expected) in [
        ("", "1:1: expected `func`, got the end of the text"),
        ("module {}", "1:1: expected `func`, got `module`"),
        ("func f(%0: f32[] -> () { return }", "1:18: expected `)` or `,`, got `->`"),
        (
            "func f(0: f32[]) -> () { return }",
            "1:8: expected `)` or a variable, such as %0, got `0`",
        ),
        ("func f(%0 f32[]) -> () { return }", "1:11: expected `:`, got `f32`"),
        ("func f(%0: f32[2,]) -> () { return }", "1:18: expected an integer, got `]`"),
        ("func f() -> () {\n  return\n} }", "3:3: expected the end of the text, got `}`"),
        ("func f() -> () {\n}", "2:1: expected `return` or an equation, got `}`"),
        ("func é() -> () { return }", "1:6: expected `(` or a name, got `é`"),
    ] {
        check_error(&error(text), expected);
    }
    check_error(
        &error_in("%y: f32[] = constant[value=f32[](1.0 2.0)]"),
        "2:38: expected `)` or `,`, got `2.0`",
    );
    check_error(
        &error_in("%y: f32[] = add %x, %x"),
        "2:19: expected `return`, a location, loc(\"file\":1:1), a variable, such as %0 or an equation, got `,`",
    );
}

#[test]
fn an_op_that_there_is_not_is_likened_to_one_that_there_is() {
    check_error(
        &error_in("%y: f32[] = cosin %x"),
        "2:13: there is no op `cosin`; did you mean `cosine`?",
    );
    check_error(&error_in("%y: f32[] = frobnicate %x"), "2:13: there is no op `frobnicate`");
}

#[test]
fn an_element_type_that_there_is_not() {
    check_error(
        &error_in("%y: f33[] = negate %x"),
        "2:5: there is no element type `f33`; did you mean `f32`?",
    );
}

#[test]
fn an_attribute_that_the_op_does_not_take() {
    check_error(
        &error_in("%y: f32[] = convert[type=f32] %x"),
        "2:21: convert has no attribute `type`: it takes dtype",
    );
    check_error(
        &error_in("%y: f32[] = add[axis=0] %x %x"),
        "2:17: add has no attribute `axis`: it takes none",
    );
    check_error(
        &error_in("%y: f32[] = convert[dtype=f32, dtype=f64] %x"),
        "2:32: convert has already been given the attribute `dtype`: it takes dtype",
    );
}

#[test]
fn an_attribute_that_is_missing_or_of_another_kind() {
    check_error(&error_in("%y: f32[] = convert %x"), "2:13: convert: attribute `dtype` is missing");
    check_error(
        &error_in("%y: f32[] = reshape[shape=[-1]] %x"),
        "2:13: reshape: attribute `shape` must be a list of integers that are not negative",
    );
    check_error(
        &error_in("%y: bool[] = compare[direction=less] %x %x"),
        "2:14: compare: attribute `direction` must be one of EQ, NE, LT, LE, GT, GE",
    );
}

#[test]
fn a_variable_that_is_not_in_sight() {
    check_error(
        &error_in("%y: f32[] = negate %z"),
        "2:20: %z is not defined above in this function",
    );
    // A body cannot see the variables around it.
    check_error(
        &error_in("%y: f32[] = call[body=func() -> (f32[]) { return %x }, form=INLINED]"),
        "2:50: %x is not defined above in this function",
    );
}

#[test]
fn a_variable_that_is_defined_twice() {
    check_error(&error_in("%x: f32[] = negate %x"), "2:1: %x is defined already");
    check_error(
        &error("func(%a: f32[], %a: f32[]) -> () { return }"),
        "1:17: %a is defined already",
    );
}

#[test]
fn operands_that_the_op_does_not_take() {
    check_error(&error_in("%y: f32[] = add %x"), "2:13: add: expected 2 operands, got 1");
    let problem = error_in("%y: f32[] = not %x").problem;
    assert!(matches!(problem, Problem::Type { op: "not", error: TypeError { .. } }));
}

#[test]
fn a_type_that_is_not_the_one_inferred() {
    check_error(
        &error_in("%y: f32[1] = negate %x"),
        "2:5: the text says f32[1], but the result of negate is f32[]",
    );
    check_error(
        &error("func(%0: f32[]) -> (f64[]) { return %0 }"),
        "1:21: the text says f64[], but %0 is f32[]",
    );
}

#[test]
fn too_many_or_too_few_of_something() {
    check_error(
        &error_in("%y: f32[], %z: f32[] = negate %x"),
        "2:24: expected 1 results of negate, got 2",
    );
    check_error(
        &error_in("%y: f32[3] = constant[value=f32[3](1.0, 2.0)]"),
        "2:29: expected 3 values of f32[3], got 2",
    );
    check_error(
        &error("func() -> (f32[]) {\n  return\n}"),
        "1:11: expected 0 types of results, got 1",
    );
    check_error(
        &error("func(%x: f32[]) -> () {\n  return %x\n}"),
        "1:20: expected 1 types of results, got 0",
    );
}

#[test]
fn a_number_that_its_type_does_not_have() {
    for (array, at, expected) in [
        ("i8[](128)", 33, "`128` is no value of i8"),
        ("u8[](-1)", 33, "`-1` is no value of u8"),
        ("i32[](1.5)", 34, "`1.5` is no value of i32"),
        ("f32[](1e39)", 34, "`1e39` is no value of f32"),
        ("f16[](65520)", 34, "`65520` is no value of f16"),
        ("f32[](infinity)", 34, "`infinity` is no value of f32"),
        ("bool[](1)", 35, "`1` is no value of bool"),
    ] {
        let found = error_in(&format!("%y: f32[] = constant[value={array}]"));
        check_error(&found, &format!("2:{at}: {expected}"));
    }
    check_error(
        &error_in("%y: f32[99999999999999999999] = negate %x"),
        "2:9: `99999999999999999999` is no extent of an axis",
    );
    check_error(
        &error_in("%y: f32[] = reshape[shape=[9223372036854775808]] %x"),
        "2:28: `9223372036854775808` is no integer of 64 bits",
    );
}

#[test]
fn more_elements_than_memory_holds() {
    check_error(
        &error_in("%y: f32[1048577,1048576] = negate %x"),
        "2:5: f32[1048577,1048576] is too large: a tensor has at most 2^40 elements",
    );
    // Together they have one element too many.
    check_error(
        &error_in(
            "%y: u8[3] = constant[value=u8[3](splat 1)]\n%z: u8[67108862] = constant[value=u8[67108862](splat 1)]",
        ),
        "3:35: u8[67108862] is too large: arrays of one value have at most 2^26 elements together; broadcast a scalar instead",
    );
}

#[test]
fn bodies_in_bodies_have_an_end() {
    let nested = |depth: usize| {
        let wrap = |body: Func| {
            let mut b = Builder::new();
            let body = std::sync::Arc::new(body);
            b.emit(crate::ops::Call { body, form: crate::ops::CallForm::Inlined }, &[]);
            b.finish("deep", Vec::new())
        };
        (1..depth).fold(Builder::new().finish("deep", Vec::new()), |func, _| wrap(func))
    };
    let deep = nested(64);
    assert_eq!(parse(&deep.to_string()), Ok(deep));
    let found = error(&nested(65).to_string());
    assert_eq!(found.problem, Problem::TooDeep { most: 64 });
    assert_eq!((found.line, found.column), (65, 159));
    // Braces in names and comments do not start bodies.
    let braces = "{".repeat(100);
    let text = format!("// {braces}\nfunc \"\\\"{braces}\"() -> () {{ return }}");
    assert!(parse(&text).is_ok());
    let found = error(&"func() -> () { = call[body=".repeat(100_000));
    assert_eq!(found.problem, Problem::TooDeep { most: 64 });
}

/// Texts that a long run of the fuzzer kept: each text reaches code that no earlier text reached.
#[test]
fn whatever_is_there_is_read_or_an_error() {
    for text in [
        "//\r\r㌏\r㌏%\r㌏\r\r\r㌏at",
        "func p(%5: f[]) -> (fo[]) {=t[ve=0ic",
        "func s()-> (f9[3]) {  = constant[value=u32[353,03,3,3,3,3,0]() ]\n return}",
        "func s()-> (fq6[2]) {   = constant[value=i16[1](6,0,3,2323,1)]\n  return %0\n}",
        "func samle(%0:i[6], %1:i8[3])-> (i8[6\x0ei16n}",
        "func (%0: i32[11111111111,3111111112,3,2]) ->(i3[2,3]) {return}",
        "func(%2: f32[55555555555555555555]) -> (){return}",
        "func se(%0: u8[3]) -> () {\n = all_reduce[computation=min]%a return \n}",
        "func smp() -> (u8[32]) {\n   = iota[dtype=u8, shape=0]return}",
        "func mCe() -> (f64[]){  = call %2 return%3\n}\n",
        "func() -> (f64[1]) {\n = call %4: f[2] =sl return%3}\n",
        "func () -> () {\n= constant[value=bool[2,1](truarf)] return %0}",
        "func ggd(%0: i64[]) -> (i64[]) {\n= a[noeiv=tu64[](KKKKIK,KkFK,J0:}\n",
        "func s(%0: f32[]) -> (f32[]) {\n = dynamic_slice[sizes=[]]%0\n  return %2%1}",
        "func sle() -> () {\n= constant[value=f32[](splat 1.0)]return\n}",
        "func e(%0: f32[6],%1:f32[6]) -> (f32[6]) {\n %2: f32[6] = add%0 %1 return %2\n}",
    ] {
        match parse(text) {
            Ok(func) => assert_eq!(parse(&func.to_string()), Ok(func)),
            Err(error) => assert!(error.line > 0 && !error.to_string().is_empty(), "{text}"),
        }
    }
}
