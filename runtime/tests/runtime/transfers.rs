//! The transfer counters: tests can assert the transfers of a call.

use podracer_runtime::{Argument, Array, Count, RuntimeError, process_transfers};

use crate::programs::{compile, device, step};

#[test]
fn a_loop_on_the_device_moves_only_what_is_fetched() {
    let executable = compile(&step());
    let zeros = Array::from_slice([1024], &[0.0f32; 1024]).unwrap();
    let mut state = executable.upload(0, 0, &zeros).unwrap();
    let before = executable.transfers().counts();
    assert_eq!(before.to_device, Count { calls: 1, bytes: 4096 });

    let mut sum = 0.0;
    for _ in 0..10 {
        let mut results =
            executable.execute(vec![vec![Argument::Donated(state)]]).unwrap().remove(0);
        sum = results.pop().unwrap().to_host().unwrap().item::<f32>().unwrap();
        state = results.pop().unwrap();
    }
    assert_eq!(sum, 9.0 * 1024.0);

    let moved = executable.transfers().counts() - before;
    assert_eq!(moved.to_device, Count::default());
    assert_eq!(moved.to_host, Count { calls: 10, bytes: 40 });
    assert_eq!(moved.between_devices, Count::default());

    drop(state.copy_to(&device(1)).unwrap());
    let moved = executable.transfers().counts() - before;
    assert_eq!(moved.between_devices, Count { calls: 1, bytes: 4096 });
    // Other tests transfer at the same time.
    assert!(process_transfers().to_host.calls >= 10);
}

#[test]
fn uploads_are_checked_against_the_arguments() {
    let executable = compile(&step());
    let wrong = Array::from_slice([4], &[0.0f32; 4]).unwrap();
    assert!(matches!(executable.upload(0, 0, &wrong), Err(RuntimeError::ArgumentType { .. })));
    assert!(matches!(executable.upload(0, 1, &wrong), Err(RuntimeError::ArgumentCount { .. })));
    assert!(matches!(executable.upload(1, 0, &wrong), Err(RuntimeError::ReplicaCount { .. })));
    assert_eq!(executable.transfers().counts(), Default::default());
}
