//! A fact, or the lack of one.

use crate::error::{Class, Error};

/// Something that was read, or could not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// It was read.
    Known(T),
    /// It was not; that never means that it is absent.
    Unknown(Why),
}

/// Why something is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Nobody asked.
    NotAsked,
    /// The API server does not permit it; its words.
    Forbidden(String),
    /// There was no answer, or none in time.
    Unreachable(Error),
    /// The API server does not serve this kind.
    NotServed(String),
    /// It depends on something that is not known itself.
    Depends(String),
    /// Everything else.
    Failed(String),
}

impl Why {
    /// Whether people want to know: not where nobody asked, nor where the cause is told elsewhere.
    pub fn is_worth_telling(&self) -> bool {
        !matches!(self, Self::NotAsked | Self::Depends(_))
    }

    /// In words for people, as they stand after `unknown: `.
    pub fn words(&self) -> &str {
        match self {
            Self::NotAsked => "it was not asked for",
            Self::Forbidden(words)
            | Self::NotServed(words)
            | Self::Depends(words)
            | Self::Failed(words) => words,
            Self::Unreachable(error) => &error.message,
        }
    }
}

impl<T> Fact<T> {
    /// What was read, if it was.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Why it is not known.
    pub fn why(&self) -> Option<&Why> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }

    /// The same of what was read.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(change(value)),
            Self::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// What was read, by reference.
    ///
    /// # Errors
    /// Why it could not be read.
    pub fn get(&self) -> Result<&T, &Why> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Unknown(why) => Err(why),
        }
    }
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Unknown(Why::NotAsked)
    }
}

impl<T> From<Result<T, Error>> for Fact<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(error) => Self::Unknown(Why::from(error)),
        }
    }
}

impl From<Error> for Why {
    fn from(error: Error) -> Self {
        let words = error.message.clone();
        match error.class {
            Class::Forbidden => Self::Forbidden(words),
            Class::Unreachable | Class::Timeout => Self::Unreachable(error),
            Class::NotFound if error.reason.as_deref() == Some("NotServed") => {
                Self::NotServed(words)
            }
            _ => Self::Failed(words),
        }
    }
}
