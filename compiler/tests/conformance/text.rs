//! The text of every op reads back, alone and in transformed functions.

use super::first_order::choices;
use super::{cases, check_all, func_of, types_of};
use podracer_compiler::transform::{VmapContext, jvp, vjp, vmap};
use podracer_compiler::{Func, text};

/// The function is its text: read back, it is equal, and prints as before, with and without locations.
pub fn check_text(func: &Func) -> Result<(), String> {
    for printed in [func.to_string(), format!("{func:#}")] {
        let read = text::parse(&printed).map_err(|error| format!("{error} in\n{printed}"))?;
        if read != *func {
            return Err(format!("read back as another function:\n{printed}\n{read}"));
        }
        if ![read.to_string(), format!("{read:#}")].contains(&printed) {
            return Err(format!("prints anew as\n{read:#}\nnot as\n{printed}"));
        }
    }
    Ok(())
}

#[test]
fn functions_are_their_text() {
    check_all(cases(), |case| {
        let inputs = &case.sample.inputs;
        let func = func_of(&case.sample.op, &types_of(inputs))?;
        check_text(&func)?;
        let batched = vec![true; inputs.len()];
        let force = vec![true; func.results.len()];
        let (batch, _) = vmap(&func, &VmapContext::new(3), &batched, &force);
        check_text(&batch)?;
        for wrt in choices(inputs) {
            // That there is a rule, and a right one, is checked elsewhere.
            if let Ok((forward, _)) = jvp(&func, &wrt) {
                check_text(&forward)?;
            }
            if let Ok(vjp) = vjp(&func, &wrt) {
                check_text(&vjp.primal)?;
                check_text(&vjp.pullback)?;
            }
        }
        Ok(())
    });
}
