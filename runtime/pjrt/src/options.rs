//! Options of a compilation: replicas, placement, and XLA's options by name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use prost::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::proto::{
    CompileOptionsProto, ComputationDevice, DeviceAssignmentProto, ExecutableBuildOptionsProto,
    ExtraDebugOptions, OptionOverride, OptionOverrideProto,
};
use crate::{Client, Module, Processes, RuntimeError, flags};

/// The option that is itself a list of options.
const EXTRA: &str = "xla_backend_extra_options";

type Extra = BTreeMap<String, String>;
type Overrides = BTreeMap<String, OptionOverrideProto>;

/// The value of one of XLA's options.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names say it")]
pub enum OptionValue {
    String(String),
    Bool(bool),
    Int(i64),
    Float(f64),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(value) => f.write_str(value),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// Options of a compilation. They change floating-point results, so they belong to the recorded configuration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileOptions {
    /// Number of this process's devices that the module runs on at once.
    pub replicas: usize,
    /// The processes that run the module together, each on equally many devices: one process, or
    /// the client's processes ([`Client::processes`]).
    pub processes: Processes,
    /// The device of each replica, by index in [`crate::Client::devices`]; by default the first
    /// devices. Must be `None` when compiling for a topology.
    pub device_assignment: Option<Vec<usize>>,
    /// XLA's options (names as in `XLA_FLAGS`, without `--`), which override podracer's rule:
    /// unnamed options have the value of [`XlaOptions::for_platform`]. A name or value that XLA
    /// does not understand is an error of the compilation. `xla_backend_extra_options`, a list
    /// `name=value,name=value`, may contain options that podracer knows to be safe:
    /// `xla_cpu_small_while_loop_byte_threshold`, `xla_cpu_use_multi_output_fusion`, and LLVM's
    /// `-disable-lsr`.
    pub xla: Vec<(String, OptionValue)>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self { replicas: 1, processes: Processes::ONE, device_assignment: None, xla: Vec::new() }
    }
}

impl CompileOptions {
    /// The number of devices, over all processes, that run the module together.
    #[must_use]
    pub fn members(&self) -> usize {
        self.replicas * self.processes.count
    }

    /// Checks that the processes which run programs together compile the same programs, with the
    /// same options. Programs with different collectives would wait for each other forever. Every
    /// process calls this, in the same order.
    ///
    /// # Errors
    /// [`RuntimeError::Processes`] with the difference, and the process that differs.
    pub fn agree(&self, client: &Client, modules: &[&Module]) -> Result<(), RuntimeError> {
        let Some(world) = client.world().filter(|_| self.processes.count > 1) else {
            return Ok(());
        };
        let mut text = Sha256::new();
        modules.iter().for_each(|module| text.update(module.key()));
        let xla: Vec<String> =
            (self.xla.iter()).map(|(name, value)| format!("{name}={value}")).collect();
        // The text has the number of devices too, and says less of it.
        world.agree(&[
            ("the number of devices", self.replicas.to_string()),
            ("the program's text", format!("{:x}", text.finalize())),
            ("XLA's options", xla.join(" ")),
        ])?;
        client.meet(world)
    }

    /// The placement as device indices, on a client with `devices` devices.
    ///
    /// # Errors
    /// [`RuntimeError::Options`] for more replicas than devices, and for devices that are not there or named twice.
    pub fn placement(&self, devices: usize) -> Result<Vec<usize>, RuntimeError> {
        let wrong = |problem: String| Err(RuntimeError::Options(problem));
        let replicas = self.replicas;
        if replicas == 0 {
            return wrong("a program needs at least one replica and 0 were asked for".to_owned());
        }
        if replicas > devices {
            return wrong(format!(
                "{replicas} replicas need as many devices and there are {devices}"
            ));
        }
        let placement = self.device_assignment.clone().unwrap_or_else(|| (0..replicas).collect());
        if placement.len() != self.replicas {
            let named = placement.len();
            return wrong(format!(
                "{replicas} replica(s) need as many devices and the device assignment names {named}"
            ));
        }
        for (replica, &index) in placement.iter().enumerate() {
            if index >= devices {
                return wrong(format!(
                    "replica {replica} is to run on device {index} and there are {devices} device(s)"
                ));
            }
            if placement[..replica].contains(&index) {
                return wrong(format!("device {index} is assigned to two replicas"));
            }
        }
        Ok(placement)
    }

