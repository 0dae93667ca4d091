//! Small modules, and the client that all tests share.

use std::sync::OnceLock;

use podracer_compiler::{DType, TensorType};
use podracer_runtime::pjrt::Device;
use podracer_runtime::{
    Argument, Array, Buffer, Client, ClientOptions, CompileOptions, Element, Executable, Module,
};

/// A client with two devices on every machine. XLA wants few clients per process.
pub fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() }).unwrap()
    })
}

pub fn device(index: usize) -> Device {
    client().device(index).unwrap()
}

pub fn f32s(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

/// `x + y` on `f32[2,2]`.
pub fn add() -> Module {
    let ty = f32s(&[2, 2]);
    let text = r"
module @add {
  func.func public @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.add %x, %y : tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
}";
    Module::new(text, vec![ty.clone(), ty.clone()], vec![ty])
}

/// `(x + 1, sum(x))` on `f32[1024]`, where the first result may take over the argument's memory.
pub fn step() -> Module {
    let ty = f32s(&[1024]);
    let text = r"
module @step {
  func.func public @main(%x: tensor<1024xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<1024xf32>, tensor<f32>) {
    %one = stablehlo.constant dense<1.0> : tensor<1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %next = stablehlo.add %x, %one : tensor<1024xf32>
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
    return %next, %sum : tensor<1024xf32>, tensor<f32>
  }
}";
    Module::new(text, vec![ty.clone()], vec![ty, f32s(&[])])
}

/// The sum of `f32[4]` over the replicas.
pub fn all_reduce(replicas: usize) -> Module {
    let group = (0..replicas).map(|replica| replica.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"
module @all_reduce attributes {{mhlo.num_replicas = {replicas} : i32}} {{
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = "stablehlo.all_reduce"(%x) <{{
      replica_groups = dense<[[{group}]]> : tensor<1x{replicas}xi64>
    }}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }}) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}"#
    );
    Module::new(text, vec![f32s(&[4])], vec![f32s(&[4])])
}

/// The module compiled with default options.
pub fn compile(module: &Module) -> Executable {
    client().compile(module, &CompileOptions::default()).unwrap()
}

pub fn buffer<T: Element>(shape: &[usize], values: &[T], device: &Device) -> Buffer {
    Buffer::from_host(&Array::from_slice(shape, values).unwrap(), device).unwrap()
}

pub fn values(buffer: &Buffer) -> Vec<f32> {
    buffer.to_host().unwrap().to_vec().unwrap()
}

pub fn kept<'a>(buffers: impl IntoIterator<Item = &'a Buffer>) -> Vec<Argument<'a>> {
    buffers.into_iter().map(Argument::Kept).collect()
}
