//! Access control: modes of files, certificates, and addresses that need them.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use podracer_remote::server::{Server, ServerOptions};
use podracer_remote::worker::{WorkerError, WorkerOptions, work};
use podracer_remote::{Address, Security, certificates};

use crate::support::{Learner, Place, Working, cartpole_run, zeros};

fn anywhere() -> Address {
    "127.0.0.1:0".parse().expect("an address")
}

fn certified(folder: &Path) -> Option<Security> {
    Some(Security::Certificates(folder.to_owned()))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn certificates_are_their_owners_alone_and_never_overwritten() {
    let place = Place::new();
    let folder = place.folder.path().join("certificates");
    let files =
        certificates::write(&folder, &["learner.example".to_owned()]).expect("a new folder");
    assert_eq!(files.len(), 6);
    assert!(files.iter().all(|file| mode(file) == 0o600));
    let before = fs::read(folder.join("ca.key")).expect("it is there");
    let again = certificates::write(&folder, &[]).expect_err("they are there").to_string();
    assert!(again.contains("is there already"), "{again}");
    assert_eq!(fs::read(folder.join("ca.key")).expect("it is there"), before);
    fs::remove_file(folder.join("ca.pem")).expect("it was there");
    certificates::write(&folder, &[]).expect_err("others are there");
    assert!(!folder.join("ca.pem").exists(), "nothing is written beside what is there");
}

#[test]
fn workers_with_certificates_are_let_in() {
    let place = Place::new();
    let folder = place.folder.path();
    certificates::write(folder, &[]).expect("a new folder");
    let options = ServerOptions::new(anywhere(), certified(folder));
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let address = learner.server().address().clone();
    let working = Working::secure(vec![address], 4, 2, certified(folder));
    working.wait_for_steps(50);
    learner.complete();
    working.end().expect("the run is complete");
}

/// Connections that show no certificate had all places, and held them for ten seconds.
#[test]
fn idle_connections_without_a_certificate_take_no_place() {
    let place = Place::new();
    let folder = place.folder.path();
    certificates::write(folder, &[]).expect("a new folder");
    let mut options = ServerOptions::new(anywhere(), certified(folder));
    options.limits.connections = 2;
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let address = learner.server().address().clone();
    let dial = || TcpStream::connect(address.to_string()).expect("it listens");
    let mut idle: Vec<TcpStream> = (0..300).map(|_| dial()).collect();
    let began = Instant::now();
    let working = Working::secure(vec![address.clone()], 4, 2, certified(folder));
    working.wait_for_steps(20);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Further connections do not disturb it, and a silent connection is closed.
    idle.extend((0..300).map(|_| dial()));
    working.wait_for_steps(working.status.steps() + 20);
    let until = Instant::now() + Duration::from_secs(10);
    while learner.server().totals().status().connections > 2 {
        assert!(Instant::now() < until, "{:?}", learner.server().totals().status());
        std::thread::sleep(Duration::from_millis(20));
    }
    learner.complete();
    working.end().expect("the run is complete");
}

#[test]
fn workers_without_the_authoritys_certificates_are_refused() {
    let place = Place::new();
    let (ours, theirs) = (place.folder.path().join("ours"), place.folder.path().join("theirs"));
    certificates::write(&ours, &[]).expect("a new folder");
    certificates::write(&theirs, &[]).expect("a new folder");
    let options = ServerOptions::new(anywhere(), certified(&ours));
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let address = learner.server().address().clone();
    let refused = |security: Option<Security>| {
        let worker = Working::secure(vec![address.clone()], 2, 1, security);
        let refused = worker.end().expect_err("it is refused");
        assert!(matches!(refused, WorkerError::Refused { .. }), "{refused:?}");
        refused.to_string()
    };
    // The learner's certificate is not of the authority that this worker knows.
    let other = refused(certified(&theirs));
    assert!(other.contains("invalid peer certificate"), "{other}");
    // It knows the authority, but its certificate is from another authority.
    let mixed = place.folder.path().join("mixed");
    fs::create_dir(&mixed).expect("a new folder");
    for (name, from) in [("ca.pem", &ours), ("worker.pem", &theirs), ("worker.key", &theirs)] {
        fs::copy(from.join(name), mixed.join(name)).expect("it is there");
    }
    let mixed_up = refused(certified(&mixed));
    assert!(mixed_up.contains("received fatal alert"), "{mixed_up}");
    // A learner's certificate does not make a worker.
    let posing = place.folder.path().join("posing");
    fs::create_dir(&posing).expect("a new folder");
    for (name, from) in
        [("ca.pem", "ca.pem"), ("worker.pem", "learner.pem"), ("worker.key", "learner.key")]
    {
        fs::copy(ours.join(from), posing.join(name)).expect("it is there");
    }
    let posed = refused(certified(&posing));
    assert!(posed.contains("received fatal alert"), "{posed}");
    assert!(learner.server().totals().status().refused >= 3);
    assert_eq!(learner.look(|seen| seen.joined), 0);

    // A client of TLS that shows nothing.
    let told = without_certificate(&address, &ours);
    assert!(told.contains("CertificateRequired"), "{told}");
    let working = Working::secure(vec![address], 2, 1, certified(&ours));
    working.wait_for_steps(5);
}

/// One side has TLS and the other has not: another attempt would fail alike, so the worker ends and says what to change.
#[test]
fn a_worker_that_differs_from_its_learner_in_tls_ends_with_what_to_do() {
    let place = Place::new();
    let folder = place.folder.path();
    certificates::write(folder, &[]).expect("a new folder");
    let ends = |learner: Option<Security>, worker: Option<Security>, expected: &[&str]| {
        let options = ServerOptions::new(anywhere(), learner);
        let learner = Learner::start(&options, cartpole_run(), zeros, false);
        let address = learner.server().address().clone();
        let told = Working::secure(vec![address.clone()], 2, 1, worker).end();
        let told = told.expect_err("it cannot work");
        assert!(matches!(told, WorkerError::Security(_)), "{told:?}");
        let told = told.to_string();
        assert!(expected.iter().all(|part| told.contains(part)), "{told}");
        assert!(told.contains(&address.to_string()), "{told}");
        assert_eq!(learner.look(|seen| seen.joined), 0);
        let until = Instant::now() + Duration::from_secs(10);
        while learner.server().totals().status().refused == 0 {
            assert!(Instant::now() < until, "the learner counts no refusal");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let insecure = Some(Security::Insecure);
    ends(certified(folder), insecure.clone(), &["answers with TLS", "--certificates FOLDER"]);
    ends(insecure, certified(folder), &["does not speak TLS", "--insecure"]);
}

/// The answer to a client that trusts the authority and shows no certificate.
fn without_certificate(address: &Address, folder: &Path) -> String {
    use rustls::pki_types::pem::PemObject;
    use std::io::{Read, Write};
    let Address::Tcp(host) = address else { panic!("a port was asked for") };
    let mut roots = rustls::RootCertStore::empty();
    let file = fs::read(folder.join("ca.pem")).expect("it is there");
    let authority =
        rustls::pki_types::CertificateDer::from_pem_slice(&file).expect("a certificate");
    roots.add(authority).expect("an authority");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of the provider")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = certificates::LEARNER_NAME.try_into().expect("a name");
    let client = rustls::ClientConnection::new(config.into(), name).expect("a right configuration");
    let socket = std::net::TcpStream::connect(host).expect("it listens");
    let mut stream = rustls::StreamOwned::new(client, socket);
    let written = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let read = written.and_then(|()| stream.read(&mut [0; 100]));
    read.expect_err("it is not let in").to_string()
}

#[test]
fn addresses_that_others_reach_need_certificates_or_a_word() {
    let place = Place::new();
    let run = cartpole_run;
    let refused = |options: &ServerOptions| {
        Server::start(options, run(), 1).map(drop).expect_err("it is refused").to_string()
    };
    let told = refused(&ServerOptions::new(anywhere(), None));
    assert!(told.contains("--certificates") && told.contains("--insecure"), "{told}");
    let told = refused(&ServerOptions::new(place.address(), certified(place.folder.path())));
    assert!(told.contains("takes no certificates"), "{told}");
    let told = refused(&ServerOptions::new(anywhere(), certified(place.folder.path())));
    assert!(told.contains("ca.pem"), "{told}");
    certificates::write(place.folder.path(), &[]).expect("a new folder");
    let key = place.folder.path().join("learner.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let told = refused(&ServerOptions::new(anywhere(), certified(place.folder.path())));
    assert!(told.contains("others may read this key"), "{told}");
    let options =
        WorkerOptions { addresses: vec![anywhere()], security: None, environments: 1, batches: 1 };
    let told =
        work(&options, &|_, _| Err("not asked for".into()), &Default::default(), &false.into());
    assert!(told.expect_err("it is refused").to_string().contains("--insecure"));
}

#[test]
fn a_socket_is_its_owners_alone_and_never_taken_from_another() {
    let place = Place::new();
    let first = Learner::start(&place.options(), cartpole_run(), zeros, false);
    assert_eq!(mode(&place.path()), 0o600);
    let refused = || {
        let started = Server::start(&place.options(), cartpole_run(), 1);
        started.map(drop).expect_err("it is refused").to_string()
    };
    let told = refused();
    assert!(told.contains("another learner is running"), "{told}");
    drop(first);
    assert!(!place.path().exists(), "a server that ends takes its socket away");

    // The leftovers of a killed learner are taken over.
    drop(std::os::unix::net::UnixListener::bind(place.path()).expect("a new socket"));
    let second = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let working = Working::start(vec![place.address()], 2, 1);
    working.wait_for_steps(3);
    drop((working, second));

    fs::write(place.path(), "somebody's notes").expect("a new file");
    let told = refused();
    assert!(told.contains("is no socket"), "{told}");
    assert_eq!(fs::read_to_string(place.path()).expect("it is there"), "somebody's notes");
}
