//! The whole scheduler against a world of functions: virtual time, no sockets.

mod ends;
mod exits;
mod invariants;
mod origins;
mod watching;
mod world;
