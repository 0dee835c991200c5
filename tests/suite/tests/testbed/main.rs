//! The test bed itself: everything it starts is real and does what later tests rely on.

mod smoke;
mod versions;
