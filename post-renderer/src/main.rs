//! `belay`: a post-renderer for Helm 3 and Helm 4 that leaves an operator its image.

use std::process::ExitCode;

fn main() -> ExitCode {
    belay_post_renderer::program::main()
}
