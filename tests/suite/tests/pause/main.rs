//! The operator and the pause of KEDA: the real KEDA operator and the real HPA controller, with a
//! metric that the test moves.

mod access;
mod down;
mod failing;
mod foreign;
mod modes;
mod objects;
mod old_server;
mod roll;
mod scene;
mod sweep;
