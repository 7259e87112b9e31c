//! From what happened to a job to its record.

use std::time::Duration;

use http::Method;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED};

use crate::model::record::{Phases, RecordError, Waits};
use crate::model::{Attempt, Exit, Failure, Head, Outcome, PhaseTimes, Record, Refusal};
use crate::schedule::{ExitIx, Work};
use crate::store::Placed;

/// A body that is where it stays.
pub(super) struct Stored {
    /// In an archive; otherwise under the name that its record has.
    pub(super) place: Option<Placed>,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Stored {
    /// Adds to `record` what was known only now.
    pub(super) fn complete(self, record: &mut Record) {
        record.bytes = Some(self.bytes);
        record.sha256 = Some(self.sha256);
        if let Some(place) = self.place {
            record.file = Some(place.file);
            record.offset = Some(place.offset);
            record.length = Some(place.length);
        }
    }
}

/// The record of a job whose body is about to be stored ([`Stored`] completes it), under the name
/// `file` if it has a file of its own. `at` is RFC 3339.
pub(super) fn ok(
    work: &Work,
    attempt: &Attempt,
    file: Option<String>,
    exits: &[Exit],
    at: String,
) -> Record {
    let head = attempt.head.as_ref();
    Record {
        status: attempt.status(),
        file,
        wire_bytes: Some(attempt.wire_bytes),
        content_type: text_of(head, CONTENT_TYPE),
        content_encoding: text_of(head, CONTENT_ENCODING),
        etag: text_of(head, ETAG),
        last_modified: text_of(head, LAST_MODIFIED),
        length_verified: (!attempt.length_verified).then_some(false),
        phases: Some(phases(&attempt.phases)),
        ..base(work, Outcome::Ok, exits, at)
    }
}

/// The record of a job whose stored body, which `known` tells of, still holds.
pub(super) fn not_modified(
    work: &Work,
    attempt: &Attempt,
    known: Record,
    exits: &[Exit],
    at: String,
) -> Record {
    let head = attempt.head.as_ref();
    Record {
        status: attempt.status(),
        file: known.file,
        offset: known.offset,
        length: known.length,
        bytes: known.bytes,
        wire_bytes: Some(attempt.wire_bytes),
        sha256: known.sha256,
        content_type: known.content_type,
        content_encoding: known.content_encoding,
        etag: text_of(head, ETAG).or(known.etag),
        last_modified: text_of(head, LAST_MODIFIED).or(known.last_modified),
        not_modified: Some(true),
        length_verified: known.length_verified,
        phases: Some(phases(&attempt.phases)),
        ..base(work, Outcome::Ok, exits, at)
    }
}

/// The record of a job that was given up.
pub(super) fn failed(work: &Work, failure: Failure, exits: &[Exit], at: String) -> Record {
    let last = work.last();
    Record {
        status: last.and_then(|last| last.status),
        phases: last.map(|last| phases(&last.phases)),
        error: Some(RecordError {
            kind: failure.kind,
            blame: failure.blame,
            detail: failure.detail,
        }),
        ..base(work, Outcome::Failed, exits, at)
    }
}

/// The record of an entry that cannot be used.
pub(super) fn refused(refusal: Refusal, at: String) -> Record {
    Record {
        id: refusal.id.into(),
        line: refusal.line,
        url: refusal.url.into(),
        error: Some(RecordError {
            kind: refusal.kind,
            blame: crate::model::Blame::Job,
            detail: refusal.reason,
        }),
        extra: refusal.extra.map(|extra| *extra),
        ..Record::empty(Outcome::Refused, at)
    }
}

fn base(work: &Work, outcome: Outcome, exits: &[Exit], at: String) -> Record {
    let name = |exit: &ExitIx| exits[exit.index()].id.to_string();
    let (last, before) = match work.tried().split_last() {
        Some((last, before)) => (Some(name(last)), before.iter().map(name).collect()),
        None => (None, Vec::new()),
    };
    let waited = work.waited();
    Record {
        id: work.job.id.to_string(),
        line: work.job.line,
        url: work.job.shown_url().to_owned(),
        method: (work.job.method != Method::GET).then(|| work.job.method.to_string()),
        final_url: work.final_url().map(ToString::to_string),
        exit: last,
        tried: before,
        attempts: work.attempts(),
        waits: Some(Waits {
            budget_ms: millis(waited.budget),
            exit_ms: millis(waited.exit),
        }),
        extra: work.job.extra.as_deref().cloned(),
        ..Record::empty(outcome, at)
    }
}

fn phases(times: &PhaseTimes) -> Phases {
    Phases {
        dial_ms: times.dial.map(millis),
        handshake_ms: times.handshake.map(millis),
        tls_ms: times.tls.map(millis),
        first_byte_ms: times.first_byte.map(millis),
        body_ms: times.body.map(millis),
    }
}

/// Milliseconds to the microsecond: more digits would be noise.
fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}

fn text_of(head: Option<&Head>, name: HeaderName) -> Option<String> {
    let value = head?.headers.get(name)?;
    // Nearly always text: told sooner than where it is none.
    Some(match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    })
}
