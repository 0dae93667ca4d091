//! MPI's launcher, for tests of several processes. The tests of crates that cannot depend on this one include the file, as
//! [`skip`](crate::skip).
#![allow(dead_code, reason = "each crate that includes this file uses its part")]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::skip::skip;

/// A command that starts so many processes of a program, whose arguments are to be added. `None`, and the running test counts as
/// skipped, where there is no `mpirun` (`PODRACER_MPIRUN` names one).
pub fn mpirun(processes: usize) -> Option<Command> {
    let mpirun = std::env::var("PODRACER_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let probe = Command::new(&mpirun).arg("--version").stdout(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        skip("no mpirun: `make test` installs it, and PODRACER_MPIRUN names one");
        return None;
    }
    let mut command = Command::new(&mpirun);
    // More processes than cores, which wait for each other without computing, and those of root, as in a container.
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &processes.to_string()]);
    for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(variable, "1").env(format!("{variable}_CONFIRM"), "1");
    }
    // The library is looked for beside the launcher in the path.
    if let Some(bin) = Path::new(&mpirun).parent().filter(|bin| bin.is_absolute()) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).expect("folders of a path"));
        // Other programs' loaders look for it here.
        command.env("LD_LIBRARY_PATH", bin.with_file_name("lib"));
    }
    command.env("OMPI_MCA_mpi_yield_when_idle", "1").stdin(Stdio::null());
    Some(command)
}
