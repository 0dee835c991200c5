//! The test bed: real servers on loopback, a scripted kubelet and a scripted GitHub beside them,
//! faults on the wire, and object builders.
//!
//! Nothing here runs containers. What is real: etcd, the API server, its controllers, the scheduler,
//! KEDA, Helm, kubectl, the registry. What is scripted: nodes and pods ([`kwok`](fate) or the
//! [`kubelet`]), and GitHub. The operator is the real program, installed by its chart, as a process of
//! the host: [`operator`].

pub mod cluster;
pub mod error;
pub mod fate;
pub mod fault;
pub mod github;
pub mod keda;
pub mod kubelet;
mod kwok;
pub mod metrics;
pub mod objects;
pub mod operator;
pub mod process;
pub mod registry;
pub mod standing;
pub mod tool;
pub mod wait;

pub use crate::{cluster::Cluster, error::TestbedError};
