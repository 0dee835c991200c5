//! A fact, or the lack of one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that was read, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fact<T> {
    /// It was read.
    Known {
        /// What was read.
        value: T,
        /// When.
        read: Timestamp,
    },
    /// It could not be read; that never means that it is absent.
    Unknown {
        /// Why, in words for people.
        why: String,
        /// When it was tried.
        read: Timestamp,
    },
}

impl<T> Fact<T> {
    /// A fact that was read at `read`.
    pub fn known(value: T, read: Timestamp) -> Self {
        Self::Known { value, read }
    }

    /// What was read, if it was.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// When it was read or tried.
    pub fn read(&self) -> Timestamp {
        match self {
            Self::Known { read, .. } | Self::Unknown { read, .. } => *read,
        }
    }

    /// What was read.
    ///
    /// # Errors
    /// Why it could not be read.
    pub fn get(&self) -> Result<&T, &str> {
        match self {
            Self::Known { value, .. } => Ok(value),
            Self::Unknown { why, .. } => Err(why),
        }
    }
}
