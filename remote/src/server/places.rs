//! The places of connections. Their number has a limit, and a connection without a worker gives way to a new connection.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::handshakes::oldest_of_most;
use super::link::Link;

/// Time that a connection waits for a place.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time that a connection has its place at least, for its worker's `Hello`.
const FIRST: Duration = Duration::from_millis(500);
/// Time that a connection takes at most to give way.
const GIVING_WAY: Duration = Duration::from_millis(50);

/// The places of connections.
pub(super) struct Places {
    places: Arc<Semaphore>,
    /// Room for connections that wait for a place.
    waiting: Semaphore,
    /// The connections that have a place and had no worker when they were looked at last, the oldest first.
    idle: Mutex<Vec<(Instant, Weak<Link>)>>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Places { places, waiting: Semaphore::new(most), idle: Mutex::default() }
    }

    /// A place for a connection. If there is none, the oldest idle connection of the host with the most of them is closed. `None` if no
    /// connection leaves its place.
    pub(super) async fn take(&self, link: &Arc<Link>) -> Option<OwnedSemaphorePermit> {
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                let _waiting = self.waiting.try_acquire().ok()?;
                timeout(PATIENCE, self.wait()).await.ok()??
            }
        };
        let taken = (Instant::now(), Arc::downgrade(link));
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
        Some(place)
    }

    /// Waits for a place. A place that becomes free may go to another connection that waits.
    async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            self.make_room();
            let place = timeout(GIVING_WAY, Arc::clone(&self.places).acquire_owned());
            if let Ok(place) = place.await {
                return place.ok();
            }
        }
    }

    /// Closes an idle connection, if there is one.
    fn make_room(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(_, link)| link.upgrade().is_some_and(|link| link.is_idle()));
        let old = idle.iter().filter(|(since, _)| since.elapsed() >= FIRST);
        let links: Vec<Arc<Link>> = old.filter_map(|(_, link)| link.upgrade()).collect();
        let hosts: Vec<&str> = links.iter().map(|link| &*link.origin).collect();
        let Some(oldest) = oldest_of_most(&hosts) else { return };
        links[oldest].give_way();
        let gone = Arc::downgrade(&links[oldest]);
        idle.retain(|(_, link)| !link.ptr_eq(&gone));
    }
}
