//! Running programs: values, donation, and every mistake that must be an error before XLA sees it.

use podracer_compiler::{DType, TensorType};
use podracer_runtime::{
    Argument, Array, Buffer, Client, ClientOptions, CompileOptions, Module, Plugin, RuntimeError,
};

use crate::programs::{add, all_reduce, buffer, client, compile, device, kept, step, values};

#[test]
fn add_adds() {
    let executable = compile(&add());
    let x = buffer(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0], &device(0));
    let y = buffer(&[2, 2], &[10.0f32, 20.0, 30.0, 40.0], &device(0));
    let results = executable.execute(vec![kept([&x, &y])]).unwrap();
    results[0][0].ready().unwrap().wait().unwrap();
    assert_eq!(values(&results[0][0]), [11.0, 22.0, 33.0, 44.0]);
    assert_eq!(results[0][0].ty(), &TensorType::new(DType::F32, [2, 2]));
    assert_eq!(values(&x), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn every_element_type_survives_the_round_trip() {
    for dtype in DType::ALL {
        let ty = TensorType::new(dtype, [3, 2]);
        let bytes: Vec<u8> = (0..ty.bytes()).map(|byte| (byte % 2) as u8).collect();
        let array = Array::from_bytes(ty, bytes).unwrap();
        assert_eq!(
            Buffer::from_host(&array, &device(1)).unwrap().to_host().unwrap(),
            array,
            "{dtype}"
        );
    }
    for empty in [
        Array::from_slice::<f32>([0], &[]).unwrap(),
        Array::from_slice::<i8>([2, 0, 3], &[]).unwrap(),
    ] {
        assert_eq!(Buffer::from_host(&empty, &device(0)).unwrap().to_host().unwrap(), empty);
    }
}

#[test]
fn results_are_row_major_whatever_the_layout_on_the_device() {
    let text = r"
module @transpose {
  func.func public @main(%x: tensor<2x3xi32>) -> tensor<3x2xi32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
    return %0 : tensor<3x2xi32>
  }
}";
    let (x, y) = (TensorType::new(DType::I32, [2, 3]), TensorType::new(DType::I32, [3, 2]));
    let executable = compile(&Module::new(text, vec![x], vec![y]));
    let x = buffer(&[2, 3], &[0i32, 1, 2, 3, 4, 5], &device(0));
    let results = executable.execute(vec![kept([&x])]).unwrap();
    assert_eq!(results[0][0].to_host().unwrap().to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
}

#[test]
fn a_donated_argument_gives_its_memory_to_the_result() {
    let executable = compile(&step());
    let x = buffer(&[1024], &[1.0f32; 1024], &device(0));
    let address = x.address().unwrap();
    let results = executable.execute(vec![vec![Argument::Donated(x)]]).unwrap();
    assert_eq!(results[0][0].address().unwrap(), address);
    assert_eq!(values(&results[0][1]), [1024.0]);
}

#[test]
fn a_kept_argument_survives_a_program_that_would_reuse_it() {
    let executable = compile(&step());
    let x = buffer(&[1024], &[1.0f32; 1024], &device(0));
    let results = executable.execute(vec![kept([&x])]).unwrap();
    assert_eq!(values(&results[0][0]), [2.0; 1024]);
    assert!(!x.is_deleted().unwrap());
    assert_eq!(values(&x), [1.0; 1024]);
}

#[test]
fn replicas_meet_in_a_collective() {
    let options = CompileOptions { replicas: 2, ..CompileOptions::default() };
    let executable = client().compile(&all_reduce(2), &options).unwrap();
    let x = buffer(&[4], &[1.0f32, 2.0, 3.0, 4.0], &device(0));
    let y = buffer(&[4], &[10.0f32, 20.0, 30.0, 40.0], &device(1));
    let results = executable.execute(vec![kept([&x]), kept([&y])]).unwrap();
    for (replica, results) in results.iter().enumerate() {
        assert_eq!(values(&results[0]), [11.0, 22.0, 33.0, 44.0]);
        assert_eq!(results[0].device(), &device(replica));
    }
}

#[test]
fn replicated_programs_of_several_threads_do_not_wait_for_each_other() {
    let options = CompileOptions { replicas: 2, ..CompileOptions::default() };
    let executable = client().compile(&all_reduce(2), &options).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let x = buffer(&[4], &[1.0f32; 4], &device(0));
                let y = buffer(&[4], &[2.0f32; 4], &device(1));
                for _ in 0..50 {
                    let results = executable.execute(vec![kept([&x]), kept([&y])]).unwrap();
                    assert_eq!(values(&results[1][0]), [3.0; 4]);
                }
            });
        }
    });
}

#[test]
fn a_program_runs_where_it_is_placed() {
    let options = CompileOptions { device_assignment: Some(vec![1]), ..CompileOptions::default() };
    let executable = client().compile(&add(), &options).unwrap();
    let x = buffer(&[2, 2], &[1.0f32; 4], &device(1));
    let results = executable.execute(vec![kept([&x, &x])]).unwrap();
    assert_eq!(results[0][0].device(), &device(1));
    assert_eq!(values(&results[0][0]), [2.0; 4]);
}

