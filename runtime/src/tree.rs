//! Trees of buffers: [`Device`] on the devices, [`Host`] on the host. A field of a viewed struct is a view again, so
//! that `&state.params` is a `&Device<Params>`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use podracer_compiler::TensorType;
use podracer_dsl::prelude::{Kind, Path, Spec, Tree, Types};

use crate::{Array, ArrayError, Buffer, Element, RuntimeError, World};

/// The way the devices of a replicated program share a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Every device has the whole leaf, with equal values.
    Replicated,
    /// Every device has its part of the leading axis, in the order of the devices.
    Sharded,
}

impl Placement {
    /// The number of parts of the whole leaf, for `devices` devices.
    pub(crate) fn parts(self, devices: usize) -> usize {
        match self {
            Placement::Replicated => 1,
            Placement::Sharded => devices,
        }
    }

    /// The type of the whole leaf, if each of `devices` devices has a part of type `ty`. A scalar
    /// becomes an element of a vector.
    pub(crate) fn global(self, mut ty: TensorType, devices: usize) -> TensorType {
        if self == Placement::Sharded && devices > 1 {
            match ty.shape.first_mut() {
                Some(extent) => *extent *= devices,
                None => ty.shape.push(devices),
            }
        }
        ty
    }
}

/// A leaf on the devices of a program: one buffer each.
#[derive(Debug)]
pub struct DeviceArray {
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) placement: Placement,
    /// The processes with devices that have the leaf; `None` if only this process has it.
    pub(crate) world: Option<World>,
}

impl DeviceArray {
    /// The way the devices share the leaf.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The buffer of each device.
    #[must_use]
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Copies the leaf to the host: one copy of a replicated leaf, or the concatenated parts of a
    /// sharded leaf. If several processes have the leaf, every process must call this, and gets the
    /// whole.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`] if its computation failed; [`RuntimeError::Processes`] if the other
    /// processes do not respond.
    pub fn to_host(&self) -> Result<Array, RuntimeError> {
        let count = self.placement.parts(self.buffers.len());
        let mut parts = self.buffers.iter().take(count).map(Buffer::to_host);
        let first = parts.next().expect("a leaf has a buffer on every device")?;
        let (ty, mut bytes) = first.into_parts();
        for part in parts {
            bytes.extend(part?.bytes());
        }
        let mut members = count;
        if let Some(world) = self.world.filter(|_| self.placement == Placement::Sharded) {
            let mut all = vec![0; world.size() * bytes.len()];
            world.all_gather(&bytes, &mut all)?;
            (bytes, members) = (all, world.size() * count);
        }
        // The parts have one type: the program was compiled for it.
        Ok(Array::from_bytes(self.placement.global(ty, members), bytes)?)
    }

    /// Puts a whole array on each of the devices.
    pub(crate) fn replicate(
        array: &Array,
        devices: &[crate::pjrt::Device],
    ) -> Result<Self, RuntimeError> {
        let buffers = devices.iter().map(|device| Buffer::from_host(array, device));
        let buffers = buffers.collect::<Result<_, _>>()?;
        Ok(DeviceArray { buffers, placement: Placement::Replicated, world: None })
    }
}

/// The kind of leaves that are buffers on devices.
#[derive(Clone, Copy, Debug)]
pub enum OnDevice {}

/// The kind of leaves that are arrays on the host.
#[derive(Clone, Copy, Debug)]
pub enum OnHost {}

