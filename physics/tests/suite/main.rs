//! Compiled models, compared with MuJoCo's field by field, and texts that are no models.

mod compare;
mod faults;
mod golden;
mod gradient;
mod mutations;
mod packages;
mod robots;
mod step;
