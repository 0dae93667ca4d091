//! A process's client of the store.

use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::proto::store_client::StoreClient as Service;
use super::proto::{GetRequest, PutRequest};
use super::{LARGEST, StoreError};

/// Time that a connection to one address may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A connection to the store, for any number of threads. No thread of an asynchronous runtime may use it: its functions wait.
pub struct StoreClient {
    runtime: Runtime,
    service: Service<Channel>,
    word: String,
}

impl StoreClient {
    /// Connects to the store at the first of the addresses where there is one.
    ///
    /// # Errors
    /// [`StoreError::Away`] where it is at none of them.
    pub fn connect(addresses: &[String], word: &str) -> Result<Self, StoreError> {
        let away = |problem: String| StoreError::Away {
            what: "reached",
            addresses: addresses.join(", "),
            problem,
        };
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-client")
            .enable_all()
            .build();
        let runtime = threads.map_err(|error| away(error.to_string()))?;
        let mut problem = "there is no address".to_owned();
        for address in addresses {
            let endpoint = Endpoint::from_shared(format!("http://{address}"));
            let endpoint = endpoint.map_err(|error| away(error.to_string()))?;
            match runtime.block_on(endpoint.connect_timeout(CONNECT).connect()) {
                Ok(channel) => {
                    let service = Service::new(channel)
                        .max_decoding_message_size(LARGEST)
                        .max_encoding_message_size(LARGEST);
                    return Ok(StoreClient { runtime, service, word: word.to_owned() });
                }
                Err(error) => problem = causes(&error),
            }
        }
        Err(away(problem))
    }

    /// Puts the value of a key.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the key has another value.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let request = PutRequest { word: self.word.clone(), key, value };
        let mut service = self.service.clone();
        self.runtime.block_on(service.put(request)).map_err(refused)?;
        Ok(())
    }

    /// Gets the value of a key, once a process has put it; `None` if no process has put it within
    /// the time.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the connection is broken.
    pub fn get(&self, key: &[u8], timeout: Duration) -> Result<Option<Vec<u8>>, StoreError> {
        let key = Bytes::copy_from_slice(key);
        let timeout_ms = timeout.as_millis().try_into().unwrap_or(u64::MAX);
        let request = GetRequest { word: self.word.clone(), key, timeout_ms };
        let mut service = self.service.clone();
        match self.runtime.block_on(service.get(request)) {
            Ok(reply) => Ok(Some(reply.into_inner().value.to_vec())),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(refused(status)),
        }
    }
}

fn refused(status: Status) -> StoreError {
    StoreError::Refused(status.message().to_owned())
}

fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