    /// These options and, for the names that they leave open, podracer's rule. Whatever compiles a program asks for this, so
    /// that the rule holds for every program.
    pub fn with_rule(&self, platform: &str) -> Self {
        let mut options = self.clone();
        options.fill(XlaOptions::for_platform(platform).pairs());
        options
    }

    /// Adds the options in `xla` that are not set yet.
    pub fn fill(&mut self, xla: impl IntoIterator<Item = (String, OptionValue)>) {
        for (name, value) in xla {
            if self.xla.iter().all(|(given, _)| *given != name) {
                self.xla.push((name, value));
            }
        }
    }

    /// Adds [`XlaOptions::unoptimized`], unless LLVM's optimization level is set.
    pub fn fill_unoptimized(&mut self) {
        if self.xla.iter().all(|(given, _)| given != LEVEL) {
            self.fill(XlaOptions::unoptimized());
        }
    }

    /// Tells if [`CompileOptions::encode`] needs XLA's own `DebugOptions`.
    pub(crate) fn needs_debug_options(&self) -> bool {
        self.xla.iter().any(|(name, _)| name == EXTRA)
    }

    /// The serialized `CompileOptionsProto`. Unset numbers are zeros, and XLA aborts on them: every
    /// field that XLA reads is set. The device list covers every replica in the module.
    ///
    /// `debug_options` is a complete `DebugOptions` as XLA serialized it.
    pub(crate) fn encode(
        &self,
        device_ids: Option<&[i64]>,
        debug_options: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, RuntimeError> {
        let (extra, overrides) = self.by_name()?;
        let assignment = device_ids.map(|ids| DeviceAssignmentProto {
            replica_count: ids.len() as i32,
            computation_count: 1,
            computation_devices: vec![ComputationDevice { replica_device_ids: ids.to_vec() }],
        });
        // Two protocol buffers one after the other are one with the fields of both.
        let added = ExtraDebugOptions { xla_backend_extra_options: extra }.encode_to_vec();
        let options = CompileOptionsProto {
            executable_build_options: Some(ExecutableBuildOptionsProto {
                device_ordinal: -1,
                debug_options: debug_options.map(|all| [all, added].concat()),
                num_replicas: device_ids.map_or(self.replicas, <[i64]>::len) as i64,
                num_partitions: 1,
                device_assignment: assignment,
            }),
            env_option_overrides: overrides,
        };
        Ok(options.encode_to_vec())
    }

    /// The entries of `xla_backend_extra_options`, which XLA does not take as an override, and all other options.
    fn by_name(&self) -> Result<(Extra, Overrides), RuntimeError> {
        let twice =
            |name: &str| RuntimeError::Options(format!("the XLA option `{name}` is given twice"));
        let (mut extra, mut overrides) = (Extra::new(), Overrides::new());
        for (name, value) in &self.xla {
            if name == EXTRA {
                for entry in value.to_string().split(',') {
                    if let Some(problem) = flags::extra_problem(entry) {
                        return Err(RuntimeError::Options(format!(
                            "`{EXTRA}` has `{entry}`, {problem}"
                        )));
                    }
                    let (name, value) = entry.split_once('=').unwrap_or((entry, "true"));
                    if extra.insert(name.to_owned(), value.to_owned()).is_some() {
                        return Err(twice(name));
                    }
                }
                continue;
            }
            let Entry::Vacant(entry) = overrides.entry(name.clone()) else {
                return Err(twice(name));
            };
            let value = match value.clone() {
                OptionValue::String(value) => OptionOverride::String(value),
                OptionValue::Bool(value) => OptionOverride::Bool(value),
                OptionValue::Int(value) => OptionOverride::Int(value),
                OptionValue::Float(value) => OptionOverride::Double(value),
            };
            entry.insert(OptionOverrideProto { value: Some(value) });
        }
        Ok((extra, overrides))
    }
}

/// The rule that determines podracer's choice of XLA options. It inspects the machine's instruction
/// set and never a clock, so that the same machine always computes the same results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XlaOptions {
    platform: String,
    options: Vec<(String, OptionValue)>,
}

