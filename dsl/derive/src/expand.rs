//! The impls that the derive writes.

use crate::fields::{Form, Part, Variant, variants};
use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use std::collections::BTreeSet;
use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{
    Attribute, Data, DeriveInput, Generics, Ident, Result, Type, WherePredicate, parse_quote,
};

/// The impls for one type, and its form in a kind.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let derive = Derive::new(input)?;
    let of = derive.form();
    let tree = derive.tree_impl();
    Ok(at_home(quote! { #of #tree }))
}

/// The code with the crate `podracer_dsl` under the name that it has in the user's crate. A crate that depends only on the
/// facade `podracer` finds it as the facade's module `dsl`. Dependencies may be renamed.
fn at_home(code: TokenStream) -> TokenStream {
    if let Ok(found) = crate_name("podracer-dsl") {
        return match found {
            FoundCrate::Itself => code,
            FoundCrate::Name(name) => renamed(code, &path_of(&name, false)),
        };
    }
    match crate_name("podracer") {
        Ok(FoundCrate::Itself) => renamed(code, &path_of("podracer", true)),
        Ok(FoundCrate::Name(name)) => renamed(code, &path_of(&name, true)),
        // rustc then says that `podracer_dsl` is missing.
        Err(_) => code,
    }
}

/// The path, after `::`, of a crate or of its module `dsl`.
fn path_of(name: &str, facade: bool) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    if facade { quote!(#name::dsl) } else { quote!(#name) }
}

fn renamed(code: TokenStream, home: &TokenStream) -> TokenStream {
    let mut result = TokenStream::new();
    for token in code {
        match token {
            TokenTree::Ident(ident) if ident == "podracer_dsl" => result.extend(home.clone()),
            TokenTree::Group(group) => {
                let inner = renamed(group.stream(), home);
                result.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
            }
            other => result.extend([other]),
        }
    }
    result
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
fn bounds(input: &DeriveInput, variants: &[Variant]) -> Vec<WherePredicate> {
    let parameters: BTreeSet<String> =
        input.generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
    let mut predicates: Vec<WherePredicate> = input
        .generics
        .where_clause
        .iter()
        .flat_map(|clause| clause.predicates.iter().cloned())
        .collect();
    let parts = variants.iter().flat_map(|variant| &variant.parts);
    for part in parts.filter(|part| mentions(&part.ty, &parameters)) {
        let ty = &part.ty;
        predicates.push(if part.fixed {
            parse_quote!(#ty: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static)
        } else {
            parse_quote!(#ty: ::podracer_dsl::tree::Tree)
        });
    }
    predicates
}

/// The user's type: a struct, which has one variant without a name, or an enum.
struct Derive<'a> {
    input: &'a DeriveInput,
    variants: Vec<Variant>,
    bounds: Vec<WherePredicate>,
    /// True if no field is a tree: nothing in the form would mention the kind.
    kindless: bool,
}

impl<'a> Derive<'a> {
    fn new(input: &'a DeriveInput) -> Result<Self> {
        let variants = variants(input)?;
        let bounds = bounds(input, &variants);
        let kindless = variants.iter().flat_map(|variant| &variant.parts).all(|part| part.fixed);
        Ok(Derive { input, variants, bounds, kindless })
    }

    fn is_enum(&self) -> bool {
        matches!(self.input.data, Data::Enum(_))
    }

    /// The name of the form in a kind. An enum without trees in it is the same in every kind: it is its own form.
    fn form_name(&self) -> Ident {
        match self.is_enum() && self.kindless {
            true => format_ident!("Self"),
            false => format_ident!("{}Of", self.input.ident),
        }
    }

    /// The form's type in the kind of this name.
    fn form_type(&self, kind: &str) -> TokenStream {
        let name = self.form_name();
        let generics = with_kind(&self.input.generics, &format_ident!("{kind}"));
        let (_, generics, _) = generics.split_for_impl();
        if name == "Self" { quote!(#name) } else { quote!(#name #generics) }
    }

    /// `struct StateOf<K: Kind> { .. }` or `enum StateOf<K: Kind> { .. }`.
    fn form(&self) -> TokenStream {
        if self.form_name() == "Self" {
            return TokenStream::new();
        }
        let (name, of, visibility) = (&self.input.ident, self.form_name(), &self.input.vis);
        // Named so that it hides none of the user's parameters.
        let kind = format_ident!("__Kind");
        let mut generics = with_kind(&self.input.generics, &kind);
        generics.make_where_clause().predicates = self.bounds.iter().cloned().collect();
        // Defaults of parameters would have to stand before the kind, which has none.
        generics.type_params_mut().for_each(|parameter| {
            parameter.default = None;
        });
        let (impl_generics, _, where_clause) = generics.split_for_impl();
        let docs = format!("[`{name}`] with its leaves in the kind `{kind}`.");
        let head = quote! {
            #[doc = #docs]
            #[allow(missing_docs, clippy::large_enum_variant)]
            #visibility
        };
        if self.is_enum() {
            let variants = self.variants.iter().map(|variant| {
                let (fields, ident) =
                    (variant.parts.iter().map(|part| field(part, &kind)), &variant.ident);
                let docs = docs_of(&variant.attrs);
                let fields = match variant.form {
                    Form::Named => quote!({ #(#fields),* }),
                    Form::Tuple => quote!(( #(#fields),* )),
                    Form::Unit => quote!(),
                };
                quote!(#(#docs)* #ident #fields)
            });
            return quote!(#head enum #of #impl_generics #where_clause { #(#variants),* });
        }
        let fields = self.variants[0].parts.iter().map(|part| field(part, &kind));
        let marker = quote!(::core::marker::PhantomData<fn() -> #kind>);
        let marker = |name| self.kindless.then(|| quote!(#[doc(hidden)] #visibility #name #marker));
        match self.variants[0].form {
            Form::Named => {
                let marker = marker(quote!(__kind:));
                quote!(#head struct #of #impl_generics #where_clause { #(#fields,)* #marker })
            }
            Form::Tuple | Form::Unit => {
                let marker = marker(quote!());
                quote!(#head struct #of #impl_generics ( #(#fields,)* #marker ) #where_clause;)
            }
        }
    }

    /// Makes one `match` arm for each variant. The arm takes a value of the type `from` apart, and
    /// evaluates `body`.
    fn arms(&self, from: &Ident, body: impl Fn(&Variant) -> TokenStream) -> TokenStream {
        let arms = self.variants.iter().map(|variant| {
            let (path, body) = (variant.path(from), body(variant));
            let members = variant.parts.iter().map(|part| &part.member);
            let bindings = variant.parts.iter().map(|part| &part.binding);
            quote!(#path { #(#members: #bindings,)* .. } => { #body })
        });
        quote!(#(#arms)*)
    }

    /// Arms that run a statement for each field that is a tree.
    fn each(&self, from: &Ident, statement: impl Fn(&Part) -> TokenStream) -> TokenStream {
        self.arms(from, |variant| {
            variant.parts.iter().filter(|part| !part.fixed).map(&statement).collect()
        })
    }

    /// Arms that make a value of the type `to`: `tree` gives its fields that are trees, the others are cloned.
    fn rebuild(
        &self,
        from: &Ident,
        to: &Ident,
        tree: impl Fn(&Part) -> TokenStream,
    ) -> TokenStream {
        let marked = to != "Self" && self.kindless;
        self.arms(from, |variant| {
            let path = variant.path(to);
            let members = variant.parts.iter().map(|part| &part.member);
            let values = variant.parts.iter().map(|part| match (part.fixed, &part.binding) {
                (true, binding) => quote!(::core::clone::Clone::clone(#binding)),
                (false, _) => tree(part),
            });
            let member = match variant.form {
                Form::Named => quote!(__kind),
                Form::Tuple | Form::Unit => {
                    let index = syn::Index::from(variant.parts.len());
                    quote!(#index)
                }
            };
            let marker = marked.then(|| quote!(#member: ::core::marker::PhantomData));
            quote!(#path { #(#members: #values,)* #marker })
        })
    }

    fn tree_impl(&self) -> TokenStream {
        let name = &self.input.ident;
        let (impl_generics, type_generics, _) = self.input.generics.split_for_impl();
        let mut predicates = self.bounds.clone();
        // `Tree` requires `Clone + Send + Sync + 'static`. A generic type has these only if its
        // parameters do.
        if !self.input.generics.params.is_empty() {
            predicates.push(parse_quote!(Self: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static));
        }
        let where_clause = (!predicates.is_empty()).then(|| quote!(where #(#predicates),*));

        let tree = quote!(::podracer_dsl::tree::Tree);
        let kind = quote!(::podracer_dsl::tree::Kind);
        let path = quote!(::podracer_dsl::tree::Path);
        let choice = quote!(::podracer_dsl::tree::Choice);
        let tensor = quote!(::podracer_dsl::Tensor);
        let (own, of) = (format_ident!("Self"), self.form_name());
        let (of_k, of_j) = (self.form_type("__K"), self.form_type("__J"));

        let within = |part: &Part, call: TokenStream| {
            let step = part.step();
            quote!(__path.within(#step, |__path| #call);)
        };
        let visit = self.each(&own, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            within(part, quote!(<#ty as #tree>::visit(#x, __path, __f)))
        });
        let map = self.rebuild(&own, &own, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            quote!(<#ty as #tree>::map(#x, __f))
        });
        let choices = self.arms(&own, |variant| {
            let own = variant.ident.as_ref().map(|ident| {
                let name = ident.unraw().to_string();
                quote!(__f(__path, #choice::Variant(#name));)
            });
            let trees = variant.parts.iter().filter(|part| !part.fixed).map(|part| {
                let (x, ty) = (&part.binding, &part.ty);
                within(part, quote!(<#ty as #tree>::choices(#x, __path, __f)))
            });
            quote!(#own #(#trees)*)
        });
        let to_kind = self.rebuild(&own, &of, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            quote!(<__K as #kind>::wrap::<#ty>(<#ty as #tree>::to_kind::<__K>(#x, __f)))
        });
        let from_kind = self.rebuild(&of, &own, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            quote!(<#ty as #tree>::from_kind::<__K>(<__K as #kind>::peek::<#ty>(#x), __f))
        });
        let convert = self.rebuild(&of, &of, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            quote!(<__K as #kind>::wrap::<#ty>(<#ty as #tree>::convert::<__J, __K>(<__J as #kind>::peek::<#ty>(#x), __f)))
        });
        let visit_kind = self.each(&of, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            within(part, quote!(<#ty as #tree>::visit_kind::<__K>(<__K as #kind>::peek::<#ty>(#x), __path, __f)))
        });
        let into_leaves = self.each(&of, |part| {
            let (x, ty) = (&part.binding, &part.ty);
            quote!(<#ty as #tree>::into_leaves::<__K>(<__K as #kind>::unwrap::<#ty>(#x), __leaves);)
        });

        quote! {
            #[automatically_derived]
            #[allow(unused_variables, clippy::all)]
            impl #impl_generics #tree for #name #type_generics #where_clause {
                type Of<__K: #kind> = #of_k;

                fn visit(&self, __path: &mut #path, __f: &mut dyn FnMut(&#path, #tensor)) {
                    match self { #visit }
                }
                fn map(&self, __f: &mut dyn FnMut(#tensor) -> #tensor) -> Self {
                    match self { #map }
                }
                fn choices(&self, __path: &mut #path, __f: &mut dyn FnMut(&#path, #choice)) {
                    match self { #choices }
                }
                fn to_kind<__K: #kind>(&self, __f: &mut dyn FnMut(#tensor) -> __K::Leaf) -> #of_k {
                    match self { #to_kind }
                }
                fn from_kind<__K: #kind>(__of: &#of_k, __f: &mut dyn FnMut(&__K::Leaf) -> #tensor) -> Self {
                    match __of { #from_kind }
                }
                fn convert<__J: #kind, __K: #kind>(__of: &#of_j, __f: &mut dyn FnMut(&__J::Leaf) -> __K::Leaf) -> #of_k {
                    match __of { #convert }
                }
                fn visit_kind<'__a, __K: #kind>(__of: &'__a #of_k, __path: &mut #path, __f: &mut dyn FnMut(&#path, &'__a __K::Leaf)) {
                    match __of { #visit_kind }
                }
                fn into_leaves<__K: #kind>(__of: #of_k, __leaves: &mut ::std::vec::Vec<__K::Leaf>) {
                    match __of { #into_leaves }
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
}

/// The user's generics with the kind before the type parameters.
fn with_kind(generics: &Generics, kind: &Ident) -> Generics {
    let mut generics = generics.clone();
    let after_lifetimes = generics.lifetimes().count();
    generics.params.insert(after_lifetimes, parse_quote!(#kind: ::podracer_dsl::tree::Kind));
    generics
}

/// A field of the form in a kind: the view of a tree, with the user's documentation and visibility.
fn field(part: &Part, kind: &Ident) -> TokenStream {
    let (ty, visibility, docs) = (&part.ty, &part.field.vis, docs_of(&part.field.attrs));
    let name = part.field.ident.as_ref().map(|ident| quote!(#ident:));
    let view = match part.fixed {
        true => quote!(#ty),
        false => quote!(<#kind as ::podracer_dsl::tree::Kind>::View<#ty>),
    };
    quote!(#(#docs)* #visibility #name #view)
}

fn docs_of(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).collect()
}
