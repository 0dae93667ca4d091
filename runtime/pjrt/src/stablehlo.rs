//! StableHLO from other sources, such as jax: its types are read from the text before XLA sees it.

use podracer_compiler::{DType, TensorType};

use crate::module::module_attribute;
use crate::{Module, RuntimeError};

impl Module {
    /// A module from StableHLO text: what `jax.jit(f).lower(..).as_text()` prints, `mlir_module()` of what `jax.export`
    /// makes, a file of `podracer export`. Its types are those that its function `main` declares.
    ///
    /// # Errors
    /// [`RuntimeError::StableHlo`] for text without such a function, and for types that a program cannot have: dynamic
    /// shapes, element types that are none of ours, partitions.
    pub fn parse(text: impl Into<String>) -> Result<Self, RuntimeError> {
        let text = text.into();
        let mut scanner = Scanner { text: &text, at: 0 };
        scanner.find_main()?;
        let arguments = scanner.arguments()?;
        let results = scanner.results()?;
        match module_attribute(&text, "mhlo.num_partitions") {
            None | Some(1) => Ok(Self::new(text, arguments, results)),
            Some(partitions) => Err(RuntimeError::StableHlo(format!(
                "the module is written for {partitions} partitions: only what runs whole on every device can be loaded"
            ))),
        }
    }
}

/// Reads MLIR's text as far as a function's signature goes.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, problem: &str) -> RuntimeError {
        let line = 1 + self.text[..self.at].matches('\n').count();
        RuntimeError::StableHlo(format!("the StableHLO text, line {line}: {problem}"))
    }

    /// Steps over white space and comments.
    fn space(&mut self) {
        loop {
            let rest = self.rest().trim_start();
            self.at = self.text.len() - rest.len();
            match rest.starts_with("//") {
                true => self.at += rest.find('\n').unwrap_or(rest.len()),
                false => return,
            }
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), RuntimeError> {
        match self.eat(token) {
            true => Ok(()),
            false => Err(self.error(&format!("expected `{token}` in the signature of `main`"))),
        }
    }

    /// Steps over one character, or a whole string.
    fn step(&mut self) {
        let mut chars = self.rest().char_indices();
        if let Some((_, '"')) = chars.next() {
            let mut escaped = false;
            for (_, c) in chars.by_ref() {
                match c {
                    '"' if !escaped => break,
                    _ => escaped = c == '\\' && !escaped,
                }
            }
        }
        self.at = chars.next().map_or(self.text.len(), |(at, _)| self.at + at);
    }

    /// Skips from an opening bracket to just after its closing bracket. The head of an arrow closes
    /// nothing.
    fn nested(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.rest().chars().next() {
            if self.rest().starts_with("->") {
                self.at += 2;
                continue;
            }
            depth += i32::from("([{<".contains(c)) - i32::from(")]}>".contains(c));
            self.step();
            if depth == 0 {
                return;
            }
        }
    }

    /// To behind the name of the function `main`.
    fn find_main(&mut self) -> Result<(), RuntimeError> {
        while !self.rest().is_empty() {
            self.space();
            if !self.eat("func.func ") {
                self.step();
                continue;
            }
            for visibility in ["public ", "private ", "nested "] {
                self.eat(visibility);
            }
            if self.eat("@main(") || self.eat("@\"main\"(") {
                return Ok(());
            }
        }
        let what = match self.text.trim_start() {
            text if text.starts_with("HloModule") => {
                "is HLO: in jax, `jax.jit(f).lower(..).as_text()` gives StableHLO"
            }
            text if text.contains("\"func.func\"") => {
                "is in MLIR's generic form: print it without `print_generic_op_form`"
            }
            _ => "has no function `func.func @main(..)`",
        };
        Err(RuntimeError::StableHlo(format!(
            "this is no StableHLO module that can be loaded: the text {what}"
        )))
    }

    /// `%arg0: tensor<f32> {attributes} loc(..), ..)`
    fn arguments(&mut self) -> Result<Vec<TensorType>, RuntimeError> {
        let mut types = Vec::new();
        while !self.eat(")") {
            if !types.is_empty() {
                self.expect(",")?;
            }
            if self.eat("%") {
                let end = self.rest().find(':').unwrap_or(0);
                self.at += end;
                self.expect(":")?;
            }
            types.push(self.ty(&format!("argument {}", types.len()))?);
            self.decoration();
        }
        Ok(types)
    }

    /// Nothing, `-> tensor<f32>` or `-> (tensor<f32> {attributes}, ..)`
    fn results(&mut self) -> Result<Vec<TensorType>, RuntimeError> {
        if !self.eat("->") {
            return Ok(Vec::new());
        }
        if !self.eat("(") {
            return Ok(vec![self.ty("result 0")?]);
        }
        let mut types = Vec::new();
        while !self.eat(")") {
            if !types.is_empty() {
                self.expect(",")?;
            }
            types.push(self.ty(&format!("result {}", types.len()))?);
            self.decoration();
        }
        Ok(types)
    }

    /// Attributes and locations, which say nothing of types.
    fn decoration(&mut self) {
        self.space();
        if self.rest().starts_with('{') {
            self.nested();
        }
        if self.eat("loc") {
            self.nested();
        }
    }

    /// `tensor<4x3xf32>`
    fn ty(&mut self, place: &str) -> Result<TensorType, RuntimeError> {
        self.space();
        let start = self.at;
        let end = self.rest().find(['<', ',', ')', ' ']);
        self.at += end.unwrap_or(self.rest().len());
        if self.rest().starts_with('<') {
            self.nested();
        }
        let written = &self.text[start..self.at];
        let refuse = |problem: &str| {
            Err(self.error(&format!("{place} of `main` is `{written}`: {problem}")))
        };
        let inner = written.strip_prefix("tensor<");
        let Some(inner) = inner.and_then(|inner| inner.strip_suffix('>')) else {
            return refuse("expected `tensor<..>`");
        };
        let mut shape = Vec::new();
        let mut rest = inner;
        while let Some((extent, after)) = rest.split_once('x') {
            match extent.trim().parse() {
                Ok(extent) => shape.push(extent),
                Err(_) if ["?", "*"].contains(&extent.trim()) => {
                    return refuse(
                        "shapes must be static; lower or export it for shapes of numbers",
                    );
                }
                // `x` belongs to the element type.
                Err(_) => break,
            }
            rest = after;
        }
        let element = rest.split(',').next().unwrap_or(rest).trim();
        let Some(dtype) = dtype(element) else {
            return refuse(&format!(
                "there is no element type `{element}` here; those that are: {}",
                DType::ALL.map(DType::name).join(", ")
            ));
        };
        Ok(TensorType::new(dtype, shape))
    }
}

