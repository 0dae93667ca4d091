//! Checks of the settings of environments that servers have.

pub use podracer_envs::host::server::{
    Atari, AtariProcessing, EnvPool, Gymnasium, Preset, ServerSettings,
};

use super::problems::Problems;

pub(super) fn check_atari(atari: &Atari, problems: &mut Problems) {
    let processing = &atari.processing;
    for (name, value) in [
        ("height", processing.height),
        ("width", processing.width),
        ("stack", processing.stack),
        ("action_repeat", processing.action_repeat),
        ("most_frames", processing.most_frames),
    ] {
        problems.at_least_one(&format!("environment.{name}"), value);
    }
    problems.fraction("environment.sticky_actions", processing.sticky_actions);
    check_server(&atari.server, problems);
}

pub(super) fn check_server(server: &ServerSettings, problems: &mut Problems) {
    for (name, value) in [
        ("servers", server.servers),
        ("start_seconds", server.start_seconds),
        ("step_seconds", server.step_seconds),
    ] {
        problems.at_least_one(&format!("environment.{name}"), value);
    }
}

/// Checks that a run has the patience for a restart, and each server an environment.
pub(super) fn check_with(
    server: &ServerSettings,
    environments: usize,
    patience: usize,
    problems: &mut Problems,
) {
    let longest = (server.start_seconds.saturating_mul(2)).saturating_add(server.step_seconds);
    if server.restarts > 0 && longest >= patience {
        problems.add(format!(
            "sebulba.patience is {patience} and must be more than {longest}: a server may take environment.step_seconds = \
             {} to be found hanging, and twice environment.start_seconds = {} to be there again",
            server.step_seconds, server.start_seconds
        ));
    }
    if server.servers > environments {
        problems.add(format!(
            "environment.servers is {} and must be at most sebulba.environments = {environments}",
            server.servers
        ));
    }
}
