//! The standard library against the values of rlax, optax, flax, jax.nn and distrax, by the reference semantics.

/// Makes a type an agent that sees a tensor, has no parameters and no memory, and always takes action 0; with other methods of `Agent` in braces.
macro_rules! idle_agent {
    ($agent:ty $({ $($method:item)* })?) => {
        impl Agent for $agent {
            type Observation = Tensor;
            type Params = ();
            type Memory = ();
            type Extras = ();
            fn init_memory(&self, _: LaneId) {}
            fn begin_episode(&self, (): ()) {}
            fn act(&self, (): &(), (): (), _: Input, _: Mode, _: Key) -> Act<(), ()> {
                Act { action: scalar(0), memory: (), extras: () }
            }
            $($($method)*)?
        }
    };
}

mod a2c;
mod action_values;
mod agent_loop;
mod any_agent;
mod bootstrapped;
mod composed;
mod counters;
mod disco;
mod distributions;
mod dqn;
mod edges;
mod exploration;
mod frames;
mod games_for_two;
mod golden;
mod host_replay;
mod impala;
mod iterate;
mod lanes;
mod layers;
mod legal_actions;
mod losses;
mod lpg;
mod muzero;
mod muzero_planes;
mod networks;
mod nn;
mod normalized;
mod off_policy;
mod optim;
mod population;
mod ppo_schedules;
mod pqn;
mod r2d2;
mod rainbow;
mod recurrent_ppo;
mod replay;
mod replay_mistakes;
mod replay_model;
mod replayed;
mod returns;
mod sac_td3;
mod search;
mod skipped;
mod views;
