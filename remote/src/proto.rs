//! The messages and the service of the protocol, made of `proto/podracer/seed/v1/seed.proto` by the test
//! `messages_are_those_of_the_protocol` under `PODRACER_BLESS=1`, and not by hand.
#![allow(missing_docs, clippy::all)]

#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DescribeRequest {
    /// The newest protocol that the worker speaks: 3 in this file.
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
}
/// The run: what is being trained, and on what.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Run {
    /// The newest protocol that the learner speaks: 3. It speaks those before it, too.
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    /// The run: the same after the learner was stopped and went on, another for another run.
    #[prost(string, tag = "2")]
    pub id: ::prost::alloc::string::String,
    /// The environment's name in podracer's registry, such as `cartpole` or `gymnasium`.
    #[prost(string, tag = "3")]
    pub environment: ::prost::alloc::string::String,
    /// All settings of the environment, as a JSON object: the table `\[environment\]` of the experiment without its name.
    #[prost(string, tag = "4")]
    pub settings: ::prost::alloc::string::String,
    /// The spaces of one environment.
    #[prost(message, optional, tag = "5")]
    pub spaces: ::core::option::Option<Spaces>,
    /// Most environments that one worker may have.
    #[prost(uint32, tag = "6")]
    pub most_environments: u32,
    /// Steps of a rollout. Environments of podracer's DSL draw their random numbers by it; others have no use for it.
    #[prost(uint32, tag = "7")]
    pub unroll: u32,
}
/// The spaces of one environment: what it shows and takes.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Spaces {
    #[prost(message, optional, tag = "1")]
    pub observation: ::core::option::Option<Space>,
    #[prost(message, optional, tag = "2")]
    pub action: ::core::option::Option<Space>,
    /// If true, episodes may be cut off (`Step.truncated`); steps then have `Step.final_observations`.
    #[prost(bool, tag = "3")]
    pub truncates: bool,
    /// If true, an episode begins in a step of its own, after the step that ended the last one: a reset-only step, which ignores
    /// its action and sets both `terminated` and `truncated`. If false, the step that ends an episode shows the first
    /// observation of the next one.
    #[prost(bool, tag = "4")]
    pub skips: bool,
    /// If true, steps have `Step.legal_actions`: the actions are discrete, and some may not be taken in some states. Since protocol 3.
    #[prost(bool, tag = "5")]
    pub masks: bool,
}
/// The values of one environment's observation or action. One of them takes `size(dtype) * product(shape)` bytes.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Space {
    #[prost(enumeration = "SpaceKind", tag = "1")]
    pub kind: i32,
    #[prost(enumeration = "DType", tag = "2")]
    pub dtype: i32,
    #[prost(uint64, repeated, tag = "3")]
    pub shape: ::prost::alloc::vec::Vec<u64>,
    /// DISCRETE, MULTI_DISCRETE: number of values of each element.
    #[prost(uint64, repeated, tag = "4")]
    pub counts: ::prost::alloc::vec::Vec<u64>,
    /// BOX: least values, one for all elements or one for each in row-major order; infinity for none. A worker that leaves both
    /// `low` and `high` empty claims no bounds, and they are not compared.
    #[prost(double, repeated, tag = "5")]
    pub low: ::prost::alloc::vec::Vec<f64>,
    /// BOX: greatest values.
    #[prost(double, repeated, tag = "6")]
    pub high: ::prost::alloc::vec::Vec<f64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FromWorker {
    #[prost(oneof = "from_worker::Message", tags = "1, 2")]
    pub message: ::core::option::Option<from_worker::Message>,
}
/// Nested message and enum types in `FromWorker`.
pub mod from_worker {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Message {
        /// First, and once.
        #[prost(message, tag = "1")]
        Hello(super::Hello),
        /// Then this: one for each `Actions`, and one before the first.
        #[prost(message, tag = "2")]
        Step(super::Step),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ToWorker {
    #[prost(oneof = "to_worker::Message", tags = "1, 2")]
    pub message: ::core::option::Option<to_worker::Message>,
}
/// Nested message and enum types in `ToWorker`.
pub mod to_worker {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Message {
        /// First, and once.
        #[prost(message, tag = "1")]
        Welcome(super::Welcome),
        /// Then this: one for each `Step`.
        #[prost(message, tag = "2")]
        Actions(super::Actions),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Hello {
    /// The protocol that the worker speaks: 1, or 2, in which rewards and flags are shorter.
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    /// Number of environments of this worker, n: at least 1.
    #[prost(uint32, tag = "2")]
    pub environments: u32,
    /// Their spaces, which must be those of the run.
    #[prost(message, optional, tag = "3")]
    pub spaces: ::core::option::Option<Spaces>,
    /// `Run.id` if the worker made its environments for one run; empty to work for any run of these spaces.
    #[prost(string, tag = "4")]
    pub run: ::prost::alloc::string::String,
    /// The worker's name in the learner's messages: program, machine, process. At most 200 bytes; may be empty.
    #[prost(string, tag = "5")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Welcome {
    #[prost(message, optional, tag = "1")]
    pub run: ::core::option::Option<Run>,
    /// Index of the worker's first environment among all of the run: it has the lanes `first_lane .. first_lane + n`.
    #[prost(uint64, tag = "2")]
    pub first_lane: u64,
    /// Seed of the run, any u64. Environments should draw from the seed and their own lane, so that it does not matter who steps them.
    #[prost(uint64, tag = "3")]
    pub seed: u64,
}
/// All environments of the worker have stepped, or begun.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Step {
    /// 0 for the first observations; then the number of the actions that were taken, plus 1.
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// The observations to act on next: finite, and within their space. \[n, ...\]
    #[prost(bytes = "bytes", tag = "2")]
    pub observation: ::prost::bytes::Bytes,
    /// Rewards of the step, of a magnitude of at most `central.reward_bound` of the run, a million by default; zeros at sequence 0.
    /// F32 \[n\]. Protocol 2: also F32 \[1\], if all are equal.
    #[prost(bytes = "bytes", tag = "3")]
    pub reward: ::prost::bytes::Bytes,
    /// 1 if the episode ended by itself in this step, and then `truncated` is 0; else 0; zeros at sequence 0. Protocol 1: U8 \[n\].
    /// Protocol 2: empty if all are 0;
    /// else bits in ceil(n / 8) bytes, environment i's being bit i % 8, from the lowest, of byte i / 8.
    #[prost(bytes = "bytes", tag = "4")]
    pub terminated: ::prost::bytes::Bytes,
    /// 1 if the episode was cut off in this step, else 0; zeros at sequence 0. Both flags: a reset-only step. As `terminated`.
    #[prost(bytes = "bytes", tag = "5")]
    pub truncated: ::prost::bytes::Bytes,
    /// If `Spaces.truncates`: for each environment with a flag, in order, its observation after the step and before any reset.
    /// Of k environments with a flag, \[k, ...\]. Empty if the environments never truncate.
    #[prost(bytes = "bytes", tag = "6")]
    pub final_observations: ::prost::bytes::Bytes,
    /// If `Spaces.masks`: bits \[n, a\], 1 for each action that is legal next, in ceil(n * a / 8) bytes, bit i being bit i % 8, from the
    /// lowest, of byte i / 8. DISCRETE: a = `counts\[0\]`. MULTI_DISCRETE: a is the sum of `counts`, element 0's values first. Each
    /// environment, and each of its elements, has a legal action. Empty if the environments have no masks.
    #[prost(bytes = "bytes", tag = "7")]
    pub legal_actions: ::prost::bytes::Bytes,
    /// Share of its task that was done in each episode that ended, from 0 to 1: of k environments with a flag, in order, F32 \[k\]. It is for the
    /// metric `episode_success` of a run whose environments have one. Empty if the worker does not tell it; older learners ignore it.
    #[prost(bytes = "bytes", tag = "8")]
    pub success: ::prost::bytes::Bytes,
}
/// The actions that the environments take next.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Actions {
    /// The sequence of the step that these answer.
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// \[n, ...\] of the action space's dtype and shape.
    #[prost(bytes = "bytes", tag = "2")]
    pub actions: ::prost::bytes::Bytes,
    /// The number of updates behind the parameters that chose them.
    #[prost(uint64, tag = "3")]
    pub version: u64,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum DType {
    DtypeUnspecified = 0,
    /// 32-bit signed integer.
    I32 = 1,
    /// 32-bit IEEE 754.
    F32 = 2,
    /// 8-bit unsigned integer.
    U8 = 3,
}
impl DType {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::DtypeUnspecified => "DTYPE_UNSPECIFIED",
            Self::I32 => "I32",
            Self::F32 => "F32",
            Self::U8 => "U8",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "DTYPE_UNSPECIFIED" => Some(Self::DtypeUnspecified),
            "I32" => Some(Self::I32),
            "F32" => Some(Self::F32),
            "U8" => Some(Self::U8),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum SpaceKind {
    Unspecified = 0,
    /// One of `0..counts\[0\]`; I32 of shape \[\].
    Discrete = 1,
    /// Element i is one of `0..counts\[i\]`; I32 of shape \[k\].
    MultiDiscrete = 2,
    /// F32 of any shape, between `low` and `high`. An action of several parts is one, F32 of shape \[k\], with its choices as whole numbers.
    Box = 3,
    /// An image of 0 to 255; U8 of shape \[height, width, channels\].
    Pixels = 4,
}
impl SpaceKind {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "SPACE_KIND_UNSPECIFIED",
            Self::Discrete => "DISCRETE",
            Self::MultiDiscrete => "MULTI_DISCRETE",
            Self::Box => "BOX",
            Self::Pixels => "PIXELS",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "SPACE_KIND_UNSPECIFIED" => Some(Self::Unspecified),
            "DISCRETE" => Some(Self::Discrete),
            "MULTI_DISCRETE" => Some(Self::MultiDiscrete),
            "BOX" => Some(Self::Box),
            "PIXELS" => Some(Self::Pixels),
            _ => None,
        }
    }
}
/// Generated client implementations.
pub mod seed_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    #[derive(Debug, Clone)]
    pub struct SeedClient<T> {
        inner: tonic::client::Grpc<T>,
    }
    impl<T> SeedClient<T>
    where
        T: tonic::client::GrpcService<tonic::body::Body>,
        T::Error: Into<StdError>,
        T::ResponseBody: Body<Data = Bytes> + std::marker::Send + 'static,
        <T::ResponseBody as Body>::Error: Into<StdError> + std::marker::Send,
    {
        pub fn new(inner: T) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: T, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        pub fn with_interceptor<F>(
            inner: T,
            interceptor: F,
        ) -> SeedClient<InterceptedService<T, F>>
        where
            F: tonic::service::Interceptor,
            T::ResponseBody: Default,
            T: tonic::codegen::Service<
                http::Request<tonic::body::Body>,
                Response = http::Response<
                    <T as tonic::client::GrpcService<tonic::body::Body>>::ResponseBody,
                >,
            >,
            <T as tonic::codegen::Service<
                http::Request<tonic::body::Body>,
            >>::Error: Into<StdError> + std::marker::Send + std::marker::Sync,
        {
            SeedClient::new(InterceptedService::new(inner, interceptor))
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        /// Tells what is being trained: for workers that make their environments by what the learner says. A worker that has its
        /// environments already may call `Work` at once.
        pub async fn describe(
            &mut self,
            request: impl tonic::IntoRequest<super::DescribeRequest>,
        ) -> std::result::Result<tonic::Response<super::Run>, tonic::Status> {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/podracer.seed.v1.Seed/Describe",
            );
            let mut req = request.into_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("podracer.seed.v1.Seed", "Describe"));
            self.inner.unary(req, path, codec).await
        }
        /// The life of a worker. The stream ends
        ///   with OK                   when the run is complete: the worker is done.
        ///   with FAILED_PRECONDITION  when the worker does not fit the run (protocol, number of environments, spaces): it should end, and
        ///                             print why.
        ///   with INVALID_ARGUMENT     when it sent what this file forbids: it should end, and print why.
        ///   with RESOURCE_EXHAUSTED   when there is no room for it now: it should come again later.
        ///   with ABORTED              when the learner sent it away, or has another run than `Hello.run`: it should come again later.
        ///   with DEADLINE_EXCEEDED    when it said nothing for too long: it should come again.
        ///   with UNAVAILABLE          when the learner stops or is gone: it should come again. A wrong certificate looks the same to most
        ///                             clients: one that never got as far as `Welcome` should say so after some attempts.
        /// The message of the status says why in a sentence. Pauses double from 0.1 to 10 seconds, each drawn at random between half of it and
        /// all of it, so that workers do not come all at once.
        ///
        /// `Hello` is due within 10 s of the connection (2 s for TLS), the first step within 120 s of `Welcome`, each further one within 300 s of its
        /// answer. `Welcome` and `Actions` have no deadline: a learner that compiles, learns or waits for lanes may take minutes. It pings every 10 s
        /// (HTTP/2) and expects an answer within 30 s. A connection that sends more than one step before an answer, or has had no stream for 5 s, is
        /// cut off. `:authority` must be a host's name, also for a Unix socket; in TLS the learner's name is `podracer-learner`. A worker that is done
        /// closes its half of the stream.
        pub async fn work(
            &mut self,
            request: impl tonic::IntoStreamingRequest<Message = super::FromWorker>,
        ) -> std::result::Result<
            tonic::Response<tonic::codec::Streaming<super::ToWorker>>,
            tonic::Status,
        > {
            self.inner
                .ready()
                .await
                .map_err(|e| {
                    tonic::Status::unknown(
                        format!("Service was not ready: {}", e.into()),
                    )
                })?;
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static(
                "/podracer.seed.v1.Seed/Work",
            );
            let mut req = request.into_streaming_request();
            req.extensions_mut()
                .insert(GrpcMethod::new("podracer.seed.v1.Seed", "Work"));
            self.inner.streaming(req, path, codec).await
        }
    }
}
/// Generated server implementations.
pub mod seed_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with SeedServer.
    #[async_trait]
    pub trait Seed: std::marker::Send + std::marker::Sync + 'static {
        /// Tells what is being trained: for workers that make their environments by what the learner says. A worker that has its
        /// environments already may call `Work` at once.
        async fn describe(
            &self,
            request: tonic::Request<super::DescribeRequest>,
        ) -> std::result::Result<tonic::Response<super::Run>, tonic::Status>;
        /// Server streaming response type for the Work method.
        type WorkStream: tonic::codegen::tokio_stream::Stream<
                Item = std::result::Result<super::ToWorker, tonic::Status>,
            >
            + std::marker::Send
            + 'static;
        /// The life of a worker. The stream ends
        ///   with OK                   when the run is complete: the worker is done.
        ///   with FAILED_PRECONDITION  when the worker does not fit the run (protocol, number of environments, spaces): it should end, and
        ///                             print why.
        ///   with INVALID_ARGUMENT     when it sent what this file forbids: it should end, and print why.
        ///   with RESOURCE_EXHAUSTED   when there is no room for it now: it should come again later.
        ///   with ABORTED              when the learner sent it away, or has another run than `Hello.run`: it should come again later.
        ///   with DEADLINE_EXCEEDED    when it said nothing for too long: it should come again.
        ///   with UNAVAILABLE          when the learner stops or is gone: it should come again. A wrong certificate looks the same to most
        ///                             clients: one that never got as far as `Welcome` should say so after some attempts.
        /// The message of the status says why in a sentence. Pauses double from 0.1 to 10 seconds, each drawn at random between half of it and
        /// all of it, so that workers do not come all at once.
        ///
        /// `Hello` is due within 10 s of the connection (2 s for TLS), the first step within 120 s of `Welcome`, each further one within 300 s of its
        /// answer. `Welcome` and `Actions` have no deadline: a learner that compiles, learns or waits for lanes may take minutes. It pings every 10 s
        /// (HTTP/2) and expects an answer within 30 s. A connection that sends more than one step before an answer, or has had no stream for 5 s, is
        /// cut off. `:authority` must be a host's name, also for a Unix socket; in TLS the learner's name is `podracer-learner`. A worker that is done
        /// closes its half of the stream.
        async fn work(
            &self,
            request: tonic::Request<tonic::Streaming<super::FromWorker>>,
        ) -> std::result::Result<tonic::Response<Self::WorkStream>, tonic::Status>;
    }
    #[derive(Debug)]
    pub struct SeedServer<T> {
        inner: Arc<T>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl<T> SeedServer<T> {
        pub fn new(inner: T) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<T>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        pub fn with_interceptor<F>(
            inner: T,
            interceptor: F,
        ) -> InterceptedService<Self, F>
        where
            F: tonic::service::Interceptor,
        {
            InterceptedService::new(Self::new(inner), interceptor)
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl<T, B> tonic::codegen::Service<http::Request<B>> for SeedServer<T>
    where
        T: Seed,
        B: Body + std::marker::Send + 'static,
        B::Error: Into<StdError> + std::marker::Send + 'static,
    {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<B>) -> Self::Future {
            match req.uri().path() {
                "/podracer.seed.v1.Seed/Describe" => {
                    #[allow(non_camel_case_types)]
                    struct DescribeSvc<T: Seed>(pub Arc<T>);
                    impl<T: Seed> tonic::server::UnaryService<super::DescribeRequest>
                    for DescribeSvc<T> {
                        type Response = super::Run;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DescribeRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Seed>::describe(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DescribeSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/podracer.seed.v1.Seed/Work" => {
                    #[allow(non_camel_case_types)]
                    struct WorkSvc<T: Seed>(pub Arc<T>);
                    impl<T: Seed> tonic::server::StreamingService<super::FromWorker>
                    for WorkSvc<T> {
                        type Response = super::ToWorker;
                        type ResponseStream = T::WorkStream;
                        type Future = BoxFuture<
                            tonic::Response<Self::ResponseStream>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<tonic::Streaming<super::FromWorker>>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Seed>::work(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = WorkSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl<T> Clone for SeedServer<T> {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "podracer.seed.v1.Seed";
    impl<T> tonic::server::NamedService for SeedServer<T> {
        const NAME: &'static str = SERVICE_NAME;
    }
}
