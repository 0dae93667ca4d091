//! Erased agents: the loop's program equals the concrete agent's program.

use podracer_dsl::prelude::*;
use podracer_envs::{CartPole, Environment, Space};
use podracer_rl::Number;
use podracer_rl::agents::{
    A2cSettings, Impala, ImpalaSettings, OnlineActorCritic, Ppo, PpoSettings, PpoSettingsOf,
    Surrogate,
};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{AgentSettings, AnyAgent, Learn, Normalized, Task};
use podracer_rl::losses::clipped_surrogate_pg_loss;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};

fn program<A: Learn<Observation = Tensor>>(agent: A) -> String {
    let agent_loop = AgentLoop::new(CartPole::default(), agent, 2, 4);
    let init = trace(key(), |key| agent_loop.init(key)).expect("the beginning traces");
    let state = init.results().clone();
    let iterate = trace((&state,), |(state,)| agent_loop.iterate(state)).expect("it traces");
    format!("{init}\n{iterate}\n{:?}\n{:?}", init.results(), iterate.results())
}

fn check<A: Learn<Observation = Tensor>>(agent: A) {
    assert_eq!(program(AnyAgent::new(agent.clone())), program(agent));
}

fn spaces() -> (Space, Space) {
    let environment = CartPole::default();
    (environment.observation_space(), environment.action_space())
}

#[test]
fn programs_are_those_of_the_concrete_agents() {
    let (observation, action) = spaces();
    let mut recurrent = Ppo::new(observation.clone(), action.clone());
    (recurrent.settings.core.lstm, recurrent.settings.minibatches) = (Some(4), 2);
    check(recurrent.clone());
    check(Normalized::new(recurrent, observation.clone(), 0.99));
    let mut impala = Impala::new(observation.clone(), action.clone());
    impala.settings.core.lstm = Some(4);
    check(impala);
    // Its gradient goes through acting.
    check(OnlineActorCritic::new(observation, action));
}

/// PPO's own objective as a variant's, with a setting of its own.
#[derive(Clone, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
struct Scaled {
    scale: Number,
}

impl Default for Scaled {
    fn default() -> Self {
        Scaled { scale: 1.0.into() }
    }
}

impl Surrogate for Scaled {
    fn policy_loss(&self, ratio: Tensor, advantage: Tensor, clip: Number) -> Tensor {
        let loss = clipped_surrogate_pg_loss(ratio, advantage, clip);
        if self.scale.is(1.0) { loss } else { self.scale * loss }
    }
}

/// A variant of PPO is its objective: it anneals and normalises according to PPO's settings, which
/// it has next to its own.
#[test]
fn a_variant_of_ppo_keeps_what_the_settings_say() {
    let (observation, action) = spaces();
    let task = Task { observation, action, iterations: 8, model: None };
    for normalize in [false, true] {
        let table = json!({
            "anneal_learning_rate": true, "epochs": 2, "normalize_observations": normalize, "normalize_rewards": normalize,
        });
        let settings: PpoSettings = from_value(table.clone()).expect("settings");
        let variant = |scale: f64| {
            let mut table = table.clone();
            table["scale"] = json!(scale);
            let settings: PpoSettingsOf<Scaled> = from_value(table).expect("settings");
            program(settings.agent(&task).expect("it fits"))
        };
        let ppo = program(settings.agent(&task).expect("it fits"));
        assert_eq!(variant(1.0), ppo);
        assert_ne!(variant(2.0), ppo);
        // Made with `Ppo::with` it would lose its schedule and its normalisation.
        let (observation, action) = (task.observation.clone(), task.action.clone());
        assert_ne!(program(Ppo::with(settings, observation, action)), ppo);
    }
}

/// The defaults of a flattened struct are the agent's own, also where a part of its settings is given.
#[test]
fn each_agent_has_its_own_optimizers_defaults() {
    let a2c: A2cSettings = from_value(json!({"rmsprop_decay": 0.9})).expect("settings");
    let impala: ImpalaSettings = from_value(json!({"rmsprop_decay": 0.9})).expect("settings");
    let [a2c, impala] = [
        (a2c.optimizer.learning_rate, a2c.optimizer.epsilon, a2c.optimizer.rmsprop_decay),
        (impala.optimizer.learning_rate, impala.optimizer.epsilon, impala.optimizer.rmsprop_decay),
    ];
    assert_eq!(a2c, (7e-4.into(), 1e-5.into(), 0.9.into()));
    assert_eq!(impala, (6e-4.into(), 0.01.into(), 0.9.into()));
}
