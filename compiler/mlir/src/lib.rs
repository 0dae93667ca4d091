//! The melior emitter.
