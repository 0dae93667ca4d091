//! The parser from text to functions. pest recognizes, the registry makes ops from mnemonics and
//! attributes, and the builder infers the types, which must match the types in the text.

use super::error::{ParseError, Problem, nearest};
use super::grammar::{Grammar, Rule};
use crate::attributes::{Attribute, Attributes};
use crate::ir::{Builder, Func, Loc, Var};
use crate::ops::{OpRef, registry};
use crate::types::{DType, TensorType};
use pest::Parser;
use pest::iterators::Pair;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

/// The greatest depth of nested braces: recursion stays within a thread's two megabytes, even in
/// debug builds.
const MOST_NESTED: usize = 64;

/// The most elements in total of the arrays with a repeated value, because the text's length does
/// not bound them.
const MOST_SPLATS: usize = 1 << 26;

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// Reads a function from its text: the reverse of its `Display`.
///
/// Spaces, line ends and comments (`//` to the end of the line) may stand between words, and variables may have any names.
pub fn parse(text: &str) -> Result<Func> {
    check_nesting(text)?;
    let mut pairs =
        Grammar::parse(Rule::program, text).map_err(|error| ParseError::of_syntax(text, &error))?;
    let function = pairs.next().expect("a program is a function");
    Reader { text, splats: MOST_SPLATS }.function(function)
}

impl FromStr for Func {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Func> {
        parse(text)
    }
}

