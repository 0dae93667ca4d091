//! The IR and everything that is done to it.
