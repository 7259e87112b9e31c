//! The built program against peers of the lab, over real sockets. One binary, so that it is
//! linked once. No assertion on a duration except generous upper bounds.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests measure how long a run takes"
)]

mod basics;
mod broken_bodies;
mod caps;
mod deadlines;
mod exit_lists;
mod exit_status;
mod fail_closed;
mod fleet;
mod floors;
mod identities;
mod ids;
mod invariants;
mod list_fields;
mod list_sources;
mod memory;
mod proxies;
mod readme;
mod real_proxies;
mod redirects;
mod requests;
mod secrets;
mod settings_file;
mod stalled;
mod throttled;
mod url_lists;
mod world;
