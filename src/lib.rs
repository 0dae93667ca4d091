//! podracer.
