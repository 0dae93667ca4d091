//! Where PJRT plugins come from.
