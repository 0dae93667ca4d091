//! Names from other libraries: calling such a name is an error that names the method of this
//! library.
//!
//! Each method requires a trait of its receiver that nothing implements, and rustc prints the
//! message of that trait.

use super::Tensor;

macro_rules! hints {
    ($($name:ident($($argument:ident: $generic:ident),*), $bound:ident: $advice:literal;)*) => {
        $(
            #[doc(hidden)]
            #[diagnostic::on_unimplemented(
                message = $advice,
                label = "not a method of `Tensor`"
            )]
            pub trait $bound {}
        )*

        #[doc(hidden)]
        pub trait NamesOfOthers: Sized {
            $(
                fn $name<$($generic),*>(self, $($argument: $generic),*) -> Tensor
                where
                    Self: $bound,
                {
                    $(let _ = $argument;)*
                    unreachable!("nothing implements the bound")
                }
            )*
        }
    };
}

hints! {
    ln(), Log: "the natural logarithm of a tensor is `x.log()`";
    ln_1p(), Log1p: "the logarithm of 1 + x is `x.log1p()`";
    exp_m1(), Expm1: "the exponential of a tensor minus 1 is `x.expm1()`";
    powf(exponent: A), Pow: "the power of a tensor is `x.pow(exponent)`";
    recip(), Reciprocal: "the reciprocal of a tensor is `x.reciprocal()`";
    clip(low: A, high: B), Clamp: "a tensor is limited to a range by `x.clamp(low, high)`";
    unsqueeze(axis: A), ExpandDims: "an axis of extent 1 is added by `x.expand_dims(axis)`";
}

impl NamesOfOthers for Tensor {}
