//! Compiling for a TPU pod on a machine without a TPU.

use podracer_runtime::{Collective, CompileOptions, Plugin, RuntimeError, Topology};

use crate::programs::{all_reduce, client};
use podracer_test_support::skip::skip;

#[test]
fn the_cpu_has_no_topologies() {
    assert!(matches!(Topology::new(client().plugin(), "cpu", &[]), Err(RuntimeError::Xla { .. })));
}

#[test]
fn a_loop_is_compiled_for_tpus_that_are_not_there() {
    if podracer_plugins::find("tpu").is_err() {
        skip("no plugin `tpu`: `podracer plugins install tpu`");
        return;
    }
    let plugin = Plugin::load("tpu").unwrap();
    let topology = Topology::new(plugin, "v5e:2x4", &[]).unwrap();
    assert_eq!(topology.devices().unwrap(), 8);
    assert_eq!(topology.platform().unwrap(), "tpu");
    let options = CompileOptions { replicas: 8, ..CompileOptions::default() };
    let compiled = topology.compile(&all_reduce(8), &options).unwrap();
    let optimized = compiled.optimized().unwrap();
    let reduction =
        Collective { opcode: "all-reduce".to_owned(), tensors: 1, elements: 4, loops: 0 };
    assert_eq!(optimized.collectives(), [reduction], "{optimized}");
    assert_eq!(optimized.aliased_arguments(), 0);
    assert!(optimized.host_transfers().is_empty());
    assert!(compiled.memory_stats().unwrap().outputs >= 16);

    let mut wrong = all_reduce(8);
    wrong.arguments[0].shape = [2, 2][..].into();
    assert!(matches!(topology.compile(&wrong, &options), Err(RuntimeError::Signature { .. })));
    let too_many = CompileOptions { replicas: 9, ..CompileOptions::default() };
    assert!(matches!(topology.compile(&all_reduce(9), &too_many), Err(RuntimeError::Options(_))));
    let six = CompileOptions { replicas: 6, ..CompileOptions::default() };
    let ring = topology.compile(&all_reduce(6), &six).err().unwrap();
    assert_eq!(
        ring.to_string(),
        "6 of the 8 devices of v5e:2x4 cannot reduce among themselves: XLA takes 2, 4, 8 there"
    );
    assert!(matches!(Topology::new(plugin, "v5e:nonsense", &[]), Err(RuntimeError::Xla { .. })));
}
