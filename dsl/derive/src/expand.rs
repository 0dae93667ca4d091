//! Writing the impls.

use crate::fields::{Part, is_named, parts};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use std::collections::BTreeSet;
use syn::visit::Visit;
use syn::{DeriveInput, Generics, Ident, Result, Type, WherePredicate, parse_quote};

/// All that the derive writes.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let parts = parts(input)?;
    let of = of_struct(input, &parts);
    let tree = tree_impl(input, &parts);
    Ok(at_home(quote! { #of #tree }))
}

/// The code with the crate `podracer_dsl` named as the user's crate knows it: as `podracer::dsl` where the manifest
/// mentions only the facade.
fn at_home(code: TokenStream) -> TokenStream {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map(|folder| std::path::Path::new(&folder).join("Cargo.toml"));
    let manifest = manifest.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let facade_only = manifest.contains("podracer") && !manifest.contains("podracer-dsl");
    if facade_only { through_facade(code) } else { code }
}

fn through_facade(code: TokenStream) -> TokenStream {
    use proc_macro2::{Group, TokenTree};
    let mut result = TokenStream::new();
    for token in code {
        match token {
            TokenTree::Ident(ident) if ident == "podracer_dsl" => {
                result.extend(quote!(podracer::dsl))
            }
            TokenTree::Group(group) => result.extend([TokenTree::Group(Group::new(
                group.delimiter(),
                through_facade(group.stream()),
            ))]),
            other => result.extend([other]),
        }
    }
    result
}

/// The name of the form in a kind.
fn of_name(input: &DeriveInput) -> Ident {
    format_ident!("{}Of", input.ident)
}

/// The type parameter that stands for the kind; named so that it hides none of the user's.
fn kind() -> Ident {
    format_ident!("__Kind")
}

/// Finds whether a type mentions one of some parameters.
struct Mentions<'a> {
    parameters: &'a BTreeSet<String>,
    found: bool,
}

impl Visit<'_> for Mentions<'_> {
    fn visit_ident(&mut self, ident: &Ident) {
        self.found |= self.parameters.contains(&ident.to_string());
    }
}

fn mentions(ty: &Type, parameters: &BTreeSet<String>) -> bool {
    let mut visitor = Mentions { parameters, found: false };
    visitor.visit_type(ty);
    visitor.found
}

/// The user's where-clause, with a bound on each field type that mentions a parameter.
fn bounds(input: &DeriveInput, parts: &[Part]) -> Vec<WherePredicate> {
    let parameters: BTreeSet<String> =
        input.generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
    let mut predicates: Vec<WherePredicate> = input
        .generics
        .where_clause
        .iter()
        .flat_map(|clause| clause.predicates.iter().cloned())
        .collect();
    for part in parts.iter().filter(|part| mentions(&part.ty, &parameters)) {
        let ty = &part.ty;
        predicates.push(if part.fixed {
            parse_quote!(#ty: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static)
        } else {
            parse_quote!(#ty: ::podracer_dsl::tree::Tree)
        });
    }
    predicates
}

/// `struct StateOf<K: Kind> { .. }`.
fn of_struct(input: &DeriveInput, parts: &[Part]) -> TokenStream {
    let (name, of, kind, visibility) = (&input.ident, of_name(input), kind(), &input.vis);
    let mut generics = with_kind(&input.generics);
    let predicates = bounds(input, parts);
    generics.make_where_clause().predicates = predicates.into_iter().collect();
    // Defaults of parameters would have to stand before the kind, which has none.
    generics.type_params_mut().for_each(|parameter| {
        parameter.eq_token = None;
        parameter.default = None;
    });
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let docs = format!("[`{name}`] with its leaves in the kind `{kind}`.");
    let fields = parts.iter().map(|part| {
        let (ty, field_visibility) = (&part.ty, &part.field.vis);
        let doc = part.field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        let view = if part.fixed {
            quote!(#ty)
        } else {
            quote!(<#kind as ::podracer_dsl::tree::Kind>::View<#ty>)
        };
        match &part.field.ident {
            Some(ident) => quote! { #(#doc)* #field_visibility #ident: #view },
            None => quote! { #(#doc)* #field_visibility #view },
        }
    });
    let unused = parts.iter().all(|part| part.fixed);
    let marker = quote!(::core::marker::PhantomData<fn() -> #kind>);
    if is_named(input) {
        let marker = unused.then(|| quote!(#[doc(hidden)] #visibility __kind: #marker));
        quote! {
            #[doc = #docs]
            #[allow(missing_docs)]
            #visibility struct #of #impl_generics #where_clause { #(#fields,)* #marker }
        }
    } else {
        let marker = unused.then(|| quote!(#[doc(hidden)] #visibility #marker));
        quote! {
            #[doc = #docs]
            #[allow(missing_docs)]
            #visibility struct #of #impl_generics ( #(#fields,)* #marker ) #where_clause;
        }
    }
}

/// The user's generics with the kind before the type parameters.
fn with_kind(generics: &Generics) -> Generics {
    let kind = kind();
    let mut generics = generics.clone();
    let after_lifetimes = generics.lifetimes().count();
    generics.params.insert(after_lifetimes, parse_quote!(#kind: ::podracer_dsl::tree::Kind));
    generics
}

fn tree_impl(input: &DeriveInput, parts: &[Part]) -> TokenStream {
    let (name, of) = (&input.ident, of_name(input));
    let (impl_generics, type_generics, _) = input.generics.split_for_impl();
    let mut predicates = bounds(input, parts);
    // `Tree` asks for `Clone + Send + Sync + 'static`, which for a generic struct hangs on its parameters.
    if input.generics.params.iter().next().is_some() {
        predicates.push(parse_quote!(Self: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static));
    }
    let where_clause = (!predicates.is_empty()).then(|| quote!(where #(#predicates),*));
    let with_kind = with_kind(&input.generics);
    let (_, of_generics, _) = with_kind.split_for_impl();
    // The generics of the form name the kind `__Kind`; inside the impl kinds are called J and K.
    let of_type = |kind: &str| {
        let (kind, own) = (format_ident!("{kind}"), self::kind());
        quote!(#of #of_generics)
            .into_iter()
            .map(|token| replace(token, &own, &kind))
            .collect::<TokenStream>()
    };
    let unused = parts.iter().all(|part| part.fixed);
    let construct = |target: TokenStream, values: Vec<TokenStream>, marker: bool| {
        let members = parts.iter().map(|part| &part.member);
        if is_named(input) {
            let marker = marker.then(|| quote!(__kind: ::core::marker::PhantomData));
            quote!(#target { #(#members: #values,)* #marker })
        } else {
            let last = parts.len();
            let index = syn::Index::from(last);
            let marker = marker.then(|| quote!(#index: ::core::marker::PhantomData));
            quote!(#target { #(#members: #values,)* #marker })
        }
    };
    let each = |tree: &dyn Fn(&Part) -> TokenStream,
                fixed: &dyn Fn(&Part) -> TokenStream|
     -> Vec<TokenStream> {
        parts.iter().map(|part| if part.fixed { fixed(part) } else { tree(part) }).collect()
    };
    let clone_from = |source: TokenStream| {
        move |part: &Part| {
            let member = &part.member;
            quote!(::core::clone::Clone::clone(&#source.#member))
        }
    };
    let of_self = clone_from(quote!(self));
    let of_form = clone_from(quote!(__of));
    let tree = quote!(::podracer_dsl::tree::Tree);
    let kind_trait = quote!(::podracer_dsl::tree::Kind);
    let step = |part: &Part| match &part.member {
        syn::Member::Named(ident) => {
            // A raw identifier is called by its plain name.
            let text = ident.to_string();
            let text = text.trim_start_matches("r#").to_string();
            quote!(::podracer_dsl::tree::Step::Field(#text))
        }
        syn::Member::Unnamed(index) => {
            let index = index.index as usize;
            quote!(::podracer_dsl::tree::Step::Position(#index))
        }
    };

    let visit = parts.iter().filter(|part| !part.fixed).map(|part| {
        let (member, ty, step) = (&part.member, &part.ty, step(part));
        quote!(__path.within(#step, |__path| <#ty as #tree>::visit(&self.#member, __path, __f));)
    });
    let map = construct(
        quote!(Self),
        each(
            &|part| {
                let (member, ty) = (&part.member, &part.ty);
                quote!(<#ty as #tree>::map(&self.#member, __f))
            },
            &of_self,
        ),
        false,
    );
    let choices = parts.iter().filter(|part| !part.fixed).map(|part| {
        let (member, ty, step) = (&part.member, &part.ty, step(part));
        quote!(__path.within(#step, |__path| <#ty as #tree>::choices(&self.#member, __path, __f));)
    });
    let to_kind = construct(
        quote!(#of),
        each(
            &|part| {
                let (member, ty) = (&part.member, &part.ty);
                quote!(<__K as #kind_trait>::wrap::<#ty>(<#ty as #tree>::to_kind::<__K>(&self.#member, __f)))
            },
            &of_self,
        ),
        unused,
    );
    let from_kind = construct(
        quote!(Self),
        each(
            &|part| {
                let (member, ty) = (&part.member, &part.ty);
                quote!(<#ty as #tree>::from_kind::<__K>(<__K as #kind_trait>::peek::<#ty>(&__of.#member), __f))
            },
            &of_form,
        ),
        false,
    );
    let convert = construct(
        quote!(#of),
        each(
            &|part| {
                let (member, ty) = (&part.member, &part.ty);
                quote!(<__K as #kind_trait>::wrap::<#ty>(<#ty as #tree>::convert::<__J, __K>(<__J as #kind_trait>::peek::<#ty>(&__of.#member), __f)))
            },
            &of_form,
        ),
        unused,
    );
    let visit_kind = parts.iter().filter(|part| !part.fixed).map(|part| {
        let (member, ty, step) = (&part.member, &part.ty, step(part));
        quote!(__path.within(#step, |__path| <#ty as #tree>::visit_kind::<__K>(<__K as #kind_trait>::peek::<#ty>(&__of.#member), __path, __f));)
    });
    let into_leaves = parts.iter().filter(|part| !part.fixed).map(|part| {
        let (member, ty) = (&part.member, &part.ty);
        quote!(<#ty as #tree>::into_leaves::<__K>(<__K as #kind_trait>::unwrap::<#ty>(__of.#member), __leaves);)
    });
    let (of_k, of_j) = (of_type("__K"), of_type("__J"));
    let tensor = quote!(::podracer_dsl::Tensor);
    let path = quote!(::podracer_dsl::tree::Path);

    quote! {
        #[automatically_derived]
        #[allow(unused_variables, clippy::all)]
        impl #impl_generics #tree for #name #type_generics #where_clause {
            type Of<__K: #kind_trait> = #of_k;

            fn visit(&self, __path: &mut #path, __f: &mut dyn FnMut(&#path, #tensor)) {
                #(#visit)*
            }
            fn map(&self, __f: &mut dyn FnMut(#tensor) -> #tensor) -> Self {
                #map
            }
            fn choices(&self, __path: &mut #path, __f: &mut dyn FnMut(&#path, ::podracer_dsl::tree::Choice)) {
                #(#choices)*
            }
            fn to_kind<__K: #kind_trait>(&self, __f: &mut dyn FnMut(#tensor) -> __K::Leaf) -> #of_k {
                #to_kind
            }
            fn from_kind<__K: #kind_trait>(__of: &#of_k, __f: &mut dyn FnMut(&__K::Leaf) -> #tensor) -> Self {
                #from_kind
            }
            fn convert<__J: #kind_trait, __K: #kind_trait>(__of: &#of_j, __f: &mut dyn FnMut(&__J::Leaf) -> __K::Leaf) -> #of_k {
                #convert
            }
            fn visit_kind<'__a, __K: #kind_trait>(__of: &'__a #of_k, __path: &mut #path, __f: &mut dyn FnMut(&#path, &'__a __K::Leaf)) {
                #(#visit_kind)*
            }
            fn into_leaves<__K: #kind_trait>(__of: #of_k, __leaves: &mut ::std::vec::Vec<__K::Leaf>) {
                #(#into_leaves)*
            }
        }

        #[automatically_derived]
        impl #impl_generics ::podracer_dsl::tree::Over for #name #type_generics #where_clause {
            type Item = Self;
            fn sources(&self, __sources: &mut ::podracer_dsl::tree::Sources) {
                ::podracer_dsl::tree::tree_sources(self, __sources);
            }
            fn item(self, __items: &mut ::podracer_dsl::tree::Items<'_>) -> Self {
                ::podracer_dsl::tree::tree_item(&self, __items)
            }
        }

        #[automatically_derived]
        impl #impl_generics ::podracer_dsl::tree::IntoTree for #name #type_generics #where_clause {
            type Tree = Self;
            fn into_tree(self) -> Self {
                self
            }
        }
    }
}

/// A token with one identifier replaced by another, groups included.
fn replace(token: proc_macro2::TokenTree, from: &Ident, to: &Ident) -> proc_macro2::TokenTree {
    use proc_macro2::{Group, TokenTree};
    match token {
        TokenTree::Ident(ident) if ident == *from => TokenTree::Ident(to.clone()),
        TokenTree::Group(group) => {
            let inner = group.stream().into_iter().map(|token| replace(token, from, to)).collect();
            TokenTree::Group(Group::new(group.delimiter(), inner))
        }
        other => other,
    }
}
