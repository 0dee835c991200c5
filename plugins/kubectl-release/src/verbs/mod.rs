//! The verbs, one module each: `run` reads, decides by [`facts`](crate::facts), and prints.

pub mod adopt;
pub mod completion;
pub mod doctor;
pub mod history;
pub mod hold;
pub mod leave;
pub mod owners;
pub mod resume;
pub mod rollback;
pub mod status;
pub mod version;
pub mod why;

mod change;
