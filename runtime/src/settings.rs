//! The settings of the three loops. Each struct defines a table of an experiment, the settings of a
//! builder, and the arguments of a run.
//!
//! A setting is one field in this file. `podracer describe` prints its documentation, type, range
//! and default, and these also check files, `--set` and flags. The field's name is also a method of
//! every type that contains the struct.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Greatest number of devices of a run.
pub const MOST_DEVICES: usize = 65_536;

/// Defines a struct of settings with its defaults, and a trait with a setter method for each field.
/// A last field after `..` is flattened: its settings come from another such struct.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        struct $name:ident, set by $setters:ident by $own:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[schemars $schemars:tt])*
                $field:ident: $type:ty = $default:expr,
            )*
            $(.. $part:ident: $part_type:ty, set by $part_setters:ident by $part_own:ident,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[doc = $doc])*
                $(#[schemars $schemars])*
                pub $field: $type,
            )*
            $(
                /// The settings that both loops with environments on the host have.
                #[serde(flatten)]
                pub $part: $part_type,
            )?
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* $($part: <$part_type>::default(),)? }
            }
        }

        #[doc = concat!("Sets the fields of [`", stringify!($name), "`] in the struct itself, or in a loop that has it.")]
        pub trait $setters: Sized {
            /// The settings to change.
            fn $own(&mut self) -> &mut $name;
            $(
                $(#[doc = $doc])*
                #[must_use]
                fn $field(mut self, $field: $type) -> Self {
                    self.$own().$field = $field;
                    self
                }
            )*
        }

        impl $setters for $name {
            fn $own(&mut self) -> &mut $name {
                self
            }
        }

        $(impl AsRef<$part_type> for $name {
            fn as_ref(&self) -> &$part_type {
                &self.$part
            }
        }

        impl $part_setters for $name {
            fn $part_own(&mut self) -> &mut $part_type {
                &mut self.$part
            }
        })?
    };
}

settings! {
    /// The loop that is one program: agent and environment on the same devices.
    struct AnakinSettings, set by ConfigureAnakin by anakin_settings {
        /// Lanes in all, over all devices.
        #[schemars(range(min = 1, max = i32::MAX))]
        environments: usize = 64,
        /// Steps of each lane in an iteration.
        #[schemars(range(min = 1, max = 1_000_000))]
        unroll: usize = 32,
        /// Iterations in one call of the compiled program.
        #[schemars(range(min = 1, max = 1_000_000))]
        iterations_per_call: usize = 16,
    }
}

settings! {
    /// The settings that both loops with environments on the host have.
    struct HostLoopSettings, set by ConfigureHostLoop by host_loop_settings {
        /// Devices that act, by index. Empty: the first quarter of `train.devices`, at least one.
        #[schemars(length(max = MOST_DEVICES), inner(range(max = MOST_DEVICES - 1)))]
        #[schemars(extend("x-resume" = true))]
        actors: Vec<usize> = Vec::new(),
        /// Devices that learn, by index. Empty: the devices in `train.devices` that do not act, as
        /// many as the lanes divide over.
        #[schemars(length(max = MOST_DEVICES), inner(range(max = MOST_DEVICES - 1)))]
        #[schemars(extend("x-resume" = true))]
        learners: Vec<usize> = Vec::new(),
        /// Steps of each lane in an iteration.
        #[schemars(range(min = 1, max = 1_000_000))]
        unroll: usize = 32,
        /// Iterations that acting is ahead of learning: exactly this number with Sebulba's
        /// deterministic schedule, at most this number with central inference. With central
        /// inference and 0, a device that has completed the unrolls of an iteration waits for the
        /// iteration.
        #[schemars(range(max = 1_000))]
        lag: usize = 1,
        /// The memory that has the replay of an agent that learns from one.
        replay: ReplayMemory = ReplayMemory::default(),
        /// The folder for a replay on the host's disk. None: the run directory; for a run without a
        /// run directory, the system's folder for temporary files.
        #[schemars(extend("x-resume" = true))]
        replay_folder: Option<PathBuf> = None,
        /// Iterations between two reports.
        #[schemars(range(min = 1, max = 1_000_000))]
        iterations_per_call: usize = 16,
        /// Seconds without progress in any thread after which the run is given up.
        #[schemars(range(min = 1, max = i32::MAX))]
        patience: usize = 120,
    }
}

