//! Element types under short names: `zeros(I32, [])`.

use podracer_compiler::DType;

macro_rules! dtypes {
    ($($name:ident = $dtype:ident),*) => {$(
        #[doc = concat!("The element type ", stringify!($dtype), ".")]
        pub const $name: DType = DType::$dtype;
    )*};
}

dtypes! {
    BOOL = Bool, I8 = I8, I16 = I16, I32 = I32, I64 = I64, U8 = U8, U16 = U16, U32 = U32, U64 = U64, F16 = F16, BF16 = BF16, F32 = F32, F64 = F64
}
