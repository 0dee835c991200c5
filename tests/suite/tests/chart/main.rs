//! The chart `charts/belay` under both Helms: what it renders, what it refuses, what rights it gives
//! on the real API server, and the operator as it installs it.

mod admission;
mod around;
mod bed;
mod crds;
mod hosted;
mod people;
mod pod;
mod rbac;
mod rights;
mod uninstall;
mod upgrade;
mod values;
