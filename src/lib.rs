//! `exitfetch`: a bulk fetcher for long URL lists through a fleet of proxies.
//!
//! Concurrency belongs to the exit (the proxy identity), request rate to the origin (the
//! site). `ARCHITECTURE.md` has the map; imports go down the list below only.
//!
//! # In a program of your own
//!
//! The command line is a thin layer; these are the parts to build on:
//!
//! - [`schedule::Scheduler`] decides what starts now and through which exit, and what the end
//!   of an attempt means. It reads no clock and does no I/O: `push` jobs, ask `next(now)`, give
//!   each lease back with `finish`. Every bound (an exit's cap, a site's budget) is its work.
//! - [`fetch::Fetcher`] makes one attempt through one exit and returns facts, never an error;
//!   [`fetch::Conns`] keeps an exit's open sockets within its cap.
//! - [`input`] reads both lists, [`store`] keeps bodies and records and resumes.
//! - [`engine::run`] is all of it at once: a [`engine::Plan`] in, a summary out.
//! - [`lab`] has exits and sites on the loopback address that misbehave as asked, for tests.
//!
//! `examples/own_loop.rs` is a whole loop around scheduler and fetcher in some two hundred
//! lines. The two calls that matter, on a virtual clock:
//!
//! ```
//! use std::{collections::HashMap, time::Duration};
//! use exitfetch::model::{Attempt, Codes, Head, Job, Time};
//! use exitfetch::schedule::{Next, Rules, Scheduler, Seat, Verdict};
//!
//! let rules = Rules {
//!     rate: Some(1.0), // one request a second at a site, through all exits together
//!     burst: 1,
//!     per_origin: None,
//!     max_in_flight: 10,
//!     retries: 3,
//!     max_redirects: 10,
//!     max_pause: Duration::from_secs(900),
//!     origin_patience: Duration::from_secs(120),
//!     no_exit_timeout: Duration::from_secs(60),
//!     accept: Codes::default(),
//!     origins: HashMap::new(),
//!     seed: 1,
//! };
//! let seat = Seat { id: "exit-1".into(), ceiling: 2, group: None, credentials: None };
//! let mut scheduler = Scheduler::new(rules, &[seat], &[]);
//! for path in ["a", "b"] {
//!     scheduler.push(job(&format!("http://o.test/{path}")), Time::ZERO);
//! }
//!
//! // The first job may start; the second has to wait for its site, though the exit is free.
//! let Next::Start(start) = scheduler.next(Time::ZERO) else { panic!() };
//! let Next::At(time) = scheduler.next(Time::ZERO) else { panic!() };
//! assert_eq!(time, Time::from_secs(1));
//!
//! // What came of it, as `Fetcher` tells it.
//! let head = Head { status: 200, headers: http::HeaderMap::new() };
//! let attempt = Attempt { head: Some(head), ..Attempt::default() };
//! let verdict = scheduler.finish(start.lease, start.work, &attempt, Time::from_millis(300));
//! assert!(matches!(verdict, Verdict::Ok(_)));
//!
//! fn job(url: &str) -> Job {
//!     Job {
//!         id: Job::default_id("GET", url, b""),
//!         id_given: false,
//!         line: 1,
//!         method: http::Method::GET,
//!         url: url.parse().unwrap(),
//!         listed: None,
//!         authorization: None,
//!         headers: None,
//!         body: None,
//!         extra: None,
//!     }
//! }
//! ```

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
mod threads;
mod wake;
