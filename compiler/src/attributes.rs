//! The attributes of an op as ordered name-value pairs: one form for printing, parsing, equality and
//! hashing.

use crate::array::Array;
use crate::ir::Func;
use crate::types::DType;
use std::sync::Arc;

/// The value of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// A flag: `true` or `false`.
    Bool(bool),
    /// An integer; negative integers are allowed.
    Int(i64),
    /// A list of integers: axes, permutations, sizes.
    Ints(Vec<i64>),
    /// An element type.
    DType(DType),
    /// A word out of a fixed set, such as a comparison's direction.
    Word(String),
    /// A constant's value, with its type.
    Array(Arc<Array>),
    /// A function that a region op runs.
    Func(Arc<Func>),
    /// Several functions of a region op.
    Funcs(Vec<Arc<Func>>),
}

/// The attributes of an op in printing order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub Vec<(&'static str, Attribute)>);

impl Attributes {
    /// The attributes of an op without attributes.
    pub fn none() -> Self {
        Attributes::default()
    }

    /// Adds an attribute at the end.
    pub fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// The value of the attribute with this name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The value of the attribute with this name, or an error that names it.
    pub fn parse<T: AttributeValue>(&self, name: &str) -> Result<T, String> {
        let attribute = self.get(name).ok_or_else(|| format!("attribute `{name}` is missing"))?;
        T::from_attribute(attribute)
            .ok_or_else(|| format!("attribute `{name}` must be {}", T::expected()))
    }

    /// The bodies among the attributes, in order.
    pub fn funcs(&self) -> Vec<&Arc<Func>> {
        self.0.iter().flat_map(|(_, value)| value.funcs()).collect()
    }
}

impl Attribute {
    /// The bodies in this attribute.
    pub fn funcs(&self) -> &[Arc<Func>] {
        match self {
            Attribute::Func(func) => std::slice::from_ref(func),
            Attribute::Funcs(several) => several,
            _ => &[],
        }
    }
}

/// A Rust value that an op holds and that has a form as an attribute.
pub trait AttributeValue: Clone {
    /// The attribute that stands for this value.
    fn to_attribute(&self) -> Attribute;
    /// The value of the attribute, if it has the right kind.
    fn from_attribute(attribute: &Attribute) -> Option<Self>;
    /// A description of the right kind, for errors: `an integer`.
    fn expected() -> String;

    /// The bodies in the value.
    fn funcs(&self) -> &[Arc<Func>] {
        &[]
    }

    /// The value with other bodies. It takes as many bodies as it has from the front of `funcs`.
    fn with_funcs(&self, funcs: &mut std::vec::IntoIter<Arc<Func>>) -> Self {
        let _ = funcs;
        self.clone()
    }
}

macro_rules! attribute_value {
    ($type:ty, $variant:ident, $expected:literal, $self:ident => $to:expr, $value:ident => $from:expr $(; $($bodies:tt)*)?) => {
        impl AttributeValue for $type {
            fn to_attribute(&$self) -> Attribute {
                Attribute::$variant($to)
            }
            fn from_attribute(attribute: &Attribute) -> Option<Self> {
                match attribute {
                    Attribute::$variant($value) => $from,
                    _ => None,
                }
            }
            fn expected() -> String {
                $expected.to_string()
            }
            $($($bodies)*)?
        }
        impl From<$type> for Attribute {
            fn from(value: $type) -> Attribute {
                value.to_attribute()
            }
        }
    };
}

attribute_value!(bool, Bool, "true or false", self => *self, value => Some(*value));
attribute_value!(i64, Int, "an integer", self => *self, value => Some(*value));
attribute_value!(
    usize, Int, "an integer that is not negative",
    self => *self as i64,
    value => usize::try_from(*value).ok()
);
attribute_value!(
    Vec<i64>, Ints, "a list of integers",
    self => self.clone(),
    value => Some(value.clone())
);
attribute_value!(
    Vec<usize>, Ints, "a list of integers that are not negative",
    self => self.iter().map(|&x| x as i64).collect(),
    value => value.iter().map(|&x| usize::try_from(x).ok()).collect()
);
attribute_value!(DType, DType, "an element type", self => *self, value => Some(*value));
attribute_value!(String, Word, "a word", self => self.clone(), value => Some(value.clone()));
attribute_value!(
    Arc<Array>, Array, "an array, such as f32[2](1.5, -0.0)",
    self => self.clone(),
    value => Some(value.clone())
);
attribute_value!(
    Arc<Func>, Func, "a function",
    self => self.clone(),
    value => Some(value.clone());
    fn funcs(&self) -> &[Arc<Func>] {
        std::slice::from_ref(self)
    }
    fn with_funcs(&self, funcs: &mut std::vec::IntoIter<Arc<Func>>) -> Self {
        funcs.next().expect("a body for each that the op has")
    }
);
attribute_value!(
    Vec<Arc<Func>>, Funcs, "a list of functions in braces",
    self => self.clone(),
    value => Some(value.clone());
    fn funcs(&self) -> &[Arc<Func>] {
        self
    }
    fn with_funcs(&self, funcs: &mut std::vec::IntoIter<Arc<Func>>) -> Self {
        funcs.take(self.len()).collect()
    }
);

/// Declares a fieldless enum with a word in the IR's text for each variant.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word of this value.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl $crate::attributes::AttributeValue for $name {
            fn to_attribute(&self) -> $crate::Attribute {
                $crate::Attribute::Word(self.word().to_string())
            }
            fn from_attribute(attribute: &$crate::Attribute) -> Option<Self> {
                match attribute {
                    $crate::Attribute::Word(word) => $name::ALL.iter().copied().find(|value| value.word() == word),
                    _ => None,
                }
            }
            fn expected() -> String {
                let words: Vec<&str> = $name::ALL.iter().map(|value| value.word()).collect();
                format!("one of {}", words.join(", "))
            }
        }
    };
}
