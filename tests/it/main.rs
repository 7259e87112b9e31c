//! The built program against peers of the lab, over real sockets. One binary, so that it is
//! linked once. No assertion on a duration except generous upper bounds.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod basics;
mod simulate;
mod world;
