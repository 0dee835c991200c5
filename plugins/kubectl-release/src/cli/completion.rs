//! `completion`, and what the shim asks.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

/// Arguments of `completion`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
`completion kubectl` prints a program for a folder on the PATH under the name
kubectl_complete-release; kubectl then completes `kubectl release …` in every shell that it
completes itself. With krew that folder is ${KREW_ROOT:-$HOME/.krew}/bin:

  kubectl release completion kubectl > ~/.krew/bin/kubectl_complete-release
  chmod +x ~/.krew/bin/kubectl_complete-release

The other shells complete `kubectl-release …`.")]
pub struct CompletionArgs {
    /// For what
    #[arg(value_enum)]
    pub shell: Shell,
}

/// What completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// kubectl, in every shell
    Kubectl,
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
    /// PowerShell
    #[value(name = "powershell")]
    PowerShell,
}

/// Arguments of `__complete`.
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct CompleteArgs {
    /// What was typed so far; the last one is the word to complete
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}