/// Reads MLIR's name of an element type: integers without a sign are signed, and 1-bit integers are
/// bools.
fn dtype(name: &str) -> Option<DType> {
    match name {
        "i1" => Some(DType::Bool),
        _ => match name.strip_prefix("ui") {
            Some(bits) => DType::parse(&format!("u{bits}")),
            None => DType::parse(name)
                .filter(|dtype| !dtype.is_unsigned_integer() && *dtype != DType::Bool),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Module::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn signatures_are_read_past_what_stands_around_them() {
        let text = r#"
            // func.func @main(%nothing: tensor<f32>)
            module @m attributes {note = "func.func @main() {"} {
              func.func private @other(%x: tensor<9xf32>) -> tensor<9xf32> { return %x : tensor<9xf32> }
              func.func public @main(
                %a: tensor<2x3xbf16> {a.b = "), (", a.c = (i32) -> i32, mhlo.sharding = "{replicated}"} loc("x[\"a\"]"("f.py":1:2)),
                %b: tensor<ui32>, %c: tensor<0x1xi1> loc(#loc1)
              ) -> (tensor<i8> {jax.result_info = "result['a']"}, tensor<4xf64>) {"#;
        let module = Module::parse(text).unwrap();
        let shown = |types: &[TensorType]| {
            let types: Vec<String> = types.iter().map(TensorType::to_string).collect();
            types.join(" ")
        };
        assert_eq!(shown(&module.arguments), "bf16[2,3] u32[] bool[0,1]");
        assert_eq!(shown(&module.results), "i8[] f64[4]");
        let one = Module::parse("func.func @main() -> tensor<f32> {").unwrap();
        assert_eq!((one.arguments.len(), one.results.len()), (0, 1));
    }

    #[test]
    fn what_is_no_module_for_us_says_why() {
        for (text, expected) in [
            ("", "no function `func.func @main(..)`"),
            ("def f(x): return x", "no function `func.func @main(..)`"),
            ("HloModule jit_f, entry", "`jax.jit(f).lower(..).as_text()` gives StableHLO"),
            ("\"func.func\"() <{sym_name = \"main\"}>", "generic form"),
            (
                "module {\n func.func @main(%a: tensor<?x3xf32>)",
                "line 2: argument 0 of `main` is `tensor<?x3xf32>`: shapes must be static",
            ),
            ("func.func @main(%a: tensor<*xf32>)", "shapes must be static"),
            (
                "func.func @main(%a: tensor<4xf8E4M3FN>)",
                "no element type `f8E4M3FN` here; those that are: bool, i8",
            ),
            ("func.func @main(%a: tensor<complex<f32>>)", "no element type `complex<f32>`"),
            ("func.func @main(%a: !stablehlo.token)", "expected `tensor<..>`"),
            ("func.func @main(%a: tensor<4xu8>)", "no element type `u8`"),
            ("func.func @main(%a: tensor<4xf32> %b", "expected `,`"),
            ("func.func @main(%a: tensor<4xf32", "argument 0 of `main` is `tensor<4xf32`"),
            ("func.func @main(%a", "expected `:`"),
            (
                "module attributes {mhlo.num_partitions = 4 : i32} { func.func @main() {",
                "4 partitions",
            ),
        ] {
            let message = error(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
