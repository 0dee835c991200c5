//! What can be wrong with `managedFields`.

use std::fmt;

/// Why one entry could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// A key in `fieldsV1` of less than two bytes.
    #[error("the key {key:?} is too short")]
    ShortKey {
        /// The key.
        key: String,
    },
    /// A key in `fieldsV1` without a kind before it.
    #[error("missing colon in the key {key:?}")]
    MissingColon {
        /// The key, cut off when it is long.
        key: String,
    },
    /// A `k:` or `v:` key that does not hold JSON, or more than JSON.
    #[error("invalid JSON in the key {key:?}")]
    BadJson {
        /// The key, cut off when it is long.
        key: String,
    },
    /// An `i:` key without a number.
    #[error("no number in the key {key:?}")]
    BadIndex {
        /// The key, cut off when it is long.
        key: String,
    },
    /// A key over [`crate::MAX_KEY_BYTES`].
    #[error("a key of {bytes} bytes, over the limit of {}", crate::MAX_KEY_BYTES)]
    LongKey {
        /// Its length.
        bytes: usize,
    },
    /// A list or a scalar where an object belongs.
    #[error("{what} is not an object")]
    NotAnObject {
        /// What is not.
        what: &'static str,
    },
    /// A field of the entry that holds something else than a text.
    #[error("{field} is not a text")]
    NotText {
        /// Its name.
        field: &'static str,
    },
    /// Neither Apply nor Update.
    #[error("the operation {operation:?} is neither Apply nor Update")]
    Operation {
        /// What it is, cut off when it is long.
        operation: String,
    },
    /// No `fieldsType`.
    #[error("fieldsType is missing")]
    NoFieldsType,
    /// A format that is not known.
    #[error("the fieldsType {fields_type:?} is not FieldsV1")]
    FieldsType {
        /// What it is, cut off when it is long.
        fields_type: String,
    },
    /// Nesting over [`crate::MAX_DEPTH`].
    #[error("nested deeper than {} levels", crate::MAX_DEPTH)]
    TooDeep,
    /// More than [`crate::MAX_ELEMENTS`] in the object.
    #[error("the object has more than {} path elements", crate::MAX_ELEMENTS)]
    TooManyElements,
    /// More than [`crate::MAX_ENTRIES`].
    #[error("{ignored} entries over the limit of {}", crate::MAX_ENTRIES)]
    TooManyEntries {
        /// How many were not read.
        ignored: usize,
    },
}

impl Problem {
    /// Whether it is about the object as a whole, so that which entry has it is a matter of order.
    pub(crate) fn depends_on_order(&self) -> bool {
        matches!(self, Self::TooManyElements | Self::TooManyEntries { .. })
    }

    pub(crate) fn missing_colon(key: &str) -> Self {
        Self::MissingColon { key: shortened(key) }
    }

    pub(crate) fn bad_json(key: &str) -> Self {
        Self::BadJson { key: shortened(key) }
    }

    pub(crate) fn bad_index(key: &str) -> Self {
        Self::BadIndex { key: shortened(key) }
    }

    pub(crate) fn operation(operation: &str) -> Self {
        Self::Operation { operation: shortened(operation) }
    }

    pub(crate) fn fields_type(fields_type: &str) -> Self {
        Self::FieldsType { fields_type: shortened(fields_type) }
    }
}

/// An entry that could not be decoded. The others are not affected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Undecodable {
    /// The manager as it stands there; may be empty.
    pub manager: String,
    /// The operation as it stands there.
    pub operation: String,
    /// The subresource as it stands there.
    pub subresource: String,
    /// Why.
    pub problem: Problem,
}

impl Undecodable {
    /// One that has no name.
    pub(crate) fn new(problem: Problem) -> Self {
        Self {
            manager: String::new(),
            operation: String::new(),
            subresource: String::new(),
            problem,
        }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manager = if self.manager.is_empty() { "(no manager)" } else { &self.manager };
        write!(f, "{}: {}", shortened(manager), self.problem)
    }
}

/// Why nothing at all could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Over [`crate::MAX_JSON_BYTES`].
    #[error("read managedFields of {bytes} bytes: the limit is {limit}")]
    TooLarge {
        /// The length of the text.
        bytes: usize,
        /// The most that is read.
        limit: usize,
    },
    /// The text is no JSON.
    #[error("read managedFields as JSON")]
    Json(#[source] serde_json::Error),
    /// It is JSON, but no list.
    #[error("read managedFields, which is not a list")]
    NotAList,
}

/// A text for an error message: long ones are cut off at 80 characters.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
