//! The program `belay-operator`.

use std::process::ExitCode;

fn main() -> ExitCode {
    belay_operator::program::main()
}