impl XlaOptions {
    /// The options for a platform (`cpu`, `cuda`, `tpu`). On a CPU:
    /// - `xla_cpu_prefer_vector_width` 512 where it has AVX-512 and 256 elsewhere: LLVM's own choice, 256, leaves 1.15 to 1.6
    ///   of the speed of a machine with AVX-512;
    /// - `xla_cpu_enable_fast_min_max` off: with it `max`, `min` and `clamp` of a NaN may give the other operand, and a loss
    ///   that has diverged looks like a sound one;
    /// - `xla_cpu_small_while_loop_byte_threshold` 65,536: a `while` loop that touches less in an iteration is one kernel,
    ///   products of matrices included, since a call for each of its operations takes longer than they do. Acting in 4
    ///   environments with two networks of 64 by 64 is such a loop, in 8 it is none;
    /// - `xla_cpu_multi_thread_eigen` off: matrix products in such a kernel use one thread, which
    ///   halves the time of PPO in 4 environments. Products that are separate calls use all threads
    ///   of the client in any case;
    /// - LLVM's `-disable-lsr`, which omits loop strength reduction. That pass tries all orders of
    ///   the sums in the rounds of a random draw. It took 97 % of the time of generating such a
    ///   kernel's code (decision 082), and makes no program faster.
    ///
    /// On other platforms none.
    #[must_use]
    pub fn for_platform(platform: &str) -> Self {
        let mut options = Vec::new();
        if platform == "cpu" {
            let width = if has_avx512() { 512 } else { 256 };
            options.push(("xla_cpu_prefer_vector_width".to_owned(), OptionValue::Int(width)));
            options.push(("xla_cpu_enable_fast_min_max".to_owned(), OptionValue::Bool(false)));
            options.push(("xla_cpu_multi_thread_eigen".to_owned(), OptionValue::Bool(false)));
            options.push((
                EXTRA.to_owned(),
                OptionValue::String(format!("{},{LSR_OFF}", small_loop(1 << 16))),
            ));
        }
        Self { platform: platform.to_owned(), options }
    }

    /// Makes every `while` loop on a CPU one kernel on one thread, regardless of its size.
    /// Environment stepping gains 5 to 19 times; a loop that contains large matrix products loses
    /// its threads.
    #[must_use]
    pub fn whole_loop(self) -> Self {
        let value = format!("{},{LSR_OFF}", small_loop(1_000_000_000));
        self.on_cpu(EXTRA, OptionValue::String(value))
    }

    /// [`XlaOptions::whole_loop`] for training an agent that searches, with LLVM at its second
    /// optimization level. The third level takes a fifth to a quarter longer to compile it and
    /// makes it no faster (decision 097). Pixels' convolutions are a fifth to a third slower at the
    /// second level.
    #[must_use]
    pub fn searching(self) -> Self {
        self.whole_loop().on_cpu(LEVEL, OptionValue::Int(2))
    }

    /// The options that podracer chooses for trainings on a platform, including trainings of agents
    /// that search: a name may have two values.
    #[must_use]
    pub fn of_trainings(platform: &str) -> Vec<(String, OptionValue)> {
        let rule = Self::for_platform(platform);
        [rule.clone().pairs(), rule.searching().pairs()].concat()
    }

