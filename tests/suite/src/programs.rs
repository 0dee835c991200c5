//! Where the programs of this workspace are: cargo tells a test or a program only of those of its own
//! package.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

/// A program as `cargo xtask` builds it, beside the program that runs here or one folder above the
/// test that does.
///
/// # Errors
/// It was not built.
pub fn beside_test(name: &str) -> Result<PathBuf> {
    let this = env::current_exe().context("find this test")?;
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let beside = this.ancestors().skip(1).take(2).map(|folder| folder.join(&file));
    let mut there = beside.filter(|program| program.is_file());
    there.next().with_context(|| {
        let hint = "`cargo xtask test` and `cargo xtask demo` build it";
        format!("there is no {name} beside {}: {hint}", this.display())
    })
}

/// The programs that `cargo xtask bench` builds beside the one that runs here.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) folder: PathBuf,
}

impl Programs {
    pub(crate) fn find() -> Result<Self> {
        let own = env::current_exe().context("find the program that runs here")?;
        let folder = own.parent().context("the program that runs here is in no folder")?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        ensure!(
            path.is_file(),
            "there is no {name} in {}: run `cargo xtask bench`, which builds it",
            self.folder.display()
        );
        Ok(path)
    }
}
