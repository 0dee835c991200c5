//! KEDA's ScaledObjects: what is kept of each, what a fresh read of one and of its HPA shows, and by
//! which keys and manager pauses of this operator are told from those of others.

mod list;
mod object;
mod read;
#[cfg(test)]
mod tests;

pub(super) use self::object::{KINDS, holds_scale_in};
pub use self::{
    list::Found,
    object::{PauseKeys, ScaledObject},
    read::Scalers,
};
