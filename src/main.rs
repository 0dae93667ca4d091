//! The program `podracer`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// With its feature `override` it is XLA's allocator too, in the plugin: that compiles in nine
// tenths of the time and reuses large buffers, which glibc returns to the system after every
// execution.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    podracer::App::built_in().run()
}
