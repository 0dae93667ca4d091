//! Declares ops: `op_struct!` makes a struct of fields, and derives the op's identity from the
//! fields.

use super::op::OpRef;
use crate::attributes::Attributes;
use crate::ir::Func;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The part of an op that [`op_struct!`](crate::op_struct) generates from its fields.
pub trait OpStruct: Any + fmt::Debug + Send + Sync {
    /// The name in the IR's text: StableHLO's name if there is one.
    fn mnemonic(&self) -> &'static str;

    /// The attributes in printing order. Together with the mnemonic they identify the op.
    fn attributes(&self) -> Attributes;

    /// The bodies among the attributes, in order.
    fn funcs(&self) -> Vec<&Arc<Func>> {
        Vec::new()
    }

    /// The op with other bodies of the same types, in the order of [`Self::funcs`]; `None` if it has no bodies.
    fn with_funcs(&self, funcs: Vec<Arc<Func>>) -> Option<OpRef> {
        let _ = funcs;
        None
    }
}

/// Declares an op as a struct, with each field an attribute of the same name. It derives the op's
/// name, the conversion to and from attributes, and its bodies. `Name = "mnemonic" { fields }`, or
/// `Name<K: Kind> { fields }` for a family of ops that differ by `K`, which has the `MNEMONIC`.
#[macro_export]
macro_rules! op_struct {
    (@rules [$($generics:tt)*] $op:ty, $mnemonic:expr, [$($rest:tt)*] $($field:ident),*) => {
        // An op that is not in the registry is never parsed.
        #[allow(dead_code)]
        impl<$($generics)*> $op {
            /// The name in the IR's text.
            pub const MNEMONIC: &'static str = $mnemonic;
            /// The names of the attributes, in printing order.
            pub const ATTRIBUTES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// The op from its attributes, or an error that names the missing or wrong attribute.
            pub fn parse(attributes: &$crate::Attributes) -> Result<Self, String> {
                let _ = attributes;
                Ok(Self { $($field: attributes.parse(stringify!($field))?,)* $($rest)* })
            }
        }

        impl<$($generics)*> $crate::ops::OpStruct for $op {
            fn mnemonic(&self) -> &'static str {
                Self::MNEMONIC
            }
            fn attributes(&self) -> $crate::Attributes {
                $crate::Attributes(vec![
                    $((stringify!($field), $crate::attributes::AttributeValue::to_attribute(&self.$field))),*
                ])
            }
            fn funcs(&self) -> Vec<&std::sync::Arc<$crate::Func>> {
                let bodies: &[&[std::sync::Arc<$crate::Func>]] =
                    &[$($crate::attributes::AttributeValue::funcs(&self.$field)),*];
                bodies.iter().copied().flatten().collect()
            }
            fn with_funcs(&self, funcs: Vec<std::sync::Arc<$crate::Func>>) -> Option<$crate::OpRef> {
                if self.funcs().is_empty() {
                    return None;
                }
                let mut funcs = funcs.into_iter();
                let _ = &mut funcs;
                Some($crate::OpRef::new(Self {
                    $($field: $crate::attributes::AttributeValue::with_funcs(&self.$field, &mut funcs),)* $($rest)*
                }))
            }
        }
    };
    ($(#[$meta:meta])* $name:ident = $mnemonic:literal { $($(#[$doc:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name { $($(#[$doc])* pub $field: $type),* }

        $crate::op_struct! { @rules [] $name, $mnemonic, [] $($field),* }
    };
    ($(#[$meta:meta])* $name:ident<$kind:ident: $bound:path> { $($(#[$doc:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name<$kind> { $($(#[$doc])* pub $field: $type,)* kind: std::marker::PhantomData<$kind> }

        $crate::op_struct! {
            @rules [$kind: $bound] $name<$kind>, $kind::MNEMONIC, [kind: std::marker::PhantomData] $($field),*
        }
    };
}