settings! {
    /// The loop with actors and learners on different devices, and environments on the host.
    struct SebulbaSettings, set by ConfigureSebulba by sebulba_settings {
        /// Actor threads on each actor device.
        #[schemars(range(min = 1, max = 1_024))]
        threads: usize = 2,
        /// Lanes of each actor thread.
        #[schemars(range(min = 1, max = 1_000_000))]
        environments: usize = 32,
        /// The rule that decides when actors take new parameters.
        schedule: Schedule = Schedule::default(),
        /// Rollouts of each actor thread that may wait for the learner.
        #[schemars(range(min = 1, max = 1_000))]
        queue: usize = 2,
        ..host: HostLoopSettings, set by ConfigureHostLoop by host_loop_settings,
    }
}

settings! {
    /// The loop with central inference: workers step environments and know no model.
    struct CentralSettings, set by ConfigureCentral by central_settings {
        /// Lanes of each device that acts: environments that all of its workers may have together.
        #[schemars(range(min = 1, max = 1_000_000))]
        environments: usize = 64,
        /// Workers of each device that acts that `podracer train` starts in its own process. They divide the lanes.
        #[schemars(range(min = 1, max = 1_024))]
        #[schemars(extend("x-resume" = true))]
        workers: usize = 4,
        /// Number of waiting environments that starts an inference. None: it is chosen by measured
        /// times.
        #[schemars(range(min = 1, max = 1_000_000))]
        #[schemars(extend("x-resume" = true))]
        capacity: Option<usize> = None,
        /// Milliseconds after the first waiting step until an inference begins anyway. None: twice
        /// the time of an inference.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e9))]
        #[schemars(extend("x-resume" = true))]
        timeout_ms: Option<f64> = None,
        /// Greatest magnitude of a reward that a worker elsewhere may send: a worker that sends a
        /// greater reward is sent away. None: a million.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e30))]
        #[schemars(extend("x-resume" = true))]
        reward_bound: Option<f64> = None,
        /// Greatest magnitude of an element of an observation that a worker elsewhere may send, if the space has no bound: a worker that
        /// sends a greater value is sent away. None: a million.
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e38))]
        #[schemars(extend("x-resume" = true))]
        observation_bound: Option<f64> = None,
        ..host: HostLoopSettings, set by ConfigureHostLoop by host_loop_settings,
    }
}

/// Rules that decide when actors take new parameters.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Every rollout is acted with the parameters from `lag` iterations before, and the first
    /// rollouts with the initial parameters: repeated runs are bit-identical. With a lag of 0
    /// learning is on-policy and nothing overlaps; with 1 actors act while the learner learns.
    #[default]
    Deterministic,
    /// Every step is acted with the newest parameters.
    FreeRunning,
}

/// Memories that a replay may be in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayMemory {
    /// The learner devices' memory: each has the steps of its own lanes.
    #[default]
    Device,
    /// The disk of the host, and as much of its memory as is free. The learner devices have the priorities; an iteration learns from
    /// windows that were drawn two iterations before.
    Host,
}

impl HostLoopSettings {
    /// The devices that act: device 0 if none is named.
    #[must_use]
    pub fn acting(&self) -> &[usize] {
        if self.actors.is_empty() { &[0] } else { &self.actors }
    }

    /// The devices that learn: device 1 if none is named.
    #[must_use]
    pub fn learning(&self) -> &[usize] {
        if self.learners.is_empty() { &[1] } else { &self.learners }
    }

    /// Time without progress after which a run is given up.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience as u64)
    }

    /// The folder for a replay on the host.
    pub(crate) fn folder(&self) -> PathBuf {
        self.replay_folder.clone().unwrap_or_else(std::env::temp_dir)
    }
}

impl SebulbaSettings {
    /// Actor threads in all.
    #[must_use]
    pub fn actor_threads(&self) -> usize {
        self.host.acting().len() * self.threads
    }

    /// Age in iterations of the parameters that are acted with; `None` if it is not fixed.
    #[must_use]
    pub fn fixed_lag(&self) -> Option<usize> {
        (self.schedule == Schedule::Deterministic).then_some(self.host.lag)
    }
}

impl CentralSettings {
    /// Time after the first waiting step until an inference begins anyway; also `None` for a number
    /// that is no valid time.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.timeout_ms? / 1e3).ok()
    }
}
