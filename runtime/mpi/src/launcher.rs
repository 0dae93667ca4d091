//! The launcher's information about the processes that it started.

use std::env;

/// The launcher that started this process, and how many it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The launcher's name.
    pub launcher: &'static str,
    /// The number of processes.
    pub size: usize,
}

/// The launchers, and the variables that say how many processes they started.
const LAUNCHERS: &[(&str, &[&str])] = &[
    ("Open MPI's mpirun", &["OMPI_COMM_WORLD_SIZE"]),
    // Slurm's `srun --mpi=pmi2` also sets these, together with its own variables.
    ("srun", &["SLURM_STEP_NUM_TASKS", "PMI_SIZE"]),
    ("srun", &["SLURM_STEP_NUM_TASKS", "PMIX_RANK"]),
    ("MPICH's mpirun", &["PMI_SIZE"]),
];

/// The launcher that started this process as one of several; `None` for a process by itself.
#[must_use]
pub fn launched() -> Option<Launched> {
    launched_by(|name| env::var(name).ok())
}

fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    LAUNCHERS.iter().find_map(|(launcher, variables)| {
        let values: Option<Vec<String>> = variables.iter().map(|name| variable(name)).collect();
        let size = values?.first()?.parse().ok()?;
        (size > 1).then_some(Launched { launcher, size })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_says_how_many_processes_there_are() {
        let of = |pairs: &[(&str, &str)]| {
            launched_by(|name| {
                let found = pairs.iter().find(|(one, _)| *one == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let two = |launcher| Some(Launched { launcher, size: 2 });
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "2")]), two("Open MPI's mpirun"));
        assert_eq!(of(&[("PMI_SIZE", "2")]), two("MPICH's mpirun"));
        assert_eq!(of(&[("SLURM_STEP_NUM_TASKS", "2"), ("PMIX_RANK", "0")]), two("srun"));
        // A job's shell without a launch, and a job with one process.
        assert_eq!(of(&[("SLURM_STEP_NUM_TASKS", "2")]), None);
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "1")]), None);
    }
}
