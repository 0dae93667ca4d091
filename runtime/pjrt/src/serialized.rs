//! The serialized form of executables: XLA's bytes, wrapped so that only intact and compatible
//! bytes are loaded.
//!
//! XLA trusts its input: bytes that are damaged, or from another version or processor, can end the
//! process or compute nonsense. The wrapper begins with a checksum of everything after it, followed
//! by the plugin's and the processor's fingerprint.

use podracer_compiler::{DType, TensorType};
use prost::Message;
use sha2::{Digest, Sha256};

use crate::{CompileOptions, RuntimeError, machine};

const MAGIC: &[u8; 16] = b"podracer exec 1\n";
const CHECKSUM: usize = 32;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Serialized {
    #[prost(string, tag = "1")]
    plugin: String,
    #[prost(string, tag = "2")]
    machine: String,
    #[prost(message, repeated, tag = "3")]
    arguments: Vec<Type>,
    #[prost(message, repeated, tag = "4")]
    results: Vec<Type>,
    #[prost(uint64, repeated, tag = "5")]
    placement: Vec<u64>,
    #[prost(bytes = "vec", tag = "6")]
    pub(crate) payload: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Type {
    #[prost(string, tag = "1")]
    dtype: String,
    #[prost(uint64, repeated, tag = "2")]
    shape: Vec<u64>,
}

impl Serialized {
    pub(crate) fn new(
        plugin: &str,
        arguments: &[TensorType],
        results: &[TensorType],
        placement: &[usize],
        payload: Vec<u8>,
    ) -> Self {
        let wide = |values: &[usize]| values.iter().map(|&value| value as u64).collect::<Vec<_>>();
        let one = |ty: &TensorType| Type { dtype: ty.dtype.to_string(), shape: wide(&ty.shape) };
        let all = |types: &[TensorType]| types.iter().map(one).collect();
        Self {
            plugin: plugin.to_owned(),
            machine: machine::fingerprint().to_owned(),
            arguments: all(arguments),
            results: all(results),
            placement: wide(placement),
            payload,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let body = self.encode_to_vec();
        [MAGIC.as_slice(), Sha256::digest(&body).as_slice(), &body].concat()
    }

    pub(crate) fn decode(bytes: &[u8], plugin: &str) -> Result<Self, RuntimeError> {
        let wrong = |problem: &str| RuntimeError::Serialized(problem.to_owned());
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| wrong("it does not begin as one of this version of podracer"))?;
        let (checksum, body) =
            rest.split_at_checked(CHECKSUM).ok_or_else(|| wrong("it is cut off"))?;
        if Sha256::digest(body).as_slice() != checksum {
            return Err(wrong("its checksum does not match: it is damaged or cut off"));
        }
        let serialized =
            <Self as Message>::decode(body).map_err(|error| wrong(&error.to_string()))?;
        if serialized.plugin != plugin {
            return Err(wrong("it was made by another plugin, or another version of this plugin"));
        }
        if serialized.machine != machine::fingerprint() {
            return Err(wrong("it was made on a machine with another processor"));
        }
        Ok(serialized)
    }

    /// The argument and result types.
    pub(crate) fn signature(&self) -> Result<(Vec<TensorType>, Vec<TensorType>), RuntimeError> {
        let one = |ty: &Type| {
            let shape: Vec<usize> = ty.shape.iter().map(|&extent| extent as usize).collect();
            let unknown = || {
                RuntimeError::Serialized(format!("it has the unknown element type `{}`", ty.dtype))
            };
            Ok(TensorType::new(DType::parse(&ty.dtype).ok_or_else(unknown)?, shape))
        };
        let all = |types: &[Type]| types.iter().map(one).collect::<Result<Vec<_>, RuntimeError>>();
        Ok((all(&self.arguments)?, all(&self.results)?))
    }

    /// The placement, to be checked against the devices of the client that loads.
    pub(crate) fn placement_options(&self) -> CompileOptions {
        let placement: Vec<usize> = self.placement.iter().map(|&index| index as usize).collect();
        CompileOptions {
            replicas: placement.len(),
            device_assignment: Some(placement),
            ..CompileOptions::default()
        }
    }
}
