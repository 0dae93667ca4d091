//! The IR and all its operations: ops with all their rules, transforms from function to function,
//! and the lowering to StableHLO text through the trait [`Hlo`]. It knows no device and does no
//! I/O.
//!
//! # Invariants
//! - Shapes are static. Every value has one type, found by its op's `infer`.
//! - Region ops (`scan`, `while`, `cond`, `call`) own their bodies and take everything the bodies read as operands.
//! - Everything is pure except collectives. Random numbers are functions of keys.
//! - Transforms match on rules, never on op names; an op is known only to its own file and to the registry.
//! - Nothing here reads a clock or iterates a hash map: the same program gives the same bytes in every process.
#![forbid(unsafe_code)]

pub mod array;
pub mod attributes;
pub mod ir;
pub mod lower;
pub mod ops;
pub mod scalar;
pub mod simplify;
pub mod stablehlo;
pub mod text;
pub mod transform;
pub mod types;

pub use array::{Array, ArrayError};
pub use attributes::{Attribute, Attributes};
pub use ir::{Builder, Eqn, Func, Loc, NotFinite, Source, Values, Var, Vars, Watched, Watcher};
pub use lower::{Hlo, HloAttribute, HloOp, HloRegion, HloValue};
pub use ops::{Effect, Op, OpRef, Operand, Rule, Sample, TypeError};
pub use scalar::{Element, Scalar};
pub use simplify::simplify;
pub use types::{DType, Extents, TensorType};
