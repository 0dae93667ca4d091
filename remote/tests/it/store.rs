//! The key-value store: waiting for values, and access control.

use std::thread;
use std::time::{Duration, Instant};

use podracer_remote::store::{StoreClient, StoreServer};

#[test]
fn a_value_is_got_once_it_is_put() {
    let server = StoreServer::start("word").expect("a server");
    let addresses = server.addresses();
    let client = || StoreClient::connect(&addresses, "word").expect("a connection");
    let (one, two) = (client(), client());
    assert_eq!(one.get(b"topology", Duration::ZERO).expect("an answer"), None);
    thread::scope(|scope| {
        let waits = scope.spawn(|| two.get(b"topology", Duration::from_secs(60)));
        thread::sleep(Duration::from_millis(50));
        // More than gRPC takes by default, and bytes that are no text.
        let value = vec![0xff; 5 << 20];
        one.put(b"topology", &value).expect("it is put");
        assert_eq!(waits.join().expect("no panic").expect("an answer"), Some(value));
    });
    let since = Instant::now();
    let nothing = two.get(b"another", Duration::from_millis(100)).expect("an answer");
    assert_eq!(nothing, None);
    assert!(since.elapsed() >= Duration::from_millis(100));
}

#[test]
fn a_key_keeps_its_value() {
    let server = StoreServer::start("word").expect("a server");
    let client = StoreClient::connect(&server.addresses(), "word").expect("a connection");
    client.put(b"id", b"1").expect("it is put");
    client.put(b"id", b"1").expect("it is the same");
    let error = client.put(b"id", b"2").expect_err("another value").to_string();
    assert!(error.contains("`id` has another value"), "{error}");
    assert_eq!(client.get(b"id", Duration::ZERO).expect("an answer"), Some(b"1".to_vec()));
}

#[test]
fn strangers_are_refused_and_a_store_that_is_away_is_named() {
    let server = StoreServer::start("word").expect("a server");
    let addresses = server.addresses();
    let stranger = StoreClient::connect(&addresses, "guess").expect("a connection");
    for said in [
        stranger.put(b"id", b"1").expect_err("a stranger").to_string(),
        stranger.get(b"id", Duration::ZERO).expect_err("a stranger").to_string(),
    ] {
        assert!(said.contains("another training"), "{said}");
    }
    drop(server);
    let error = StoreClient::connect(&addresses[2..], "word").err().expect("it is away");
    assert!(error.to_string().contains(&addresses[2]), "{error}");
}
