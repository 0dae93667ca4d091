//! From a function to a module's text.

use crate::attribute::i32_attribute;
use crate::emitter::{Emitter, string};
use crate::types::tensor_types;
use crate::{ArgumentSpec, Donation, MlirError, ModuleSpec};
use melior::Context;
use melior::dialect::DialectHandle;
use melior::ir::attribute::{ArrayAttribute, BoolAttribute, DictionaryAttribute, TypeAttribute};
use melior::ir::block::BlockLike;
use melior::ir::operation::{
    OperationBuilder, OperationLike, OperationMutLike, OperationPrintingFlags,
};
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, Identifier, Location, Operation, Region};
use podracer_compiler::lower::lower_func;
use podracer_compiler::{Func, Hlo, Loc};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A StableHLO module as text. Both texts are of one build and differ in locations only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The text without locations: for snapshots, and for keys of the executable cache.
    pub text: String,
    /// The text with the user's source lines: for the compiler, whose errors and profiles show them.
    pub text_with_locations: String,
}

/// Builds the module whose public function `main` is `func`, with the functions it calls as private ones.
pub fn stablehlo(func: &Func, spec: &ModuleSpec) -> Result<Module, MlirError> {
    spec.check(func)?;
    // One context per compilation, since MLIR never frees the attributes that it has seen.
    let context = Context::new_with_threading(false);
    context.set_allow_unregistered_dialects(true);
    DialectHandle::func().load_dialect(&context);
    let messages: Rc<RefCell<Vec<String>>> = Rc::default();
    let sink = messages.clone();
    context.attach_diagnostic_handler(move |diagnostic| {
        sink.borrow_mut().push(format!("{}: {diagnostic}", diagnostic.location()));
        for note in (0..diagnostic.note_count()).filter_map(|i| diagnostic.note(i).ok()) {
            sink.borrow_mut().push(format!("{}: note: {note}", note.location()));
        }
        true
    });
    let rejected = |error: MlirError| match error {
        MlirError::Lowering { op, place, message } if !messages.borrow().is_empty() => {
            let message = format!("{message} ({})", messages.borrow().join("; "));
            MlirError::Lowering { op, place, message }
        }
        other => other,
    };

    let mut module = melior::ir::Module::new(Location::unknown(&context));
    set_module_attributes(&context, &mut module, spec);
    let mut emitter = Emitter::new(&context, spec.replicas);
    let main = Signature {
        name: "main",
        visibility: "public",
        argument_locations: spec
            .arguments
            .iter()
            .map(|argument| name_location(&context, &argument.name))
            .collect(),
        argument_attributes: spec
            .arguments
            .iter()
            .map(|argument| donation(&context, argument))
            .collect(),
        result_attributes: spec
            .result_names
            .iter()
            .map(|name| result_info(&context, name))
            .collect(),
    };
    let mut functions = vec![function(&mut emitter, &context, func, main)];
    // Emitting one may call more; the list grows until all that are reachable are there.
    for index in 0.. {
        let Some((name, callee)) =
            emitter.callee(index).map(|callee| (callee.name.clone(), Arc::clone(&callee.func)))
        else {
            break;
        };
        let signature = Signature {
            name: &name,
            visibility: "private",
            argument_locations: vec![Location::unknown(&context); callee.params.len()],
            argument_attributes: vec![Vec::new(); callee.params.len()],
            result_attributes: vec![Vec::new(); callee.results.len()],
        };
        functions.push(function(&mut emitter, &context, &callee, signature));
    }
    emitter.finish().map_err(rejected)?;
    for function in functions {
        module.body().append_operation(function?);
    }

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

/// The name, visibility, locations and attributes of a function to emit.
struct Signature<'c, 'n> {
    name: &'n str,
    visibility: &'static str,
    argument_locations: Vec<Location<'c>>,
    argument_attributes: Vec<Vec<Named<'c>>>,
    result_attributes: Vec<Vec<Named<'c>>>,
}

/// An attribute with its name.
type Named<'c> = (Identifier<'c>, Attribute<'c>);

/// Emits `func` as a `func.func`.
fn function<'c>(
    emitter: &mut Emitter<'c>,
    context: &'c Context,
    func: &Func,
    signature: Signature<'c, '_>,
) -> Result<Operation<'c>, MlirError> {
    emitter.set_loc(Loc::NONE);
    let arguments = emitter.open(&func.param_types(), &signature.argument_locations);
    let results = lower_func(emitter, func, &arguments);
    let body: Region<'c> = emitter.close_function(&results);
    let inputs = tensor_types(context, &func.param_types());
    let outputs = tensor_types(context, &func.result_types());
    let ty = FunctionType::new(context, &inputs, &outputs);
    let named = |name: &str, attribute| (Identifier::new(context, name), attribute);
    let mut attributes = vec![
        named("sym_name", string(context, signature.name)),
        named("sym_visibility", string(context, signature.visibility)),
        named("function_type", TypeAttribute::new(ty.into()).into()),
    ];
    for (name, lists) in
        [("arg_attrs", signature.argument_attributes), ("res_attrs", signature.result_attributes)]
    {
        if lists.iter().any(|list| !list.is_empty()) {
            let dictionaries: Vec<Attribute> =
                lists.iter().map(|list| DictionaryAttribute::new(context, list).into()).collect();
            attributes.push(named(name, ArrayAttribute::new(context, &dictionaries).into()));
        }
    }
    OperationBuilder::new("func.func", Location::unknown(context))
        .add_attributes(&attributes)
        .add_regions([body])
        .build()
        .map_err(|error| MlirError::Rejected(vec![error.to_string()]))
}

fn set_module_attributes(
    context: &Context,
    module: &mut melior::ir::Module<'_>,
    spec: &ModuleSpec,
) {
    // The specification was checked: they fit.
    let replicas = i32::try_from(spec.replicas).unwrap_or(i32::MAX);
    let mut operation = module.as_operation_mut();
    if !spec.name.is_empty() {
        operation.set_attribute("sym_name", string(context, &spec.name));
    }
    operation.set_attribute("mhlo.num_replicas", i32_attribute(context, replicas));
    operation.set_attribute("mhlo.num_partitions", i32_attribute(context, 1));
}

/// The argument's name as a location, which XLA shows as the parameter's name.
fn name_location<'c>(context: &'c Context, name: &str) -> Location<'c> {
    let unknown = Location::unknown(context);
    if name.is_empty() { unknown } else { Location::name(context, name, unknown) }
}

/// The attributes by which XLA may reuse an argument's memory.
fn donation<'c>(context: &'c Context, argument: &ArgumentSpec) -> Vec<Named<'c>> {
    let (name, attribute) = match argument.donation {
        Donation::Kept => return Vec::new(),
        Donation::Into(result) => (
            "tf.aliasing_output",
            i32_attribute(context, i32::try_from(result).unwrap_or(i32::MAX)),
        ),
        Donation::Donor => ("jax.buffer_donor", BoolAttribute::new(context, true).into()),
    };
    vec![(Identifier::new(context, name), attribute)]
}

/// The result's key path, under the name that tools for XLA's modules look for.
fn result_info<'c>(context: &'c Context, name: &str) -> Vec<Named<'c>> {
    if name.is_empty() {
        Vec::new()
    } else {
        vec![(Identifier::new(context, "jax.result_info"), string(context, name))]
    }
}
