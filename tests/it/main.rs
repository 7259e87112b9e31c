//! The built program against peers of the lab, over real sockets. One binary, so that it is
//! linked once. No assertion on a duration except generous upper bounds.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests measure how long a run takes"
)]

mod basics;
mod floors;
mod invariants;
mod readme;
mod world;
