//! PJRT, typed device buffers, Anakin.
