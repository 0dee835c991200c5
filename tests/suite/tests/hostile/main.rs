//! The operator against those who mean it harm: annotations, answers of GitHub and of registries, and
//! objects that nobody in his right mind would write. Each is refused and said so, and neighbours go
//! on.

mod batch;
mod control;
mod dice;
mod forge;
mod generator;
mod neighbours;
mod objects;
mod panics;
mod pods;
mod registry;
mod servers;
mod sets;
mod strangers;
mod targets;
mod turn;
mod values;
mod words;
mod workloads;
