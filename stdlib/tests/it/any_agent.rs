//! Erased agents: the loop's program is that of the concrete agent, to the letter.

use podracer_dsl::prelude::*;
use podracer_envs::{CartPole, Environment, Space};
use podracer_stdlib::agents::{
    AgentSettings, AnyAgent, Impala, Learn, Normalized, OnlineActorCritic, Ppo, PpoSettings, Task,
};
use podracer_stdlib::anakin::AgentLoop;

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
    (recurrent.settings.lstm, recurrent.settings.minibatches) = (4, 2);
    check(recurrent.clone());
    check(Normalized::new(recurrent, observation.clone(), 0.99));
    let mut impala = Impala::new(observation.clone(), action.clone());
    impala.settings.lstm = 4;
    check(impala);
    // Its gradient goes through acting.
    check(OnlineActorCritic::new(observation, action));
}

/// Made with [`Ppo::with`] it would lose its schedule and its normalisation, which `podracer describe` shows as on.
#[test]
fn a_variant_of_ppo_keeps_what_the_settings_say() {
    let (observation, action) = spaces();
    let task = Task { observation, action, iterations: 8, model: None };
    for normalize in [false, true] {
        let settings = PpoSettings {
            normalize_observations: normalize,
            normalize_rewards: normalize,
            ..PpoSettings::default()
        };
        let variant = settings.normalized(settings.for_task(&task).expect("it fits"), &task);
        let agent = settings.agent(&task).expect("it fits");
        let constant =
            AnyAgent::new(Ppo::with(settings, task.observation.clone(), task.action.clone()));
        assert_eq!(program(variant.clone()), program(agent));
        assert_ne!(program(variant), program(constant));
    }
}
