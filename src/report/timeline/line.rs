//! The lines of `timeline.jsonl`: a run's head, spans of time, a run's end.
//!
//! Names are short because there are thousands of lines. Figures that are zero or have not
//! changed are left out.

use serde::{Deserialize, Serialize};

use crate::report::Stage;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A run begins.
    Run(RunHead),
    /// A piece of it, a second long until pieces are merged.
    Span(Span),
    /// It has ended, and why: `complete`, or what stopped it.
    End(String),
}

/// What is the same for a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// When it began, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Exits of the list.
    pub exits: u32,
    /// Requests that they may carry together.
    pub slots: u64,
    /// Requests per second to one origin; `None`: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// A piece of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    /// When it began, in seconds since the run did.
    pub t: f64,
    /// Its length in seconds.
    pub s: f64,
    /// Jobs at each place, on average; in the order of [`Stage::ALL`].
    pub jobs: [f64; Stage::ALL.len()],
    /// The most in flight at one time.
    pub peak: u32,
    /// Exits in use at its end.
    pub up: u32,
    /// Entries that ended as ok, failed and refused.
    pub ended: [u64; 3],
    /// Attempts that ended.
    pub attempts: u64,
    /// Body bytes that came with them, as on the wire.
    pub bytes: u64,
    /// Exits that are recorded from now on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Named>,
    /// Exits whose use was another one in the span before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<ExitUse>,
    /// Indices of exits that are no longer recorded one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<u32>,
    /// In flight through all exits that are not recorded one by one, at its end.
    #[serde(skip_serializing_if = "is_zero")]
    pub rest: u32,
    /// What changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Happened>,
    /// Changes that found no room in `events`.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_events: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// An exit by index, name and ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named(pub u32, pub String, pub u32);

/// An exit by index, the most it had in flight, and its cap at the span's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitUse(pub u32, pub u32, pub u32);

/// A change worth a mark on the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Happened {
    /// An exit's state or cap.
    Exit {
        /// Its name.
        id: String,
        /// What it is fit for now.
        state: String,
        /// What it may carry now.
        cap: u32,
        /// Why; empty where it is fit again.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// An origin is left alone.
    Pause {
        /// Host and port.
        origin: String,
        /// For how many seconds.
        wait_s: f64,
        /// `asked`, `asked too much` or `fails`.
        why: String,
    },
    /// An origin was given up.
    Dead {
        /// Host and port.
        origin: String,
    },
    /// Something about the fleet as a whole.
    Fleet {
        /// One line.
        why: String,
    },
}
