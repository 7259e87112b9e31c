//! `exitfetch`: a bulk fetcher for long URL lists through a fleet of proxies.
//!
//! Concurrency belongs to the exit (the proxy identity), request rate to the origin (the
//! site). `ARCHITECTURE.md` has the map; imports go down the list below only.

pub mod cli;
pub mod engine;
pub mod fetch;
pub mod input;
pub mod lab;
pub mod model;
pub mod probe;
pub mod report;
pub mod schedule;
pub mod simulate;
pub mod store;
