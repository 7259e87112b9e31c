//! The words for an exit's health: states, the reasons for them, and changes between them.

use std::fmt;

/// What an exit is fit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum State {
    /// Everything, up to its cap.
    #[default]
    Healthy,
    /// Less than its ceiling: it failed or was refused too often.
    Limited,
    /// Nothing until its rest is over.
    Ejected,
    /// One attempt at a time, until it has shown that it works.
    Probation,
    /// Nothing for the rest of the run.
    Evicted,
}

impl State {
    /// All, in the order of an exit's decline.
    pub const ALL: [State; 5] = [
        State::Healthy,
        State::Limited,
        State::Ejected,
        State::Probation,
        State::Evicted,
    ];

    /// As summary, `exits.csv` and logs show it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Healthy => "healthy",
            State::Limited => "limited",
            State::Ejected => "ejected",
            State::Probation => "probation",
            State::Evicted => "evicted",
        }
    }
}

/// Why the state or the cap last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reason {
    /// It never did, or it is earned back.
    #[default]
    None,
    /// Too many faults.
    Faults,
    /// Too many faults, but half of the pool is out of use already.
    Spared,
    /// A fault in probation.
    ProbeFailed,
    /// It refused more than this many at a time.
    Refusals(u32),
    /// Far more 429s than others get.
    Throttled,
    /// It was ejected again and again.
    NeverRecovered,
    /// It does not take its login, and nobody's use of that login ever succeeded. Final.
    CredentialsRefused,
    /// It shows certificates of its own in the origin's place. Final.
    Intercepts,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::None => Ok(()),
            Reason::Faults => f.write_str("too many faults"),
            Reason::Spared => f.write_str("too many faults, spared as half of the exits are out"),
            Reason::ProbeFailed => f.write_str("failed again after its rest"),
            Reason::Refusals(cap) => write!(f, "refuses more than {cap} at a time"),
            Reason::Throttled => f.write_str("gets far more 429 answers than other exits"),
            Reason::NeverRecovered => write!(f, "ejected {} times", super::EJECTIONS_MOST),
            Reason::CredentialsRefused => f.write_str("credentials refused (407)"),
            Reason::Intercepts => f.write_str("TLS interception: a certificate of its own"),
        }
    }
}

/// What an event changed: one log line each, except for `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing worth telling.
    None,
    /// The cap went down.
    Limited,
    /// The cap went up, not yet to the ceiling.
    Grown,
    /// Out of use for a while.
    Ejected,
    /// It would have been ejected, but too many are already; its cap is 1.
    Spared,
    /// It may be tried again, one attempt at a time.
    Probation,
    /// Fit again.
    Recovered,
    /// Out of use for good.
    Evicted,
}
