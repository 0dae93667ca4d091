//! The store's server.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use super::proto::store_server::{Store, StoreServer as Service};
use super::proto::{GetReply, GetRequest, PutReply, PutRequest};
use super::{LARGEST, StoreError, addresses_elsewhere};

/// The longest wait for a value.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A store that is served by this process. Dropping it ends it.
pub struct StoreServer {
    runtime: Option<Runtime>,
    port: u16,
}

impl StoreServer {
    /// Serves a store at a free port on every interface, for processes that know the secret word.
    ///
    /// # Errors
    /// [`StoreError::Away`] where there is no port, or no thread.
    pub fn start(word: &str) -> Result<Self, StoreError> {
        let away = |error: std::io::Error| StoreError::Away {
            what: "served",
            addresses: "a free port".to_owned(),
            problem: error.to_string(),
        };
        let listener = TcpListener::bind("0.0.0.0:0").map_err(away)?;
        listener.set_nonblocking(true).map_err(away)?;
        let port = listener.local_addr().map_err(away)?.port();
        let threads =
            Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build();
        let runtime = threads.map_err(away)?;
        let inside = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(away)?;
        let values =
            StoredValues { word: word.to_owned(), values: Mutex::default(), put: Notify::new() };
        let service = Service::new(values)
            .max_decoding_message_size(LARGEST)
            .max_encoding_message_size(LARGEST);
        let router = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(async move {
            let served = router.serve_with_incoming(TcpListenerStream::new(listener)).await;
            if let Err(error) = served {
                tracing::error!("the processes' store has stopped: {error}");
            }
        });
        drop(inside);
        Ok(StoreServer { runtime: Some(runtime), port })
    }

    /// The store's addresses for other processes; the loopback address comes last.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        addresses_elsewhere(self.port)
            .into_iter()
            .chain([format!("127.0.0.1:{}", self.port)])
            .collect()
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A later client finds no server: the listener is closed by then.
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

struct StoredValues {
    word: String,
    values: Mutex<HashMap<Bytes, Bytes>>,
    /// Rung at every value.
    put: Notify,
}

impl StoredValues {
    fn check(&self, word: &str) -> Result<(), Status> {
        match word == self.word {
            true => Ok(()),
            false => Err(Status::permission_denied("this store belongs to another training")),
        }
    }

    fn get(&self, key: &Bytes) -> Option<Bytes> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

#[tonic::async_trait]
impl Store for StoredValues {
    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutReply>, Status> {
        let PutRequest { word, key, value } = request.into_inner();
        self.check(&word)?;
        let name = String::from_utf8_lossy(&key).into_owned();
        match self.values.lock().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Entry::Occupied(known) if *known.get() != value => {
                return Err(Status::already_exists(format!("`{name}` has another value")));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => {
                place.insert(value);
            }
        }
        self.put.notify_waiters();
        Ok(Response::new(PutReply {}))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetReply>, Status> {
        let GetRequest { word, key, timeout_ms } = request.into_inner();
        self.check(&word)?;
        let until = Instant::now() + Duration::from_millis(timeout_ms).min(LONGEST);
        loop {
            // Before the look, so that no value is put in between.
            let put = self.put.notified();
            if let Some(value) = StoredValues::get(self, &key) {
                return Ok(Response::new(GetReply { value }));
            }
            if timeout_at(until, put).await.is_err() {
                let name = String::from_utf8_lossy(&key).into_owned();
                return Err(Status::not_found(format!("nobody has put `{name}`")));
            }
        }
    }
}
