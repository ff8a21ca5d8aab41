//! The binary: installs the error hooks, hands the arguments to the library, and turns the outcome into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tiroll::cli::main())
}
