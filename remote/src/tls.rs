//! Security of connections: mutual TLS by the files of [`certificates::write`](crate::certificates::write), or none.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::Address;
use crate::certificates::{AUTHORITY, Files, LEARNER, LEARNER_NAME, WORKER};

/// Ways for the two sides of a TCP connection to authenticate each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Mutual TLS by certificates of one authority, in a folder that `podracer certificates new` wrote.
    Certificates(PathBuf),
    /// No authentication: every client that reaches the port is accepted, and the traffic is
    /// readable on the way.
    Insecure,
}

/// Security that is missing or cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// An address that others reach, and nothing was said.
    #[error(
        "{0} is reached over the network: give --certificates FOLDER, which `podracer certificates new FOLDER` makes, or --insecure to accept every connection that reaches it"
    )]
    Missing(Address),
    /// Certificates for an address that has no use for them.
    #[error("{0} is a Unix socket, which only its owner can open: it takes no certificates")]
    Needless(Address),
    /// A learner with TLS, and a worker without.
    #[error(
        "{0} answers with TLS, and this worker has none: start it with --certificates FOLDER in place of --insecure; the folder has \
         ca.pem, worker.pem and worker.key of those that the learner was started with"
    )]
    Encrypted(Address),
    /// A learner without TLS, and a worker with it.
    #[error(
        "{0} does not speak TLS, and this worker was started with --certificates: start the learner with --certificates, too, or the \
         worker with --insecure"
    )]
    Plain(Address),
    /// A file that cannot be read.
    #[error("{}: {problem}", .file.display())]
    File {
        /// The file's path.
        file: PathBuf,
        /// The problem with the file.
        problem: String,
    },
    /// Certificates that do not fit each other.
    #[error("the certificates in {}: {problem}", folder.display())]
    Certificates {
        /// The folder of the certificates.
        folder: PathBuf,
        /// The problem with the certificates.
        problem: String,
    },
}

/// The first byte of a TLS connection, from a client: a record of the handshake.
pub(crate) const HANDSHAKE: u8 = 22;
/// The first byte of a TLS server's answer to a client without TLS: an alert. HTTP/2 never begins
/// with this byte.
pub(crate) const ALERT: u8 = 21;

/// True if what came was not TLS.
pub(crate) fn is_no_tls(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let content = rustls::InvalidMessage::InvalidContentType;
    matches!(inner, Some(rustls::Error::InvalidMessage(problem)) if *problem == content)
}

/// Finds the folder of certificates that an address needs; `None` if it needs none.
pub(crate) fn folder<'a>(
    address: &Address,
    security: Option<&'a Security>,
) -> Result<Option<&'a Path>, SecurityError> {
    match (address, security) {
        (Address::Unix(_), Some(Security::Certificates(_))) => {
            Err(SecurityError::Needless(address.clone()))
        }
        (Address::Unix(_), _) | (Address::Tcp(_), Some(Security::Insecure)) => Ok(None),
        (Address::Tcp(_), Some(Security::Certificates(folder))) => Ok(Some(folder)),
        (Address::Tcp(_), None) => Err(SecurityError::Missing(address.clone())),
    }
}

/// Accepts workers with certificates that the authority has signed.
pub(crate) fn acceptor(folder: &Path) -> Result<TlsAcceptor, SecurityError> {
    let (roots, chain, key) = read(folder, &LEARNER)?;
    let wrong = |error: &dyn std::fmt::Display| SecurityError::Certificates {
        folder: folder.to_owned(),
        problem: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
        .build()
        .map_err(|error| wrong(&error))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_client_cert_verifier(verifier).with_single_cert(chain, key))
        .map_err(|error| wrong(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Connects to learners with certificates that the authority has signed.
pub(crate) fn connector(folder: &Path) -> Result<TlsConnector, SecurityError> {
    let (roots, chain, key) = read(folder, &WORKER)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_root_certificates(roots).with_client_auth_cert(chain, key))
        .map_err(|error| SecurityError::Certificates {
            folder: folder.to_owned(),
            problem: error.to_string(),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The name that a learner's certificate must have.
pub(crate) fn learner_name() -> ServerName<'static> {
    ServerName::try_from(LEARNER_NAME).expect("the constant is a name")
}

type Identity = (RootCertStore, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read(folder: &Path, files: &Files) -> Result<Identity, SecurityError> {
    let text = |name: &str| {
        let file = folder.join(name);
        fs::read(&file).map_err(|error| SecurityError::File { file, problem: error.to_string() })
    };
    let certificates = |name: &str| {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(name)?).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) => Err("there is no certificate in it".to_owned()),
            Err(error) => Err(error.to_string()),
        }
        .map_err(|problem| SecurityError::File { file: folder.join(name), problem })
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(AUTHORITY)? {
        roots.add(root).map_err(|error| SecurityError::Certificates {
            folder: folder.to_owned(),
            problem: error.to_string(),
        })?;
    }
    let key_file = folder.join(files.key);
    let of_key = |problem: String| SecurityError::File { file: key_file.clone(), problem };
    let mode = fs::metadata(&key_file).map_err(|error: io::Error| of_key(error.to_string()))?;
    if mode.permissions().mode() & 0o077 != 0 {
        return Err(of_key("others may read this key: `chmod 600` it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&text(files.key)?)
        .map_err(|error| of_key(error.to_string()))?;
    Ok((roots, certificates(files.certificate)?, key))
}
