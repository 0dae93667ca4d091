//! The compiler's typed attributes as MLIR's.
//!
//! StableHLO's own attributes are unknown to LLVM's MLIR and pass through as opaque text, which nothing checks before
//! the plugin does; they are therefore written here only, from typed parts.

use crate::constant::{dense, dense_i64};
use melior::Context;
use melior::ir::Attribute;
use melior::ir::attribute::{BoolAttribute, DenseI64ArrayAttribute, IntegerAttribute};
use melior::ir::r#type::IntegerType;
use podracer_compiler::HloAttribute;

/// Makes the MLIR attribute; the error says what is wrong.
pub fn attribute<'c>(
    context: &'c Context,
    attribute: &HloAttribute,
) -> Result<Attribute<'c>, String> {
    match attribute {
        HloAttribute::I64Array(values) => Ok(DenseI64ArrayAttribute::new(context, values).into()),
        HloAttribute::I64Tensor(shape, values) => dense_i64(context, shape, values),
        HloAttribute::I64(value) => Ok(integer(context, 64, *value)),
        HloAttribute::I32(value) => Ok(i32_attribute(context, *value)),
        HloAttribute::Bool(value) => Ok(BoolAttribute::new(context, *value).into()),
        HloAttribute::Dense(array) => dense(context, array),
        HloAttribute::Enum(kind, value) => opaque(context, &format!("#stablehlo<{kind} {value}>")),
        HloAttribute::Channel(handle, kind) => {
            opaque(context, &format!("#stablehlo.channel_handle<handle = {handle}, type = {kind}>"))
        }
        HloAttribute::Dot { lhs_batch, rhs_batch, lhs_contract, rhs_contract } => Fields::new()
            .axes("lhs_batching_dimensions", lhs_batch)
            .axes("rhs_batching_dimensions", rhs_batch)
            .axes("lhs_contracting_dimensions", lhs_contract)
            .axes("rhs_contracting_dimensions", rhs_contract)
            .finish(context, "dot"),
        HloAttribute::Convolution { lhs, rhs, out } => {
            let [lhs, rhs, out] =
                [layout(lhs, ["b", "f"]), layout(rhs, ["o", "i"]), layout(out, ["b", "f"])];
            opaque(context, &format!("#stablehlo.conv<{lhs}x{rhs}->{out}>"))
        }
        HloAttribute::Gather {
            offset_dims,
            collapsed_slice_dims,
            operand_batching_dims,
            start_indices_batching_dims,
            start_index_map,
            index_vector_dim,
        } => Fields::new()
            .axes("offset_dims", offset_dims)
            .axes("collapsed_slice_dims", collapsed_slice_dims)
            .axes("operand_batching_dims", operand_batching_dims)
            .axes("start_indices_batching_dims", start_indices_batching_dims)
            .axes("start_index_map", start_index_map)
            .number("index_vector_dim", *index_vector_dim)
            .finish(context, "gather"),
        HloAttribute::Scatter {
            update_window_dims,
            inserted_window_dims,
            input_batching_dims,
            scatter_indices_batching_dims,
            scatter_dims_to_operand_dims,
            index_vector_dim,
        } => Fields::new()
            .axes("update_window_dims", update_window_dims)
            .axes("inserted_window_dims", inserted_window_dims)
            .axes("input_batching_dims", input_batching_dims)
            .axes("scatter_indices_batching_dims", scatter_indices_batching_dims)
            .axes("scatter_dims_to_operand_dims", scatter_dims_to_operand_dims)
            .number("index_vector_dim", *index_vector_dim)
            .finish(context, "scatter"),
    }
}

/// The i32 attribute `n : i32`.
pub fn i32_attribute(context: &Context, value: i32) -> Attribute<'_> {
    integer(context, 32, i64::from(value))
}

fn integer(context: &Context, bits: u32, value: i64) -> Attribute<'_> {
    IntegerAttribute::new(IntegerType::new(context, bits).into(), value).into()
}

fn opaque<'c>(context: &'c Context, text: &str) -> Result<Attribute<'c>, String> {
    Attribute::parse(context, text)
        .ok_or_else(|| format!("MLIR does not read the attribute `{text}`"))
}

/// `[b, 0, 1, f]`: the name of each axis, where `axes` has those of the two letters first and then the spatial ones.
fn layout(axes: &[usize], letters: [&str; 2]) -> String {
    let mut names = vec![String::new(); axes.len()];
    let numbers = (0..axes.len().saturating_sub(2)).map(|spatial| spatial.to_string());
    for (&axis, name) in axes.iter().zip(letters.map(String::from).into_iter().chain(numbers)) {
        names[axis] = name;
    }
    format!("[{}]", names.join(", "))
}

/// The fields of a StableHLO attribute; StableHLO reads an absent list as empty, so that empty ones are left out.
struct Fields(Vec<String>);

impl Fields {
    fn new() -> Self {
        Fields(Vec::new())
    }

    fn axes(mut self, name: &str, axes: &[usize]) -> Self {
        if !axes.is_empty() {
            self.0.push(format!("{name} = {axes:?}"));
        }
        self
    }

    fn number(mut self, name: &str, value: usize) -> Self {
        self.0.push(format!("{name} = {value}"));
        self
    }

    fn finish<'c>(self, context: &'c Context, kind: &str) -> Result<Attribute<'c>, String> {
        opaque(context, &format!("#stablehlo.{kind}<{}>", self.0.join(", ")))
    }
}
