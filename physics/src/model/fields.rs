//! Fields of a struct by name, as flat numbers.

use super::types::{EqualityType, GeomType, JointType, ObjectType, TransmissionType, WrapType};

/// A value as numbers: arrays in row-major order, booleans as 0 and 1, `None` as -1.
pub(crate) trait Flat {
    /// Appends the numbers.
    fn flat(&self, to: &mut Vec<f64>);
}

impl Flat for f64 {
    fn flat(&self, to: &mut Vec<f64>) {
        to.push(*self);
    }
}

impl Flat for i32 {
    fn flat(&self, to: &mut Vec<f64>) {
        to.push(f64::from(*self));
    }
}

impl Flat for usize {
    fn flat(&self, to: &mut Vec<f64>) {
        to.push(*self as f64);
    }
}

impl Flat for bool {
    fn flat(&self, to: &mut Vec<f64>) {
        to.push(f64::from(u8::from(*self)));
    }
}

impl<T: Flat> Flat for Option<T> {
    fn flat(&self, to: &mut Vec<f64>) {
        match self {
            Some(value) => value.flat(to),
            None => to.push(-1.0),
        }
    }
}

impl<T: Flat, const N: usize> Flat for [T; N] {
    fn flat(&self, to: &mut Vec<f64>) {
        self.iter().for_each(|value| value.flat(to));
    }
}

impl<T: Flat> Flat for Vec<T> {
    fn flat(&self, to: &mut Vec<f64>) {
        self.iter().for_each(|value| value.flat(to));
    }
}

macro_rules! flat_enums {
    ($($name:ty),*) => {$(
        impl Flat for $name {
            fn flat(&self, to: &mut Vec<f64>) {
                to.push(f64::from(*self as i32));
            }
        }
    )*};
}

flat_enums!(EqualityType, GeomType, JointType, ObjectType, TransmissionType, WrapType);

/// A struct of fields that MuJoCo has, too.
macro_rules! with_fields {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $name:ident: $kind:ty,)* }
     $({ $($(#[$more_doc:meta])* $more:ident: $more_kind:ty,)* })?) => {
        $(#[$about])*
        pub struct $type {
            $($(#[$doc])* pub $name: $kind,)*
            $($($(#[$more_doc])* pub $more: $more_kind,)*)?
        }

        impl $type {
            /// Names and values of the fields that MuJoCo's struct of this name has, too. Arrays are flat, in
            /// row-major order; booleans are 0 and 1; `None` is -1.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, Vec<f64>)> {
                vec![$((stringify!($name), {
                    let mut flat = Vec::new();
                    $crate::model::fields::Flat::flat(&self.$name, &mut flat);
                    flat
                }),)*]
            }
        }
    };
}

pub(crate) use with_fields;
