//! The whole scheduler against a world of functions: virtual time, no sockets.

mod ends;
mod exits;
mod invariants;
mod long_lists;
mod origins;
mod watching;
pub mod world;