    /// These options with another value of one of them, on a CPU.
    fn on_cpu(mut self, name: &str, value: OptionValue) -> Self {
        if self.platform == "cpu" {
            self.options.retain(|(given, _)| given != name);
            self.options.push((name.to_owned(), value));
        }
        self
    }

    /// Options for compiling a program for a CPU in a fraction of the time; it runs slower. LLVM
    /// does not optimize its code, and the code is emitted without MLIR. The second option requires
    /// the first: LLVM may not terminate when it optimizes such code (decision 098).
    #[must_use]
    pub fn unoptimized() -> [(String, OptionValue); 2] {
        [
            (LEVEL.to_owned(), OptionValue::Int(0)),
            ("xla_cpu_use_fusion_emitters".to_owned(), OptionValue::Bool(false)),
        ]
    }

    /// The options by name, as [`CompileOptions::xla`] takes them and as a run records them.
    #[must_use]
    pub fn pairs(self) -> Vec<(String, OptionValue)> {
        self.options
    }
}

/// XLA's name for how much LLVM optimizes, from 0 to 3.
const LEVEL: &str = "xla_backend_optimization_level";

/// LLVM's name for leaving out the reduction of loops' strength.
const LSR_OFF: &str = "-disable-lsr";

/// The bytes below which a loop is small.
fn small_loop(bytes: u64) -> String {
    format!("xla_cpu_small_while_loop_byte_threshold={bytes}")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(replicas: usize, devices: Option<&[usize]>) -> CompileOptions {
        CompileOptions {
            replicas,
            device_assignment: devices.map(<[usize]>::to_vec),
            ..CompileOptions::default()
        }
    }

    #[test]
    fn placements_are_checked_before_xla_sees_them() {
        assert_eq!(options(2, None).placement(2).unwrap(), [0, 1]);
        assert_eq!(options(2, Some(&[1, 0])).placement(2).unwrap(), [1, 0]);
        for (replicas, devices) in [
            (0, None),
            (3, None),
            (usize::MAX, None),
            (2, Some(&[0][..])),
            (2, Some(&[0, 0])),
            (1, Some(&[2])),
        ] {
            options(replicas, devices).placement(2).unwrap_err();
        }
    }

    #[test]
    fn an_option_given_twice_is_an_error() {
        let pair = ("xla_a".to_owned(), OptionValue::Bool(true));
        let options = CompileOptions { xla: vec![pair.clone(), pair], ..CompileOptions::default() };
        assert_eq!(
            options.encode(None, None).unwrap_err().to_string(),
            "the XLA option `xla_a` is given twice"
        );
    }

    #[test]
    fn an_option_that_is_given_takes_the_place_of_the_rule() {
        let name = "xla_cpu_enable_fast_min_max".to_owned();
        let given =
            CompileOptions { xla: vec![(name, OptionValue::Bool(true))], ..Default::default() };
        let (rule, all) = (XlaOptions::for_platform("cpu").pairs(), given.with_rule("cpu").xla);
        assert_eq!(all.len(), rule.len());
        assert_eq!(all[0], given.xla[0]);
        assert_eq!(given.with_rule("cuda"), given);
    }

    /// Code that is emitted without MLIR is nothing for LLVM's vectorizer, which did not come to an end.
    #[test]
    fn code_without_mlir_is_not_optimized_where_a_level_is_given() {
        let filled = |xla| {
            let mut options = CompileOptions { xla, ..CompileOptions::default() };
            options.fill_unoptimized();
            options.xla
        };
        assert_eq!(filled(Vec::new()), XlaOptions::unoptimized());
        let level = vec![(LEVEL.to_owned(), OptionValue::Int(1))];
        assert_eq!(filled(level.clone()), level);
    }

    #[test]
    fn other_platforms_get_no_cpu_options() {
        assert_eq!(XlaOptions::for_platform("tpu").searching().pairs(), []);
        assert_eq!(XlaOptions::for_platform("cpu").searching().pairs().len(), 5);
    }
}
