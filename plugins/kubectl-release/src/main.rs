//! `kubectl release`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_release::main()
}
