//! Certificates for mutual TLS: the user's own authority, and the certificates that it signs for
//! learner and workers.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Name in every learner's certificate. Workers require it for any address: the authority decides
/// who may connect, and not the names of machines.
pub const LEARNER_NAME: &str = "podracer-learner";

/// The authority's certificate: learner and workers have it.
pub(crate) const AUTHORITY: &str = "ca.pem";

/// Certificate and key of one side.
pub(crate) struct Files {
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
}

pub(crate) const LEARNER: Files = Files { certificate: "learner.pem", key: "learner.key" };
pub(crate) const WORKER: Files = Files { certificate: "worker.pem", key: "worker.key" };
const AUTHORITY_KEY: &str = "ca.key";

/// Failures of writing certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// There is something of that name already.
    #[error("{} is there already: name another folder, or remove it", .0.display())]
    Exists(PathBuf),
    /// A file or folder that cannot be written.
    #[error("{}: {error}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// A name that a certificate cannot have, or a failure of the generator.
    #[error("cannot make certificates: {0}")]
    Generate(#[from] rcgen::Error),
}

/// Makes an authority and certificates for a learner and for workers in a new folder, readable only
/// by their owner: `ca.pem`, `ca.key`, `learner.pem`, `learner.key`, `worker.pem`, `worker.key`. A
/// worker's certificate is not valid for a server, nor a learner's for a worker. `hosts` are names
/// or addresses of the learner's machine in addition to `localhost`, for clients that check them.
/// Returns the paths of the files.
///
/// # Errors
/// [`CertificateError`]. An existing file is never overwritten.
pub fn write(folder: &Path, hosts: &[String]) -> Result<Vec<PathBuf>, CertificateError> {
    let at_folder = |error| CertificateError::Io { file: folder.to_owned(), error };
    fs::create_dir_all(folder).map_err(at_folder)?;
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name.push(DnType::CommonName, "podracer authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority.self_signed(&authority_key)?.pem();
    let authority_pem = authority_key.serialize_pem();
    let issuer = Issuer::new(authority, authority_key);
    let signed = |name: &str, names: Vec<String>, usage| -> Result<_, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        Ok((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
    };
    let names = [LEARNER_NAME, "localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let names = names.into_iter().chain(hosts.iter().cloned()).collect();
    let (learner, learner_key) = signed(LEARNER_NAME, names, ExtendedKeyUsagePurpose::ServerAuth)?;
    let (worker, worker_key) =
        signed("podracer-worker", Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)?;
    let files = [
        (AUTHORITY, certificate),
        (AUTHORITY_KEY, authority_pem),
        (LEARNER.certificate, learner),
        (LEARNER.key, learner_key),
        (WORKER.certificate, worker),
        (WORKER.key, worker_key),
    ];
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).exists()) {
        return Err(CertificateError::Exists(folder.join(name)));
    }
    let write = |(name, text): (&str, String)| {
        let path = folder.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match file.and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => Ok(path),
            Err(error) => Err(CertificateError::Io { file: path, error }),
        }
    };
    files.into_iter().map(write).collect()
}