/// Rejects texts that would exhaust the stack, before any recursion. Only functions nest, and they
/// are in braces.
fn check_nesting(text: &str) -> Result<()> {
    let mut depth = 0;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' if depth == MOST_NESTED => {
                let most = MOST_NESTED;
                return Err(ParseError::at(text, at, Problem::TooDeep { most }));
            }
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'/' if bytes.peek().is_some_and(|(_, next)| *next == b'/') => {
                bytes.find(|(_, byte)| *byte == b'\n');
            }
            b'"' => {
                while let Some((_, byte)) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The parts of a pair that carry meaning: everything except signs and keywords.
pub(super) fn parts(pair: Pair<'_, Rule>) -> impl Iterator<Item = Pair<'_, Rule>> {
    pair.into_inner().filter(|pair| {
        !matches!(
            pair.as_rule(),
            Rule::func
                | Rule::returns
                | Rule::loc
                | Rule::splat
                | Rule::arrow
                | Rule::close_brace
                | Rule::close_round
                | Rule::close_square
                | Rule::colon
                | Rule::comma
                | Rule::equals
                | Rule::open_brace
                | Rule::open_round
                | Rule::open_square
        )
    })
}

/// The state of the parser.
pub(super) struct Reader<'t> {
    text: &'t str,
    /// The number of elements that further arrays with a repeated value may have.
    pub(super) splats: usize,
}

/// The visible variables: the variables of the function that is being read.
type Variables<'t> = BTreeMap<&'t str, Var>;

impl<'t> Reader<'t> {
    pub(super) fn error_at(&self, byte: usize, problem: Problem) -> ParseError {
        ParseError::at(self.text, byte, problem)
    }

    pub(super) fn error(&self, pair: &Pair<'_, Rule>, problem: Problem) -> ParseError {
        self.error_at(pair.as_span().start(), problem)
    }

    fn function(&mut self, pair: Pair<'t, Rule>) -> Result<Func> {
        let mut b = Builder::new();
        let mut variables = Variables::new();
        let (mut name, mut results) = (String::new(), Vec::new());
        let (mut types, mut types_at) = (Vec::new(), 0);
        for part in parts(pair) {
            match part.as_rule() {
                Rule::name => {
                    let inner = part.into_inner().next().expect("a name is a word or quoted");
                    name = self.word(&inner);
                }
                Rule::parameters => {
                    for binding in parts(part) {
                        let (variable, ty) = self.binding(binding)?;
                        let var = b.param(ty.1);
                        self.define(&mut variables, &variable, var)?;
                    }
                }
                Rule::types => {
                    types_at = part.as_span().start();
                    types = parts(part).collect();
                }
                Rule::equation => self.equation(part, &mut b, &mut variables)?,
                _ => results.push((self.variable(&variables, &part)?, part)),
            }
        }
        if types.len() != results.len() {
            let problem = Problem::Count {
                what: "types of results".to_string(),
                expected: results.len(),
                got: types.len(),
            };
            return Err(self.error_at(types_at, problem));
        }
        let results = results.into_iter().zip(types).map(|((var, part), ty)| {
            let at = ty.as_span().start();
            self.check_type(at, self.tensor(ty)?, part.as_str(), b.ty(var))?;
            Ok(var)
        });
        let results = results.collect::<Result<Vec<Var>>>()?;
        Ok(b.finish(name, results))
    }

    /// A variable and its type, with the place of the type.
    fn binding(&self, pair: Pair<'t, Rule>) -> Result<(Pair<'t, Rule>, (usize, TensorType))> {
        let mut parts = parts(pair);
        let mut next = || parts.next().expect("a binding is a variable and a type");
        let (variable, ty) = (next(), next());
        Ok((variable, (ty.as_span().start(), self.tensor(ty)?)))
    }

    fn define(&self, variables: &mut Variables<'t>, pair: &Pair<'t, Rule>, var: Var) -> Result<()> {
        match variables.insert(pair.as_str(), var) {
            None => Ok(()),
            Some(_) => Err(self.error(pair, Problem::Redefined(pair.as_str().to_string()))),
        }
    }

    fn variable(&self, variables: &Variables<'t>, pair: &Pair<'t, Rule>) -> Result<Var> {
        variables
            .get(pair.as_str())
            .copied()
            .ok_or_else(|| self.error(pair, Problem::Undefined(pair.as_str().to_string())))
    }

    fn check_type(
        &self,
        at: usize,
        written: TensorType,
        of: &str,
        inferred: &TensorType,
    ) -> Result<()> {
        if written == *inferred {
            return Ok(());
        }
        let (of, inferred) = (of.to_string(), inferred.clone());
        let problem = Problem::WrongType { of, written, inferred };
        Err(self.error_at(at, problem))
    }

    fn equation(
        &mut self,
        pair: Pair<'t, Rule>,
        b: &mut Builder,
        variables: &mut Variables<'t>,
    ) -> Result<()> {
        let mut parts = parts(pair).peekable();
        let outputs = parts.next().expect("an equation begins with its results");
        let mnemonic = parts.next().expect("then comes its op");
        let attributes = parts.next_if(|part| part.as_rule() == Rule::attributes);
        let op = self.op(&mnemonic, attributes)?;
        let operands = parts.next().expect("then come its operands");
        let inputs = self::parts(operands)
            .map(|operand| self.variable(variables, &operand))
            .collect::<Result<Vec<Var>>>()?;
        b.set_loc(match parts.next() {
            Some(location) => self.location(location)?,
            None => Loc::NONE,
        });
        let of = op.mnemonic();
        let outputs = self::parts(outputs)
            .map(|binding| self.binding(binding))
            .collect::<Result<Vec<_>>>()?;
        let vars = b
            .try_emit(op, &inputs)
            .map_err(|error| self.error(&mnemonic, Problem::Type { op: of, error }))?;
        if vars.len() != outputs.len() {
            let problem = Problem::Count {
                what: format!("results of {of}"),
                expected: vars.len(),
                got: outputs.len(),
            };
            return Err(self.error(&mnemonic, problem));
        }
        for ((variable, (at, ty)), var) in outputs.into_iter().zip(vars) {
            self.check_type(at, ty, &format!("the result of {of}"), b.ty(var))?;
            self.define(variables, &variable, var)?;
        }
        Ok(())
    }

    fn op(&mut self, pair: &Pair<'t, Rule>, attributes: Option<Pair<'t, Rule>>) -> Result<OpRef> {
        let name = pair.as_str();
        let entry = registry::find(name).ok_or_else(|| {
            let known = registry::all().iter().map(|entry| entry.mnemonic);
            let problem = Problem::Unknown {
                what: "op",
                name: name.to_string(),
                nearest: nearest(name, known),
            };
            self.error(pair, problem)
        })?;
        let mut values = Attributes::none();
        for attribute in attributes.into_iter().flat_map(parts) {
            let at = attribute.as_span().start();
            let mut parts = parts(attribute);
            let mut next = || parts.next().expect("an attribute is a name and a value");
            let (name, value) = (next().as_str(), next());
            let known = entry.attributes.iter().find(|known| **known == name);
            let repeated = values.get(name).is_some();
            match known.filter(|_| !repeated) {
                Some(known) => values.0.push((known, self.value(value)?)),
                None => {
                    let problem = Problem::Attribute {
                        op: entry.mnemonic,
                        name: name.to_string(),
                        repeated,
                        known: match entry.attributes {
                            [] => "none".to_string(),
                            known => known.join(", "),
                        },
                    };
                    return Err(self.error_at(at, problem));
                }
            }
        }
        (entry.parse)(&values).map_err(|message| {
            let op = entry.mnemonic;
            self.error(pair, Problem::Attributes { op, message })
        })
    }

    fn value(&mut self, pair: Pair<'t, Rule>) -> Result<Attribute> {
        let integer = |pair: &_| self.number(pair, "integer of 64 bits");
        Ok(match pair.as_rule() {
            Rule::function => Attribute::Func(Arc::new(self.function(pair)?)),
            Rule::functions => {
                let functions = parts(pair).map(|pair| self.function(pair).map(Arc::new));
                Attribute::Funcs(functions.collect::<Result<_>>()?)
            }
            Rule::array => Attribute::Array(Arc::new(self.array(pair)?)),
            Rule::integers => {
                Attribute::Ints(parts(pair).map(|pair| integer(&pair)).collect::<Result<_>>()?)
            }
            Rule::integer => Attribute::Int(integer(&pair)?),
            Rule::string => Attribute::Word(self.string(&pair)),
            _ => match (pair.as_str(), DType::parse(pair.as_str())) {
                ("true", _) => Attribute::Bool(true),
                ("false", _) => Attribute::Bool(false),
                (_, Some(dtype)) => Attribute::DType(dtype),
                (word, None) => Attribute::Word(word.to_string()),
            },
        })
    }

    /// A word, with or without quotes.
    fn word(&self, pair: &Pair<'t, Rule>) -> String {
        match pair.as_rule() {
            Rule::string => self.string(pair),
            _ => pair.as_str().to_string(),
        }
    }
}
