//! A client that sends any bytes as messages.

use bytes::{Buf, BufMut, Bytes};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::{FromWorker, ToWorker};

/// Messages that are bytes to the sender.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = ToWorker;
    type Encoder = Raw;
    type Decoder = Raw;
    fn encoder(&mut self) -> Raw {
        Raw
    }
    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ToWorker;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<ToWorker>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        ToWorker::decode(bytes).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

/// The two directions of a stream of bytes.
pub type Ends = (mpsc::Sender<Bytes>, Streaming<ToWorker>);

/// Opens a stream on a connection.
pub async fn open(channel: Channel) -> Result<Ends, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let (say, said) = mpsc::channel::<Bytes>(16);
    let path = http::uri::PathAndQuery::from_static("/podracer.seed.v1.Seed/Work");
    let request = Request::new(ReceiverStream::new(said));
    let told = client.streaming(request, path, Raw).await?.into_inner();
    Ok((say, told))
}

/// A message as its bytes.
pub fn encode(message: WorkerMessage) -> Bytes {
    FromWorker { message: Some(message) }.encode_to_vec().into()
}