macro_rules! views {
    ($($(#[$meta:meta])* $view:ident $kind:ident $leaf:ident;)*) => {$(
        $(#[$meta])*
        pub struct $view<T: Tree>(pub(crate) T::Of<$kind>);

        impl<T: Tree> Deref for $view<T> {
            type Target = T::Of<$kind>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl Kind for $kind {
            type Leaf = $leaf;
            type View<T: Tree> = $view<T>;

            fn wrap<T: Tree>(of: T::Of<Self>) -> $view<T> {
                $view(of)
            }
            fn unwrap<T: Tree>(view: $view<T>) -> T::Of<Self> {
                view.0
            }
            fn peek<T: Tree>(view: &$view<T>) -> &T::Of<Self> {
                &view.0
            }
        }

        impl<T: Tree> $view<T> {
            /// Visits the leaves with their key paths, in order.
            pub fn visit(&self, mut f: impl FnMut(&Path, &$leaf)) {
                T::visit_kind::<$kind>(&self.0, &mut Path::root(), &mut f);
            }

            /// The leaves, in order.
            #[must_use]
            pub fn into_leaves(self) -> Vec<$leaf> {
                let mut leaves = Vec::new();
                T::into_leaves::<$kind>(self.0, &mut leaves);
                leaves
            }
        }
    )*};
}

views! {
    /// A tree on the devices of a program. It has no `Clone`: passing it to a program by value
    /// donates its memory, and passing a reference keeps it.
    Device OnDevice DeviceArray;
    /// A tree on the host.
    Host OnHost Array;
}

/// Key paths for a message.
pub(crate) fn quoted<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    let quoted: Vec<String> = paths.map(|path| format!("`{path}`")).collect();
    quoted.join(", ")
}

/// A tree built from leaves in the spec's order. The caller has checked their number.
pub(crate) fn from_leaves<T: Tree, K: Kind>(
    spec: &Spec<T>,
    leaves: impl IntoIterator<Item = K::Leaf>,
) -> K::View<T> {
    let mut leaves = leaves.into_iter();
    spec.build::<K>(&mut |_| leaves.next().expect("a program gives one leaf per leaf of its spec"))
}

impl<T: Tree> Device<T> {
    /// Copies the tree to the host and waits for the computation.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`] if the computation failed.
    pub fn to_host(&self) -> Result<Host<T>, RuntimeError> {
        let mut failed = None;
        let host = T::convert::<OnDevice, OnHost>(&self.0, &mut |leaf| match leaf.to_host() {
            Ok(array) => array,
            Err(error) => {
                failed.get_or_insert(error);
                Array::scalar(0u8)
            }
        });
        failed.map_or(Ok(Host(host)), Err)
    }
}

impl<A: Tree, B: Tree> Device<(A, B)> {
    /// Splits the pair into its two trees.
    #[must_use]
    pub fn split(self) -> (Device<A>, Device<B>) {
        self.0
    }
}

impl<A: Tree, B: Tree, C: Tree> Device<(A, B, C)> {
    /// Splits the triple into its three trees.
    #[must_use]
    pub fn split(self) -> (Device<A>, Device<B>, Device<C>) {
        self.0
    }
}

/// The tree of a single leaf.
impl<T: Tree> From<Array> for Host<T>
where
    T::Of<OnHost>: From<Array>,
{
    fn from(leaf: Array) -> Self {
        Host(leaf.into())
    }
}

/// The tree without leaves.
impl From<()> for Host<()> {
    fn from((): ()) -> Self {
        Host(())
    }
}

impl<A: Tree, B: Tree> From<(Host<A>, Host<B>)> for Host<(A, B)> {
    fn from(pair: (Host<A>, Host<B>)) -> Self {
        Host(pair)
    }
}

impl<T: Tree> Host<T> {
    /// The types of the leaves.
    #[must_use]
    pub fn spec(&self) -> Spec<T> {
        Spec(T::convert::<OnHost, Types>(&self.0, &mut |leaf| leaf.ty().clone()))
    }

    /// Puts the whole tree on each of the devices.
    ///
    /// # Errors
    /// [`RuntimeError::Xla`].
    pub fn on_devices(&self, devices: &[crate::pjrt::Device]) -> Result<Device<T>, RuntimeError> {
        let mut failed = None;
        let on_devices = T::convert::<OnHost, OnDevice>(&self.0, &mut |leaf| {
            DeviceArray::replicate(leaf, devices).unwrap_or_else(|error| {
                failed.get_or_insert(error);
                DeviceArray { buffers: Vec::new(), placement: Placement::Replicated, world: None }
            })
        });
        failed.map_or(Ok(Device(on_devices)), Err)
    }

    /// The tree with `f` applied to each leaf.
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(&Array) -> Array) -> Host<T> {
        Host(T::convert::<OnHost, OnHost>(&self.0, &mut f))
    }

    /// Makes a tree from arrays by their key paths in `spec`, in any order. The names come from
    /// [`Device::named_arrays`], or are written by hand, such as `layers[0].weight`.
    /// `Host::from(array)` also makes a tree with a single leaf.
    ///
    /// # Errors
    /// [`RuntimeError::Leaves`] with every leaf that is missing, unknown, repeated or has another
    /// type.
    pub fn from_named(
        spec: &Spec<T>,
        arrays: impl IntoIterator<Item = (impl Into<String>, Array)>,
    ) -> Result<Self, RuntimeError> {
        let (mut given, mut problems) = (BTreeMap::new(), Vec::new());
        for (name, array) in arrays {
            let name = name.into();
            if given.contains_key(&name) {
                problems.push(format!("`{name}` is given twice"));
            }
            given.insert(name, array);
        }
        let (leaves, mut fitting) = (spec.leaves(), Vec::new());
        for (path, ty) in &leaves {
            match given.remove(&path.to_string()) {
                None => problems.push(format!("`{path}` ({ty}) is missing")),
                Some(array) if array.ty() != ty => {
                    problems.push(format!("`{path}` must be {ty} and is {}", array.ty()));
                }
                Some(array) => fitting.push(array),
            }
        }
        for name in given.keys() {
            let names = quoted(leaves.iter().map(|(path, _)| path));
            problems.push(format!("there is no leaf `{name}`, only {names}"));
        }
        if problems.is_empty() {
            return Ok(from_leaves::<T, OnHost>(spec, fitting));
        }
        Err(RuntimeError::Leaves(problems.join("; ")))
    }

    /// The only value of a tree with one leaf.
    ///
    /// # Errors
    /// [`ArrayError::Type`], [`ArrayError::Length`].
    pub fn item<E: Element>(&self) -> Result<E, ArrayError> {
        let mut result = None;
        self.visit(|_, leaf| {
            result.get_or_insert_with(|| leaf.item());
        });
        result.unwrap_or_else(|| Array::zeros(TensorType::new(E::DTYPE, [0])).item())
    }

    /// The elements of a tree with one leaf, in row-major order.
    ///
    /// # Errors
    /// [`ArrayError::Type`].
    pub fn to_vec<E: Element>(&self) -> Result<Vec<E>, ArrayError> {
        let mut result = None;
        self.visit(|_, leaf| {
            result.get_or_insert_with(|| leaf.to_vec());
        });
        result.unwrap_or_else(|| Ok(Vec::new()))
    }
}

impl<T: Tree> Clone for Host<T> {
    fn clone(&self) -> Self {
        self.map(Array::clone)
    }
}

/// `{loss: 0.25, returns: f32[64]}`: scalars show their value.
impl<T: Tree> fmt::Display for Host<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = Vec::new();
        self.visit(|path, leaf| {
            let value = if leaf.ty().elements() == 1 {
                leaf.get(0).float().to_string()
            } else {
                leaf.ty().to_string()
            };
            shown.push(if path.0.is_empty() { value } else { format!("{path}: {value}") });
        });
        match &shown[..] {
            [only] if !only.contains(':') => f.write_str(only),
            _ => write!(f, "{{{}}}", shown.join(", ")),
        }
    }
}

impl<T: Tree> fmt::Debug for Host<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T: Tree> fmt::Debug for Device<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = Vec::new();
        self.visit(|path, leaf| {
            let (ty, devices) = (leaf.buffers[0].ty(), leaf.buffers.len());
            shown.push(format!("{path}: {ty} on {devices} device(s)"));
        });
        write!(f, "{{{}}}", shown.join(", "))
    }
}
