//! How the real KEDA and the real HPA controller pause and resume: what the operator's pause is built
//! on. The operator itself does not run here.

mod down;
mod load;
mod orders;
mod scene;
mod sharing;
mod values;
