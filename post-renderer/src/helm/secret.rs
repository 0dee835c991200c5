//! A value that must not be printed.

use std::{convert::Infallible, fmt, str::FromStr};

/// A token. It has no `Display`, and its `Debug` says nothing about it, not even its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the request that needs it and for nothing that is printed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_nothing_of_itself_and_still_gives_its_text() {
        let secret: Secret = "hunter2".parse().unwrap();
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "[redacted] Some(\n    [redacted],\n)"
        );
        assert_eq!(secret.expose(), "hunter2");
        assert_ne!(secret, Secret::from("hunter3".to_owned()));
    }
}