#[test]
fn a_program_without_results_is_waited_for() {
    let text = "module @none { func.func public @main(%x: tensor<f32>) { return } }";
    let executable = compile(&Module::new(text, vec![TensorType::scalar(DType::F32)], vec![]));
    let results = executable.execute(vec![kept([&buffer(&[], &[1.0f32], &device(0))])]).unwrap();
    assert_eq!(results.len(), 1);
    assert!(results[0].is_empty());
}

#[test]
fn mistakes_are_found_before_the_launch_and_give_donated_buffers_back() {
    let executable = compile(&add());
    let x = || buffer(&[2, 2], &[1.0f32; 4], &device(0));

    let error = executable.execute(vec![]).unwrap_err();
    assert!(matches!(*error.error, RuntimeError::ReplicaCount { expected: 1, got: 0 }));
    let error = executable.execute(vec![vec![], vec![]]).unwrap_err();
    assert!(matches!(*error.error, RuntimeError::ReplicaCount { expected: 1, got: 2 }));

    let error = executable.execute(vec![vec![Argument::Donated(x())]]).unwrap_err();
    assert_eq!(error.to_string(), "the program takes 2 argument(s) and replica 0 was given 1");
    assert_eq!(error.donated.len(), 1);
    assert_eq!(error.donated[0].0, (0, 0));
    assert_eq!(values(&error.donated[0].1), [1.0; 4]);

    // The same bytes: XLA would run both.
    let integers = buffer(&[2, 2], &[1i32; 4], &device(0));
    let error = executable
        .execute(vec![vec![Argument::Donated(x()), Argument::Kept(&integers)]])
        .unwrap_err();
    assert_eq!(error.to_string(), "argument 1 of replica 0 must be f32[2,2] and is i32[2,2]");
    assert_eq!(error.donated.len(), 1);
    let flat = buffer(&[4], &[1.0f32; 4], &device(0));
    let error = executable.execute(vec![kept([&flat, &x()])]).unwrap_err();
    assert_eq!(error.to_string(), "argument 0 of replica 0 must be f32[2,2] and is f32[4]");

    let elsewhere = x().copy_to(&device(1)).unwrap();
    let error = executable.execute(vec![kept([&elsewhere, &x()])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 0 of replica 0 must be on cpu:0 and is on cpu:1: copy it with `Buffer::copy_to`"
    );

    let deleted = x();
    deleted.delete().unwrap();
    let error = executable
        .execute(vec![vec![Argument::Donated(x()), Argument::Kept(&deleted)]])
        .unwrap_err();
    assert_eq!(error.to_string(), "argument 1 of replica 0, f32[2,2], was deleted");
    assert_eq!(error.donated.len(), 1);
    // A deleted buffer is not worth giving back.
    let error = executable
        .execute(vec![vec![Argument::Donated(deleted), Argument::Donated(x())]])
        .unwrap_err();
    assert_eq!(error.donated.len(), 1);
}

#[test]
fn a_buffer_of_another_client_is_an_error() {
    let other = Client::new(
        Plugin::load("cpu").unwrap(),
        ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() },
    )
    .unwrap();
    let foreign = buffer(&[2, 2], &[1.0f32; 4], &other.device(0).unwrap());
    let error = compile(&add()).execute(vec![kept([&foreign, &foreign])]).unwrap_err();
    assert!(error.to_string().contains("of another client"), "{error}");
    let error = foreign.copy_to(&device(0)).unwrap_err();
    assert!(error.to_string().contains("of another client"), "{error}");
}

#[test]
fn deleted_buffers_cannot_be_read() {
    let x = buffer(&[2], &[1.0f32; 2], &device(0));
    x.delete().unwrap();
    x.delete().unwrap();
    assert!(x.is_deleted().unwrap());
    assert_eq!(x.to_host().unwrap_err().to_string(), "the buffer, f32[2], was deleted");
    assert!(matches!(x.copy_to(&device(1)), Err(RuntimeError::Deleted(_))));
    assert!(matches!(x.ready(), Err(RuntimeError::Deleted(_))));
}

#[test]
fn copies_are_independent() {
    let x = buffer(&[3], &[1.0f32, 2.0, 3.0], &device(0));
    let here = x.copy_to(&device(0)).unwrap();
    let there = x.copy_to(&device(1)).unwrap();
    x.delete().unwrap();
    assert_eq!(values(&here), [1.0, 2.0, 3.0]);
    assert_eq!(values(&there), [1.0, 2.0, 3.0]);
    assert_eq!(there.device(), &device(1));
}

#[test]
fn buffers_outlive_everything_they_were_made_with() {
    let result = {
        let client =
            Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })
                .unwrap();
        let executable = client.compile(&add(), &CompileOptions::default()).unwrap();
        let x = buffer(&[2, 2], &[1.0f32; 4], &client.device(0).unwrap());
        executable.execute(vec![kept([&x, &x])]).unwrap().remove(0).remove(0)
    };
    assert_eq!(values(&result), [2.0; 4]);
}
