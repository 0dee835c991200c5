//! The API server: everything that Belay's operator reads from it beyond its watches, and everything
//! that it writes.
//!
//! * [`client()`] makes the one client; [`ServerClock`] tells the server's time.
//! * [`Writer`] carries out one [`Step`](belay_engine::plan::Step) and writes the ReleaseTarget. Its
//!   [`WriteError`] says by its [`Class`] what may follow.
//! * [`Scalers`] reads a ScaledObject and its HPA, [`PauseKeys`] tells whose pause it has.
//! * [`PodWatch`] watches the pods of one workload while that is needed.
//! * [`keyring`] reads pull secrets, [`check_crds`] the version of the CRDs.
//! * [`Marker`] marks this operator's instance by a Lease, [`Sightings`] looks at those of others.
//! * [`Stopper`] stops another operator.
//! * [`Events`] tells users what was done.
//!
//! Nothing is decided here: no call is repeated, none is left out because of what an object holds.

mod client;
mod clock;
mod error;
mod events;
#[cfg(test)]
mod fake;
mod lease;
mod pods;
mod scaler;
mod schema;
mod secrets;
mod send;
mod stop;
mod write;

pub use self::{
    client::{client, over},
    clock::ServerClock,
    error::{Class, WriteError},
    events::Events,
    lease::{Marker, MarkerTerms, Sighting, Sightings},
    pods::{NoSelector, PodWatch, PodsOf},
    scaler::{Found, PauseKeys, ScaledObject, Scalers},
    schema::{SchemaProblem, check_crds},
    secrets::{SecretsError, keyring},
    stop::Stopper,
    write::{Done, Place, Writer, WriterSettings},
};
