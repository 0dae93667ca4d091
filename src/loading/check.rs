//! Checks that the settings of an experiment fit together.

use podracer_envs::host::server::ServerSettings;

use crate::UsageError;
use crate::registry::Registry;
use crate::settings::{Problems, Settings, TrainingLoop};

impl Settings {
    /// Checks that the settings fit together, as far as possible without the machine. Types and
    /// ranges are checked when a
    /// layer is read.
    ///
    /// # Errors
    /// All mistakes.
    pub(super) fn check(&self, registry: &Registry) -> Result<(), UsageError> {
        let mut problems = Problems::default();
        let environment = registry.environment(self.environment_name());
        let training_loop = &self.training_loop;
        training_loop.check(&mut problems);
        if let Some(host) = training_loop.host()
            && let Some(server) = environment.and_then(|one| (one.server)(&self.environment))
        {
            check_server(&server, training_loop, host.patience, &mut problems);
        }
        let (lanes, unroll) = (training_loop.lanes(), training_loop.unroll());
        let iterations = training_loop.iterations_per_call();
        let in_a_call = lanes.checked_mul(unroll).and_then(|steps| steps.checked_mul(iterations));
        let section = training_loop.section();
        if let Some(steps) =
            lanes.checked_mul(unroll).filter(|&steps| i32::try_from(steps).is_err())
        {
            problems.add(format!(
                "{section}.environments and unroll multiply to {steps} steps in an iteration, which i32 does not count: at most {}",
                i32::MAX
            ));
        }
        if in_a_call.is_none_or(|steps| steps > u32::MAX as usize * 1024) {
            problems.add(format!(
                "{section}.environments, unroll and iterations_per_call multiply to more steps than one call can take"
            ));
        }
        let plan = self.plan();
        let most = i32::MAX as u64;
        if plan.iterations > most {
            problems.add(format!(
                "train.steps is {} and must be at most {}: a run counts at most {most} iterations, here of {} steps",
                self.train.steps,
                most.saturating_mul(plan.steps_per_iteration),
                plan.steps_per_iteration
            ));
        }
        let agent = registry.agent(self.agent_kind());
        let checked = [
            agent.map(|agent| (agent.check)(&self.agent)),
            environment.map(|environment| (environment.check)(&self.environment)),
        ];
        for problem in checked.into_iter().flatten().filter_map(Result::err) {
            problems.add(problem);
        }
        problems.into_result()
    }
}

/// Checks that a run's patience covers a server's restart, and that each server has an environment.
fn check_server(
    server: &ServerSettings,
    training_loop: &TrainingLoop,
    patience: usize,
    problems: &mut Problems,
) {
    let &ServerSettings { servers, restarts, start_seconds, step_seconds, .. } = server;
    let (section, batch) = (training_loop.section(), training_loop.batch());
    let longest = start_seconds.saturating_mul(2).saturating_add(step_seconds);
    if restarts > 0 && longest >= patience {
        problems.add(format!(
            "{section}.patience is {patience} and must be more than {longest}: a server may take environment.step_seconds = \
             {step_seconds} to be found hanging, and twice environment.start_seconds = {start_seconds} to be there again"
        ));
    }
    if servers > batch {
        let limit = match training_loop {
            TrainingLoop::Central(_) => "central.environments / central.workers",
            _ => "sebulba.environments",
        };
        problems
            .add(format!("environment.servers is {servers} and must be at most {limit} = {batch}"));
    }
}
