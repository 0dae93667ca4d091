//! Reading the struct: its fields, which of them are fixed, and mistakes that are better told here than by rustc.

use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericArgument, Index, Member, PathArguments, Result,
    Token, Type,
};

/// A field of the struct.
pub struct Part {
    /// `velocity`, or `0`.
    pub member: Member,
    /// Its type.
    pub ty: Type,
    /// The same in all forms.
    pub fixed: bool,
    /// Its visibility and documentation go to the form in a kind.
    pub field: Field,
}

/// The fields, or why there is no tree.
pub fn parts(input: &DeriveInput) -> Result<Vec<Part>> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(_) => {
            let message = "an enum is not a tree: which variant it is would be known only when the program runs, but shapes are fixed while tracing. \
                           Use a struct with an integer tensor for the choice, and `switch` or `select` on it";
            return Err(Error::new(input.ident.span(), message));
        }
        Data::Union(_) => return Err(Error::new(input.ident.span(), "a union is not a tree")),
    };
    let mut errors: Option<Error> = None;
    let mut fail = |error: Error| match &mut errors {
        Some(errors) => errors.combine(error),
        None => errors = Some(error),
    };
    let mut parts = Vec::new();
    for (i, field) in fields.iter().enumerate() {
        let member = match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => Member::Unnamed(Index { index: i as u32, span: field.span() }),
        };
        let fixed = match is_fixed(field) {
            Ok(fixed) => fixed,
            Err(error) => {
                fail(error);
                continue;
            }
        };
        if !fixed && let Some(problem) = plain(&field.ty) {
            let name = field.ident.as_ref().map_or_else(|| i.to_string(), ToString::to_string);
            let advice = match &field.ty {
                Type::Reference(_) => "a tree owns what it holds, and a `Tensor` is `Copy`",
                _ => "mark it `#[tree(fixed)]` if it is known while tracing, or make it a `Tensor`",
            };
            let message = format!("`{name}` is {problem}, not a tensor: {advice}");
            fail(Error::new(field.ty.span(), message));
        }
        parts.push(Part { member, ty: field.ty.clone(), fixed, field: field.clone() });
    }
    match errors {
        Some(error) => Err(error),
        None => Ok(parts),
    }
}

/// Whether the struct's fields have names.
pub fn is_named(input: &DeriveInput) -> bool {
    matches!(&input.data, Data::Struct(data) if matches!(data.fields, Fields::Named(_)))
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
