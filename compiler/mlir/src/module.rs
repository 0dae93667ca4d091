//! From a function, or from a text, to a module's text.

use crate::MlirError;
use crate::attribute::{attribute, string};
use crate::backend::MlirBackend;
use crate::context::{Messages, context};
use melior::Context;
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationPrintingFlags};
use melior::ir::{Location, Module as MlirModule};
use podracer_compiler::stablehlo::emit::emit;
use podracer_compiler::stablehlo::{EmitError, Module, ModuleSpec};
use podracer_compiler::{Func, HloAttribute};

/// Builds the module with `func` as its public function `main`, and the called functions as private
/// functions.
///
/// # Errors
/// [`MlirError::Emit`] if the specification does not fit the function or an op cannot be lowered,
/// and [`MlirError::Rejected`] if MLIR's verifier rejects the module.
pub fn stablehlo(func: &Func, spec: &ModuleSpec) -> Result<Module, MlirError> {
    let (context, messages) = context();
    let mut backend = MlirBackend::new(&context);
    emit(&mut backend, func, spec).map_err(|error| with_messages(error, messages.take()))?;
    let mut module = MlirModule::new(Location::unknown(&context));
    set_attributes(&context, &mut module, spec)?;
    for function in backend.into_functions() {
        module.body().append_operation(function);
    }
    print(&module, &messages)
}

/// Both texts of the module that MLIR parses from a text, as MLIR prints them. An op without a
/// location in the text has the line of the text.
///
/// # Errors
/// [`MlirError::Rejected`] if MLIR's parser or verifier rejects the text.
pub fn normalized(text: &str) -> Result<Module, MlirError> {
    let (context, messages) = context();
    match MlirModule::parse(&context, text) {
        Some(module) => print(&module, &messages),
        None => Err(MlirError::Rejected(messages.take())),
    }
}

fn print(module: &MlirModule<'_>, messages: &Messages) -> Result<Module, MlirError> {
    let operation = module.as_operation();
    if !operation.verify() {
        return Err(MlirError::Rejected(messages.take()));
    }
    let print = |flags| {
        operation
            .to_string_with_flags(flags)
            .map_err(|error| MlirError::Rejected(vec![error.to_string()]))
    };
    Ok(Module {
        text: print(OperationPrintingFlags::new())?,
        text_with_locations: print(OperationPrintingFlags::new().enable_debug_info(true, false))?,
    })
}

/// The error, with MLIR's messages about a malformed op.
fn with_messages(error: EmitError, messages: Vec<String>) -> EmitError {
    match error {
        EmitError::Lowering { op, place, message } if !messages.is_empty() => {
            let message = format!("{message} ({})", messages.join("; "));
            EmitError::Lowering { op, place, message }
        }
        other => other,
    }
}

fn set_attributes(
    context: &Context,
    module: &mut MlirModule<'_>,
    spec: &ModuleSpec,
) -> Result<(), MlirError> {
    let number = |value| {
        attribute(context, &HloAttribute::I32(value))
            .map_err(|message| MlirError::Rejected(vec![message]))
    };
    // The specification was checked: they fit.
    let replicas = i32::try_from(spec.module_replicas()).unwrap_or(i32::MAX);
    let mut operation = module.as_operation_mut();
    if !spec.name.is_empty() {
        operation.set_attribute("sym_name", string(context, &spec.name));
    }
    operation.set_attribute("mhlo.num_replicas", number(replicas)?);
    operation.set_attribute("mhlo.num_partitions", number(1)?);
    Ok(())
}
