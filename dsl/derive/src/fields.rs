//! Reads the struct or enum: its fields, which of them are fixed, and mistakes that the derive
//! explains better than rustc does.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, GenericArgument, Ident, Index, Member,
    PathArguments, Result, Token, Type,
};

/// A variant of an enum, or the whole of a struct.
pub struct Variant {
    /// The variant's name; a struct has none.
    pub ident: Option<Ident>,
    /// The way its fields are written.
    pub form: Form,
    /// The fields in order.
    pub parts: Vec<Part>,
    /// The variant's attributes: its documentation goes to the form in a kind.
    pub attrs: Vec<Attribute>,
}

/// The way fields are written.
pub enum Form {
    /// Fields with names: `{ velocity: Tensor }`.
    Named,
    /// Fields without names: `(Tensor, Key)`.
    Tuple,
    /// No fields: `struct Empty;`.
    Unit,
}

/// A field of a struct or variant.
pub struct Part {
    /// The field's name or number: `velocity`, or `0`.
    pub member: Member,
    /// The variable that holds it in an arm of a `match`.
    pub binding: Ident,
    /// The type of the field.
    pub ty: Type,
    /// True if marked `#[tree(fixed)]`: the same in all forms.
    pub fixed: bool,
    /// The field itself: its visibility and documentation go to the form in a kind.
    pub field: Field,
}

impl Variant {
    /// `Name::Variant`, or `Name` for a struct.
    pub fn path(&self, name: &Ident) -> TokenStream {
        match &self.ident {
            Some(ident) => quote!(#name::#ident),
            None => quote!(#name),
        }
    }
}

impl Part {
    /// The step of a key path.
    pub fn step(&self) -> TokenStream {
        match &self.member {
            Member::Named(ident) => {
                let text = ident.unraw().to_string();
                quote!(::podracer_dsl::tree::Step::Field(#text))
            }
            Member::Unnamed(index) => {
                let index = index.index as usize;
                quote!(::podracer_dsl::tree::Step::Position(#index))
            }
        }
    }
}

/// The variants, or why there is no tree.
pub fn variants(input: &DeriveInput) -> Result<Vec<Variant>> {
    let mut errors = Vec::new();
    let variants: Vec<Variant> = match &input.data {
        Data::Struct(data) => vec![variant(None, &data.fields, &[], &mut errors)],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|one| variant(Some(one.ident.clone()), &one.fields, &one.attrs, &mut errors))
            .collect(),
        Data::Union(_) => return Err(Error::new(input.ident.span(), "a union is not a tree")),
    };
    if variants.is_empty() {
        let message = "an enum without variants is not a tree: it has no value";
        errors.push(Error::new(input.ident.span(), message));
    }
    match errors.into_iter().reduce(|mut errors, error| {
        errors.combine(error);
        errors
    }) {
        Some(error) => Err(error),
        None => Ok(variants),
    }
}

fn variant(
    ident: Option<Ident>,
    fields: &Fields,
    attrs: &[Attribute],
    errors: &mut Vec<Error>,
) -> Variant {
    let mut parts = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        let member = match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => Member::Unnamed(Index { index: i as u32, span: field.span() }),
        };
        let fixed = match is_fixed(field) {
            Ok(fixed) => fixed,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        if !fixed && let Some(problem) = plain(&field.ty) {
            let name = field.ident.as_ref().map_or_else(|| i.to_string(), ToString::to_string);
            let advice = match &field.ty {
                Type::Reference(_) => "a tree owns its leaves, and a `Tensor` is `Copy`",
                _ => "mark it `#[tree(fixed)]` if it is known while tracing, or make it a `Tensor`",
            };
            let message = format!("`{name}` is {problem}, not a tensor: {advice}");
            errors.push(Error::new(field.ty.span(), message));
        }
        let binding = format_ident!("__{i}");
        parts.push(Part { member, binding, ty: field.ty.clone(), fixed, field: field.clone() });
    }
    let form = match fields {
        Fields::Named(_) => Form::Named,
        Fields::Unnamed(_) => Form::Tuple,
        Fields::Unit => Form::Unit,
    };
    Variant { ident, form, parts, attrs: attrs.to_vec() }
}

fn is_fixed(field: &Field) -> Result<bool> {
    let mut fixed = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("tree")) {
        attribute.parse_nested_meta(|meta| {
            let bare = meta.input.is_empty() || meta.input.peek(Token![,]);
            if meta.path.is_ident("fixed") && bare {
                fixed = true;
                return Ok(());
            }
            Err(meta.error("expected `#[tree(fixed)]`"))
        })?;
    }
    Ok(fixed)
}

/// Types that are surely no trees, described.
fn plain(ty: &Type) -> Option<String> {
    const PLAIN: [&str; 17] = [
        "bool", "char", "String", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32",
        "i64", "i128", "isize", "f32", "f64",
    ];
    match ty {
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            match name.as_str() {
                "Option" => match &last.arguments {
                    PathArguments::AngleBracketed(inner) => {
                        inner.args.iter().find_map(|inner| match inner {
                            GenericArgument::Type(inner) => {
                                plain(inner).map(|inner| format!("an `Option` of {inner}"))
                            }
                            _ => None,
                        })
                    }
                    _ => None,
                },
                "PhantomData" => Some("a `PhantomData`".to_string()),
                "HashMap" | "BTreeMap" => Some(format!("a `{name}`")),
                _ => PLAIN.contains(&name.as_str()).then(|| format!("a plain `{name}`")),
            }
        }
        Type::Reference(_) => Some("a reference".to_string()),
        _ => None,
    }
}
