//! `kubectl release` on the real control plane: what it shows of real objects, how it ends, and what
//! becomes of it where it may not read or nobody answers.

mod access;
mod completion;
mod doctor;
mod exits;
mod flags;
mod formats;
mod helms;
mod history;
mod hold;
mod krew;
mod leave;
mod list;
mod mockups;
mod owners;
mod proxies;
mod rollback;
mod run;
mod scene;
mod shown;
mod status;
mod terminal;
mod vigil;
mod why;
