//! The nouns: what every other part talks about, and nothing that acts.
//!
//! No I/O, no clock read, no randomness here. Everything above imports from this
//! floor; this floor imports from none of ours.

pub mod attempt;
pub mod codes;
pub mod counted;
pub mod exit;
pub mod failure;
pub mod job;
pub mod origin;
pub mod record;
pub mod secret;
pub mod time;

pub use attempt::{
    Attempt, Fault, FaultKind, Framing, Head, Phase, PhaseCounts, PhaseTimes, Route,
};
pub use codes::Codes;
pub use counted::counted;
pub use exit::{Exit, Login, Scheme};
pub use failure::{Blame, ErrorKind, Failure};
pub use job::{Job, Refusal};
pub use origin::Origin;
pub use record::{Outcome, Record};
pub use secret::Secret;
pub use time::{Clock, Time};
