//! The guide: every command that its pages show is run, and prints what they show.

mod bed;
mod desk;
mod examples;
mod executor_tests;
mod page;
mod pages;
mod session;
mod shown;
mod words;
