//! The machine and the build that a figure was measured on.

use std::{env, fs, process::Command, thread};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

/// Facts without which a time means nothing.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: Option<usize>,
    /// What the processor calls itself, where the system tells.
    pub processor: Option<String>,
    /// Operating system and architecture.
    pub platform: String,
    /// Runnable tasks on average over the last minute, before the first figure.
    pub load: Option<f64>,
    /// The compiler of this work tree.
    pub rustc: Option<String>,
    /// The build profile.
    pub profile: &'static str,
    /// When the measurement began, in UTC.
    pub date: String,
}

impl Machine {
    /// Looks.
    pub fn look() -> Self {
        Self {
            cores: thread::available_parallelism().ok().map(usize::from),
            processor: fs::read_to_string("/proc/cpuinfo").ok().as_deref().and_then(processor),
            platform: format!("{}-{}", env::consts::OS, env::consts::ARCH),
            load: fs::read_to_string("/proc/loadavg").ok().as_deref().and_then(load),
            rustc: rustc(),
            profile: if cfg!(debug_assertions) { "dev" } else { "release" },
            date: Timestamp::now().to_string(),
        }
    }
}

fn processor(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load(loadavg: &str) -> Option<f64> {
    loadavg.split(' ').next()?.parse().ok()
}

fn rustc() -> Option<String> {
    let program = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program)
        .arg("--version")
        // rust-toolchain.toml applies below this folder.
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_and_the_load_are_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n";
        assert_eq!(processor(cpuinfo).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(processor("processor\t: 0\n"), None);
        assert_eq!(load("1.50 0.70 0.30 2/300 4242\n"), Some(1.5));
        assert_eq!(load(""), None);
    }
}
