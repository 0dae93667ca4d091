//! The store of keys and values through which the processes of a training on GPUs exchange their
//! devices. The first process serves it for its lifetime.

use std::time::Duration;

use anyhow::{Context, Result};
use podracer_remote::store::{StoreClient, StoreServer};
use podracer_runtime::World;
use podracer_runtime::pjrt::KeyValueStore;

use super::together;
use crate::machine::random_name;

struct Store(StoreClient);

impl KeyValueStore for Store {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.0.put(key, value).map_err(|error| error.to_string())
    }

    fn get(&self, key: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>, String> {
        self.0.get(key, timeout).map_err(|error| error.to_string())
    }
}

/// The store that the processes share, with one connection per process. Every process calls this
/// function, or calls [`together::agree`] with the reason why it does not.
pub(super) fn of_all(world: World) -> Result<&'static dyn KeyValueStore> {
    let word = random_name();
    let served = world.is_first().then(|| StoreServer::start(&word)).transpose();
    let served = together::agree(Some(world), served.map_err(Into::into), |_| Ok(Vec::new()))?;
    let mut lines = vec![word];
    lines.extend(served.iter().flat_map(StoreServer::addresses));
    let lines = String::from_utf8(world.hear_first(lines.join("\n").as_bytes())?)?;
    let mut addresses: Vec<String> = lines.lines().map(str::to_owned).collect();
    let word = addresses.remove(0);
    // The last is the first process's machine, in that machine's own words.
    if world.members()[world.rank()].host != world.members()[0].host {
        addresses.pop();
    }
    let client = StoreClient::connect(&addresses, &word).context("the first process serves it");
    let client = together::agree(Some(world), client, |_| Ok(Vec::new()))?;
    // Plugins use it for the lifetime of the process.
    served.into_iter().for_each(std::mem::forget);
    Ok(Box::leak(Box::new(Store(client))))
}
