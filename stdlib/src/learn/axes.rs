//! The axes over which a learner's data is spread.

use podracer_dsl::collective::AxisName;
use podracer_dsl::prelude::*;

/// The axes over which a learner's data is spread: the replicas of the program, a named `vmap`,
/// several axes, or none. The loop gives the axes to the agent. So one definition learns on one
/// device, on many devices, and as an independent member of a population.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes(Vec<(String, usize)>);

impl Axes {
    /// No axis, for data that is not spread.
    pub fn none() -> Axes {
        Axes(Vec::new())
    }

    /// The axis of the devices that run the program; there are `members` devices.
    pub fn replicas(members: usize) -> Axes {
        Axes::none().and(Replicas, members)
    }

    /// These axes with an inner axis of `members` members added.
    pub fn and(mut self, axis: impl AxisName, members: usize) -> Axes {
        self.0.push((axis.axis_name().to_owned(), members));
        self
    }

    /// The mean over all members, leaf by leaf. The leaves are floats.
    #[track_caller]
    pub fn mean<T: Tree>(&self, tree: T) -> T {
        self.0.iter().fold(tree, |tree, (axis, _)| pmean(tree, &**axis))
    }

    /// The sum over all members, leaf by leaf.
    #[track_caller]
    pub fn sum<T: Tree>(&self, tree: T) -> T {
        self.0.iter().fold(tree, |tree, (axis, _)| psum(tree, &**axis))
    }

    /// True where a bool `[..]` is true on any member, element by element.
    #[track_caller]
    pub fn any(&self, flag: Tensor) -> Tensor {
        self.flags(flag, |flag, axis| pmax(flag, axis))
    }

    /// True where a bool `[..]` is true on all members, element by element.
    #[track_caller]
    pub fn all(&self, flag: Tensor) -> Tensor {
        self.flags(flag, |flag, axis| pmin(flag, axis))
    }

    #[track_caller]
    fn flags(&self, flag: Tensor, combine: impl Fn(Tensor, &str) -> Tensor) -> Tensor {
        let number = self.0.iter().fold(flag.astype(I32), |flag, (axis, _)| combine(flag, axis));
        number.ne(0)
    }

    /// The greatest over all members, element by element.
    #[track_caller]
    pub fn max(&self, values: Tensor) -> Tensor {
        self.0.iter().fold(values, |values, (axis, _)| pmax(values, &**axis))
    }

    /// The values of all members, in the order of [`Axes::index`]: `[n, ..]` of each become `[members * n, ..]`.
    #[track_caller]
    pub fn gather(&self, values: Tensor) -> Tensor {
        // An axis with one member has nothing to gather.
        let several = self.0.iter().rev().filter(|(_, members)| *members > 1);
        several.fold(values, |values, (axis, _)| {
            let all = all_gather(values, &**axis);
            let shape = all.shape();
            all.reshape([&[shape[0] * shape[1]], &shape[2..]].concat())
        })
    }

    /// The position of this member among all, from 0. i32 `[]`
    #[track_caller]
    pub fn index(&self) -> Tensor {
        let mut axes = self.0.iter();
        let Some((first, _)) = axes.next() else {
            return scalar(0);
        };
        axes.fold(axis_index(&**first), |index, (axis, members)| {
            index * *members as i32 + axis_index(&**axis)
        })
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.0.iter().map(|(_, members)| members).product()
    }
}
