//! The built program against peers of the lab, over real sockets. One binary, so that it is
//! linked once. No assertion on a duration except generous upper bounds.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests measure how long a run takes"
)]

mod bad_exit;
mod basics;
mod binding;
mod blame_origins;
mod blame_table;
mod broken_bodies;
mod caps;
mod crash;
mod dead_fleet;
mod deadlines;
mod disk;
mod endings;
mod exit_lists;
mod exit_status;
mod fail_closed;
mod fleet;
mod floors;
mod footprint;
mod hints;
mod identities;
mod ids;
mod interrupts;
mod invariants;
mod limits;
mod list_fields;
mod list_sources;
mod live;
mod long_lists;
mod memory;
mod metrics;
mod names;
mod packaging;
mod probe;
mod proxies;
mod readme;
mod real_origins;
mod real_proxies;
mod recovery;
mod redirects;
mod refresh;
mod report_page;
mod requests;
mod resume;
mod screen;
mod secrets;
mod secrets_everywhere;
mod services;
mod settings;
mod settings_file;
mod shells;
mod simulate;
mod soak;
mod stalled;
mod standard_streams;
mod throttled;
mod torture;
mod url_lists;
mod urls_again;
mod verdicts;
mod warc;
mod world;
mod wrong_side;
