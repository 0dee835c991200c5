//! Where the programs of this workspace are: cargo tells a test or a program only of those of its own
//! package.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

/// A program as `cargo xtask test` builds it, one folder above the test that runs here.
///
/// # Errors
/// It was not built.
pub fn beside_test(name: &str) -> Result<PathBuf> {
    let this = env::current_exe().context("find this test")?;
    let folder = this.parent().and_then(Path::parent).context("this test lies in no folder")?;
    let program = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    let hint = "run the tests with `cargo xtask test`, which builds it";
    ensure!(program.is_file(), "there is no {}: {hint}", program.display());
    Ok(program)
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
