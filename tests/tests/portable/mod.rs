//! Programs that come from elsewhere, and that go there.

mod exported;
mod jax;
