//! A record: how one entry of the URL list ended; one line of `results.jsonl`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::failure::{Blame, ErrorKind};

/// How an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Fetched and stored.
    Ok,
    /// Tried and given up.
    Failed,
    /// The entry could not be used; nothing was sent.
    Refused,
}

/// One line of `results.jsonl`. Absent facts are left out of the line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The job's id.
    pub id: String,
    /// Line (entry) of the list, from 1.
    pub line: u64,
    /// As listed, userinfo masked.
    pub url: String,
    /// The request method, where it is not GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Where the answer came from after redirects, if elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The last HTTP status seen from the origin's side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Stored body, relative to the output directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where the body's WARC record begins in `file`, in bytes; absent where `file` is the
    /// body itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes of that record, as they are in `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Bytes of the body, decoded where `--compressed` asked for a coding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Body bytes on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes: Option<u64>,
    /// Of the body, as `bytes` counts it; lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// As received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// As received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// The version as the site names it, to ask by in a refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// When it was changed last, as the site says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// `true`: asked again and unchanged; what is known of the file is of an earlier answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_modified: Option<bool>,
    /// `false`: only the close ended the body, so its length could not be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_verified: Option<bool>,
    /// Id of the exit of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// Ids of the exits of the attempts before the last, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<String>,
    /// How many attempts were made (redirect hops count).
    #[serde(default)]
    pub attempts: u32,
    /// Why it is not ok.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
    /// Where the job waited, over all its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// How long each phase of the last attempt took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// When the record was written: RFC 3339, UTC.
    pub at: String,
    /// The entry's other columns or members, as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Map<String, Value>>,
}

impl Record {
    /// One that says nothing yet but how and when its entry ended.
    pub fn empty(outcome: Outcome, at: String) -> Record {
        Record {
            id: String::new(),
            line: 0,
            url: String::new(),
            method: None,
            final_url: None,
            outcome,
            status: None,
            file: None,
            offset: None,
            length: None,
            bytes: None,
            wire_bytes: None,
            sha256: None,
            content_type: None,
            content_encoding: None,
            etag: None,
            last_modified: None,
            not_modified: None,
            length_verified: None,
            exit: None,
            tried: Vec::new(),
            attempts: 0,
            error: None,
            waits: None,
            phases: None,
            at,
            extra: None,
        }
    }
}

/// Why a record is not ok.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordError {
    /// What happened.
    pub kind: ErrorKind,
    /// Whose fault.
    pub blame: Blame,
    /// One line for people.
    pub detail: String,
}

/// Waiting time of a job in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// For the origin's budget, pauses and back-off included.
    pub budget_ms: f64,
    /// For a free slot of an exit while the budget would have allowed it.
    pub exit_ms: f64,
}

/// Phase times of an attempt in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// Look-up and TCP connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dial_ms: Option<f64>,
    /// TLS with the exit, CONNECT or SOCKS5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_ms: Option<f64>,
    /// TLS with the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ms: Option<f64>,
    /// Request sent to head complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// Head complete to last byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_ms: Option<f64>,
}
