//! Registries: whether an image is there, under which digest, and for which platforms.
//!
//! * [`Keyring`] finds the credentials that a kubelet would use for an image.
//! * [`HostPolicy`] says which hosts may be asked; names are resolved once, and only the addresses
//!   that were checked are connected to.
//! * [`Registry`] sends a HEAD for one image with one credential, and fetches a token where the
//!   registry demands one. It keeps nothing of a credential: no token and no answer of one tenant can
//!   reach another.
//!
//! `oci-client` parses references and manifests. Its own client is not used: it resolves names and
//! follows redirects unchecked, and reads answers without a bound.

mod challenge;
mod credential;
mod exchange;
mod head;
mod hosts;
mod image;
mod keyring;
mod patience;
mod platforms;
mod pull_secret;
mod realm;
mod resolver;
mod token;
mod trouble;

pub use self::{
    credential::PullCredential,
    exchange::{Registry, Settings},
    head::{Access, Checked, Head},
    hosts::{AllowedHost, HostPolicy, InvalidHost, Refusal},
    image::{Image, InvalidImage},
    keyring::Keyring,
    platforms::Platform,
    pull_secret::{PullSecret, UnreadableSecret},
    resolver::Lookup,
    trouble::{Stage, Trouble},
};
