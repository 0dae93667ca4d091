//! The devices of a training: which devices exist, and which of them act and learn.

use std::num::NonZero;

use anyhow::Result;
use podracer_runtime::{Client, ClientOptions, Plugin, World};

use super::console::Console;
#[cfg(feature = "central")]
use super::store::of_all as store_of_all;
use crate::registry::Registry;
use crate::settings::{Settings, UsageError};

/// Greatest number of devices that a CPU is divided into: XLA takes minutes and gigabytes for tens of thousands.
const MOST_CPU_DEVICES: usize = 1024;

#[cfg(not(feature = "central"))]
fn store_of_all(_: World) -> Result<&'static dyn podracer_runtime::pjrt::KeyValueStore> {
    Err(UsageError::new("several processes train together on GPUs with the feature `central`, which this program is built without").into())
}

/// Opens the devices in the settings. With `one_thread` it opens one CPU device with
/// single-threaded kernels.
pub(super) fn open(settings: &Settings, world: Option<World>, one_thread: bool) -> Result<Client> {
    // If actors and learners are on different devices, a CPU is divided into as many devices as are
    // named.
    let training_loop = &settings.training_loop;
    let named = match training_loop.host() {
        None => 0,
        Some(_) => settings.train.devices.named().max(training_loop.devices_named()),
    };
    if settings.train.platform == "cpu" && named > MOST_CPU_DEVICES {
        return Err(UsageError::new(format!(
            "{named} devices are asked for, and a CPU is divided into at most {MOST_CPU_DEVICES}"
        ))
        .into());
    }
    let plugin = Plugin::load(&settings.train.platform)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (cpu_devices, cpu_threads) = match one_thread {
        true => (Some(1), NonZero::new(1)),
        false => ((plugin.name() == "cpu" && named > cores).then_some(named), None),
    };
    let store = world.filter(|_| plugin.name() == "cuda13").map(store_of_all).transpose()?;
    let options = ClientOptions { cpu_devices, cpu_threads, world, store };
    Ok(Client::new(plugin, options)?)
}

/// Picks the devices that act and learn, with warnings, and checks that the lanes divide over them.
/// `devices` has the devices of the machine, and afterwards the devices of the run.
pub(super) fn decide(
    settings: &mut Settings,
    devices: &mut Vec<usize>,
    registry: &Registry,
    console: &mut Console<'_>,
) -> Result<(), UsageError> {
    for warning in settings.decide(devices, registry)? {
        console.warn(&warning);
    }
    settings.check_division(devices.len() * settings.processes(), registry)
}
