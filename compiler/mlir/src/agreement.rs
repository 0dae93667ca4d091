//! The two implementations of emitting a module, compared: text that the compiler writes, and text that MLIR prints of its
//! own objects.

use crate::{Module, normalized};
use podracer_compiler::Func;
use podracer_compiler::stablehlo::{ModuleSpec, stablehlo};

/// Both modules of a function: the compiler's and MLIR's.
///
/// # Errors
/// A sentence, if one of them is rejected.
pub fn modules(func: &Func, spec: &ModuleSpec) -> Result<[Module; 2], String> {
    let written = stablehlo(func, spec).map_err(|error| format!("the compiler: {error}"))?;
    let built = crate::stablehlo(func, spec).map_err(|error| format!("MLIR: {error}"))?;
    Ok([written, built])
}

/// The first difference between a written module and a module that MLIR built; `None` if MLIR
/// prints both in the same way. The text without locations must be equal as it stands.
pub fn difference([written, built]: &[Module; 2]) -> Option<String> {
    let read = |text| normalized(text).map_err(|error| error.to_string());
    let (plain, located) = match (read(&written.text), read(&written.text_with_locations)) {
        (Ok(plain), Ok(located)) => (plain, located),
        (Err(error), _) | (_, Err(error)) => return Some(error),
    };
    [
        (&written.text, &built.text),
        (&plain.text, &built.text),
        (&located.text, &built.text),
        (&located.text_with_locations, &built.text_with_locations),
    ]
    .into_iter()
    .find_map(|(written, built)| different_line(written, built))
}

/// The difference between the modules of a function.
pub fn disagreement(func: &Func, spec: &ModuleSpec) -> Option<String> {
    modules(func, spec).map_or_else(Some, |modules| difference(&modules))
}

fn different_line(written: &str, built: &str) -> Option<String> {
    if written == built {
        return None;
    }
    let lines = written.lines().zip(built.lines()).zip(1..);
    let different = lines.map(|((a, b), line)| (a, b, line)).find(|(a, b, _)| a != b);
    let (written, built, line) = different.unwrap_or(("another number of lines", "", 0));
    Some(format!("line {line}:\n{written}\nand of MLIR:\n{built}"))
}
