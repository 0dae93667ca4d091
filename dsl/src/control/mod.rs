//! Combinators: arguments first, closure last. A closure runs once, while tracing; it captures outer tensors freely.

mod associative;
pub(crate) mod body;
mod branch;
mod call;
mod looping;
mod scan;
mod vectorize;

pub use associative::{associative_scan, associative_scan_reverse};
pub use branch::{Batching, Predicate, UnderVmap, cond, if_launched, switch};
pub use call::{fence, kernel, subroutine, tile};
pub use looping::{fori_loop, while_loop};
pub use scan::{map, map_batched, scan, scan_reverse};
pub(crate) use vectorize::vmap_func;
pub use vectorize::{any_example, vmap, vmap_named};
