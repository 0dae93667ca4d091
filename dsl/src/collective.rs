//! Collectives: values combined over a named axis, of a `vmap` or of the replicas of the program.


/// The axis of the replicas: the devices that run the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas;

/// Names an axis: [`Replicas`], or the name given to [`vmap_named`](crate::vmap_named).
pub trait AxisName {
    /// The name in the IR.
    fn axis_name(&self) -> String;
}

impl AxisName for Replicas {
    fn axis_name(&self) -> String {
        "replicas".to_string()
    }
}

impl AxisName for &str {
    fn axis_name(&self) -> String {
        (*self).to_string()
    }
}
