//! `#[derive(Tree)]`: structs and enums of tensors, with one form for each place where the leaves may live.
//!
//! For `struct State { velocity: Tensor, #[tree(fixed)] width: usize }` it writes
//! - `struct StateOf<K: Kind> { velocity: K::View<Tensor>, width: usize }`, the form in a kind, and
//! - `impl Tree for State` with `type Of<K> = StateOf<K>`, and the impls of `Over` and `IntoTree` that go with it.
//!
//! For an enum the form is an enum with the same variants; an enum without trees in it is its own form in every kind.
//! The generator takes a struct for an enum of one variant without a name.
//!
//! Where-clauses stand on the types of fields that mention a type parameter, not on the parameters.
#![forbid(unsafe_code)]

mod expand;
mod fields;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `Tree` for a struct or an enum. A field is a tree, or marked `#[tree(fixed)]`: then it is the same in all
/// forms, and must be `Clone + Send + Sync + 'static`. The variant of an enum is structure, known while tracing, and no
/// step of a key path.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn derive_tree(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
