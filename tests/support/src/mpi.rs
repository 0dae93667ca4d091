//! MPI's launcher, for tests and benches of several processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skip::skip;

/// The launcher as a command, which also root may use, as in a container, and which finds the library beside it.
pub fn launcher(mpirun: &Path) -> Command {
    let mut command = Command::new(mpirun);
    for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(variable, "1").env(format!("{variable}_CONFIRM"), "1");
    }
    if let Some(bin) = mpirun.parent().filter(|bin| bin.is_absolute()) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).expect("folders of a path"));
        // Other programs' loaders look for it here.
        command.env("LD_LIBRARY_PATH", bin.with_file_name("lib"));
    }
    command
}

/// A command that starts so many processes of a program, whose arguments are to be added. `None`, and the running test counts as
/// skipped, where there is no `mpirun` (`PODRACER_MPIRUN` names one).
pub fn mpirun(processes: usize) -> Option<Command> {
    let mpirun = std::env::var("PODRACER_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let probe = Command::new(&mpirun).arg("--version").stdout(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        skip("no mpirun: `make test` installs it, and PODRACER_MPIRUN names one");
        return None;
    }
    let mut command = launcher(Path::new(&mpirun));
    // More processes than cores, which wait for each other without computing.
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &processes.to_string()]);
    command.env("OMPI_MCA_mpi_yield_when_idle", "1").stdin(Stdio::null());
    Some(command)
}

/// The launcher's MPI with some functions of its own, which are C: a library for `PODRACER_MPI`.
pub fn wrapped(mpirun: &Path, source: &Path) -> PathBuf {
    let home = mpirun.parent().and_then(Path::parent).expect("mpirun is in a folder `bin`");
    let name = source.file_stem().expect("a file").to_string_lossy();
    let library = std::env::temp_dir().join(format!("podracer-{name}-{}.so", std::process::id()));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, source])
        .arg(format!("-I{}", home.join("include").display()))
        .arg(format!("-L{}", home.join("lib").display()))
        .args(["-l:libmpi.so.40", &format!("-Wl,-rpath,{}", home.join("lib").display())])
        .status();
    assert!(built.expect("a C compiler, as Rust's linker is").success(), "cc failed");
    library
}

/// [`mpirun`] of the running test, by its whole name: its processes find that they were `podracer_runtime::pjrt::launched`.
pub fn this_test(processes: usize, name: &str) -> Option<Command> {
    let mut command = mpirun(processes)?;
    command.arg(std::env::current_exe().expect("this program"));
    command.args([name, "--exact", "--nocapture"]);
    Some(command)
}
