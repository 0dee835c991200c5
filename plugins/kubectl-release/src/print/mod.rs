//! How things are said: cleaned, aligned, coloured, or as JSON and YAML for programs.

pub mod clean;
pub mod jsonpath;
pub mod object;
pub mod style;
pub mod table;
pub mod text;

pub use self::{
    style::{Icon, Paint, Style},
    table::{Column, Table},
    text::{Line, Span, width},
};
