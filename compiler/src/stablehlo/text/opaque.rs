//! StableHLO's own attributes. An MLIR without StableHLO reads them as opaque text, which is not
//! checked before the plugin reads it. They are therefore written only here, from typed parts.

use crate::lower::HloAttribute;

/// The text of an attribute of StableHLO, such as `#stablehlo.dot<...>`; `None` for MLIR's own
/// kinds.
///
/// # Errors
/// A sentence, if a part of the attribute is malformed.
pub fn opaque(attribute: &HloAttribute) -> Result<Option<String>, String> {
    let text = match attribute {
        HloAttribute::I64Array(_)
        | HloAttribute::I64Tensor(..)
        | HloAttribute::I64(_)
        | HloAttribute::I32(_)
        | HloAttribute::Bool(_)
        | HloAttribute::Text(_)
        | HloAttribute::Texts(_)
        | HloAttribute::Dense(_) => return Ok(None),
        HloAttribute::Enum(kind, value) => format!("#stablehlo<{} {}>", word(kind)?, word(value)?),
        HloAttribute::Channel(handle, kind) => {
            format!("#stablehlo.channel_handle<handle = {handle}, type = {kind}>")
        }
        HloAttribute::Dot { lhs_batch, rhs_batch, lhs_contract, rhs_contract } => Fields::new()
            .axes("lhs_batching_dimensions", lhs_batch)
            .axes("rhs_batching_dimensions", rhs_batch)
            .axes("lhs_contracting_dimensions", lhs_contract)
            .axes("rhs_contracting_dimensions", rhs_contract)
            .finish("dot"),
        HloAttribute::Convolution { lhs, rhs, out } => {
            let (lhs, rhs, out) =
                (layout(lhs, ["b", "f"])?, layout(rhs, ["o", "i"])?, layout(out, ["b", "f"])?);
            format!("#stablehlo.conv<{lhs}x{rhs}->{out}>")
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
            .finish("gather"),
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
            .finish("scatter"),
    };
    Ok(Some(text))
}

/// A word as in StableHLO's enums.
fn word(word: &str) -> Result<&str, String> {
    if !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(word);
    }
    Err(format!("`{word}` is no word of letters, digits and `_`"))
}

/// `[b, 0, 1, f]`: the name of each axis. `axes` has the axes of the two letters first and then the
/// spatial axes.
fn layout(axes: &[usize], letters: [&str; 2]) -> Result<String, String> {
    let mut names = vec![String::new(); axes.len()];
    let numbers = (0..axes.len().saturating_sub(2)).map(|spatial| spatial.to_string());
    for (&axis, name) in axes.iter().zip(letters.map(String::from).into_iter().chain(numbers)) {
        *names.get_mut(axis).ok_or_else(|| format!("there is no axis {axis} in {axes:?}"))? = name;
    }
    Ok(format!("[{}]", names.join(", ")))
}

/// The fields of a StableHLO attribute. StableHLO reads an absent list as empty, so empty lists are
/// left out.
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

    fn finish(self, kind: &str) -> String {
        format!("#stablehlo.{kind}<{}>", self.0.join(", "))
    }
}
