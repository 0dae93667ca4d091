//! TLS handshakes in progress: their number is limited, and unfinished handshakes keep no client
//! out.

use std::collections::HashMap;

use tokio::task::AbortHandle;

use super::limits::HANDSHAKES;

/// The handshakes in progress, the oldest first, each with its remote host.
#[derive(Default)]
pub(super) struct Handshakes(Vec<(String, AbortHandle)>);

impl Handshakes {
    /// Adds one. Where there are too many, the oldest one of the host that has the most is given up, which closes its connection.
    pub(super) fn add(&mut self, host: &str, task: AbortHandle) {
        self.0.retain(|(_, task)| !task.is_finished());
        if self.0.len() >= HANDSHAKES {
            let hosts: Vec<&str> = self.0.iter().map(|(host, _)| &**host).collect();
            if let Some(oldest) = oldest_of_most(&hosts) {
                self.0.remove(oldest).1.abort();
            }
        }
        self.0.push((host.to_owned(), task));
    }
}

/// The position of the first entry of the host that has the most; `None` if there are no entries.
pub(super) fn oldest_of_most(hosts: &[&str]) -> Option<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    hosts.iter().for_each(|host| *counts.entry(host).or_default() += 1);
    // The last of several that are greatest: positions are counted from the end.
    (0..hosts.len()).rev().max_by_key(|&i| counts[hosts[i]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_of_the_host_with_the_most_gives_way() {
        let mut handshakes = Handshakes::default();
        let never = || tokio::spawn(std::future::pending::<()>()).abort_handle();
        handshakes.add("slow", never());
        (1..HANDSHAKES).for_each(|_| handshakes.add("many", never()));
        let oldest = handshakes.0[1].1.clone();
        handshakes.add("new", never());
        tokio::task::yield_now().await;
        assert!(oldest.is_finished());
        let open = |host: &str| handshakes.0.iter().filter(|(other, _)| other == host).count();
        assert_eq!((open("slow"), open("many"), open("new")), (1, HANDSHAKES - 2, 1));
    }
}
