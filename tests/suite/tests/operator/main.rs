//! The operator against the real API server and its controllers, a scripted GitHub and a registry.

mod admission;
mod columns;
mod containers;
mod debug;
mod failing;
mod github;
mod handicaps;
mod hold;
mod images;
mod instances;
mod lifetime;
mod ownership;
mod persons;
mod policies;
mod quiet;
mod rollback;
mod rollback_course;
mod rolls;
mod scripted_registry;
mod selection;
mod verdict;

use belay_suite::operator::support;
