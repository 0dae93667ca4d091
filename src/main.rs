//! The program `podracer`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// Its feature `override` makes it the allocator of XLA too, in the plugin: that compiles in nine tenths of the time and
// reuses large buffers, which glibc gives back to the system after every execution.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    podracer::App::built_in().run()
}
