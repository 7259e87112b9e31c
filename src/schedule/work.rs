//! A job on its way: what was tried, where it was redirected to, how long it waited.
//!
//! Owns: everything about one job that changes between `push` and its end. It travels boxed:
//! queue → engine → queue, so nothing about a job is kept in two places. Leaves to others:
//! every decision (`settle`, `redirect`, `retry`).

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, COOKIE,
};
use http::{HeaderMap, Method};
use url::Url;

use crate::model::{Attempt, Failure, Job, PhaseTimes, Secret, Time};

use super::ExitIx;
use super::blame::Symptom;
use super::retry::Tries;
use super::split::Share;

/// Where a job waited, over all its attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// For the origin's budget: rate, pauses, in-flight bound, back-off, others in the queue.
    pub budget: Duration,
    /// For a free slot of an exit while the budget would have allowed the start.
    pub exit: Duration,
}

/// What a record shows of the last attempt when the job ends without another one.
#[derive(Clone, Debug)]
pub struct LastAttempt {
    /// Of the origin's side.
    pub status: Option<u16>,
    /// How long each phase took.
    pub phases: PhaseTimes,
    /// Body bytes on the wire.
    pub wire_bytes: u64,
    /// What was wrong with it; `None` for a redirect that was followed.
    pub failure: Option<Failure>,
}

/// How an attempt of the present request failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) exit: ExitIx,
    pub(super) symptom: Symptom,
    /// What the exit carries for it, while it was not clear whose fault it was. If another
    /// exit fails the job alike, it moves to the origin.
    pub(super) charged: Option<Share>,
}

/// A redirected job's present request, where it differs from the listed one.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) target: Url,
    pub(super) method: Method,
    pub(super) content: Content,
    pub(super) home: Home,
    /// Requests made before this one, by the hash of method and URL: the URLs themselves would be
    /// copied at each of what may be thousands of hops.
    pub(super) passed: Vec<u64>,
}

/// Whether the job's body goes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Kept,
    /// A redirect turned the request into a GET.
    Dropped,
}

/// Whether credentials may go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    AtOrigin,
    /// Another origin was passed, or TLS was given up; a way back does not heal it.
    Left,
}

/// See the module's text.
#[derive(Debug)]
pub struct Work {
    /// As listed.
    pub job: Job,
    pub(super) hop: Option<Box<Hop>>,
    pub(super) tried: Vec<ExitIx>,
    /// Where in `tried` the present request begins: exits before it answered with a redirect.
    pub(super) request_from: u32,
    pub(super) tries: Tries,
    /// Pauses that the origin asked for when it was this job's turn.
    pub(super) pauses: u8,
    /// Attempts in a row that ended for a reason of ours.
    pub(super) mishaps: u8,
    pub(super) met: Vec<Met>,
    pub(super) last: Option<Box<LastAttempt>>,
    pub(super) waited: Waited,
    /// Since when it waits, or when its back-off ends.
    pub(super) since: Time,
    /// What its origin had lacked exits for when it was filed there.
    pub(super) lack_before: Duration,
}

impl Work {
    pub(super) fn new(job: Job, now: Time) -> Box<Work> {
        Box::new(Work {
            job,
            hop: None,
            tried: Vec::new(),
            request_from: 0,
            tries: Tries::default(),
            pauses: 0,
            mishaps: 0,
            met: Vec::new(),
            last: None,
            waited: Waited::default(),
            since: now,
            lack_before: Duration::ZERO,
        })
    }

    /// What to ask for now: the listed URL, or where redirects led.
    pub fn target(&self) -> &Url {
        self.hop.as_ref().map_or(&self.job.url, |hop| &hop.target)
    }

    /// Where redirects led, if anywhere.
    pub fn final_url(&self) -> Option<&Url> {
        self.hop.as_ref().map(|hop| &hop.target)
    }

    /// The method to ask with now.
    pub fn method(&self) -> &Method {
        self.hop
            .as_ref()
            .map_or(&self.job.method, |hop| &hop.method)
    }

    /// The body to send now.
    pub fn body(&self) -> Option<&Bytes> {
        self.job.body.as_ref().filter(|_| !self.content_dropped())
    }

    /// The `Authorization` that the listed URL carried, while it may go along.
    pub fn authorization(&self) -> Option<&Secret> {
        let authorization = self.job.authorization.as_ref();
        authorization.filter(|_| !self.left_origin())
    }

    /// The job's own headers as far as they may go along: no credentials to another origin,
    /// and nothing about a body that is not sent (Fetch standard, "HTTP-redirect fetch").
    pub fn headers(&self) -> Option<Cow<'_, HeaderMap>> {
        let headers = self.job.headers.as_deref()?;
        let mut gone = Vec::new();
        if self.left_origin() {
            gone.extend([AUTHORIZATION, COOKIE]);
        }
        if self.content_dropped() {
            gone.extend([
                CONTENT_ENCODING,
                CONTENT_LANGUAGE,
                CONTENT_LOCATION,
                CONTENT_TYPE,
            ]);
        }
        if gone.is_empty() {
            return Some(Cow::Borrowed(headers));
        }
        let mut kept = headers.clone();
        for name in gone {
            kept.remove(name);
        }
        Some(Cow::Owned(kept))
    }

    /// A redirect led to another origin: credentials of the run (`-H`) stay behind as well.
    pub fn left_origin(&self) -> bool {
        self.hop.as_ref().is_some_and(|hop| hop.home == Home::Left)
    }

    /// The exits of the attempts so far, in order; redirect hops count.
    pub fn tried(&self) -> &[ExitIx] {
        &self.tried
    }

    /// How many attempts were made. One that failed for a reason of ours does not count.
    pub fn attempts(&self) -> u32 {
        self.tried.len() as u32
    }

    /// The last attempt as a record shows it.
    pub fn last(&self) -> Option<&LastAttempt> {
        self.last.as_deref()
    }

    /// Where it waited.
    pub fn waited(&self) -> Waited {
        self.waited
    }

    /// The exits that failed the present request.
    pub(super) fn left_out(&self) -> &[ExitIx] {
        &self.tried[self.request_from as usize..]
    }

    /// It may not start for another `delay`; that is time waited for the origin.
    pub(super) fn back_off(&mut self, delay: Duration, now: Time) {
        self.since = now + delay;
        self.waited.budget += delay;
    }

    /// Books the time since `since`: of it `lack` was an exit's, the rest the budget's.
    pub(super) fn book_wait(&mut self, lack: Duration, now: Time) {
        let wait = now - self.since;
        let exit = lack.min(wait);
        self.waited.budget += wait - exit;
        self.waited.exit += exit;
    }

    /// A redirect leads on: a new request, with all exits to choose from.
    pub(super) fn goes_to(&mut self, hop: Hop, now: Time) {
        self.hop = Some(Box::new(hop));
        self.request_from = self.attempts();
        self.met.clear();
        self.since = now;
    }

    pub(super) fn remember(&mut self, attempt: &Attempt, failure: Option<Failure>) {
        self.last = Some(Box::new(LastAttempt {
            status: attempt.status(),
            phases: attempt.phases,
            wire_bytes: attempt.wire_bytes,
            failure,
        }));
    }

    /// About how much memory it takes; the same as long as it waits.
    pub(super) fn size(&self) -> usize {
        let headers = self.job.headers.as_ref().map_or(0, |headers| {
            let lengths = headers
                .iter()
                .map(|(name, value)| name.as_str().len() + value.len());
            lengths.sum()
        });
        let body = self.job.body.as_ref().map_or(0, Bytes::len);
        size_of::<Work>() + 2 * self.job.url.as_str().len() + headers + body + self.history()
    }

    /// The part of it that attempts have left.
    fn history(&self) -> usize {
        let lists =
            self.tried.capacity() * size_of::<ExitIx>() + self.met.capacity() * size_of::<Met>();
        let last = self.last.as_ref().map_or(0, |last| {
            let detail = last.failure.as_ref().map_or(0, |f| f.detail.capacity());
            size_of::<LastAttempt>() + detail
        });
        let hop = self.hop.as_ref().map_or(0, |hop| {
            size_of::<Hop>() + 2 * hop.target.as_str().len() + hop.passed.capacity() * 8
        });
        lists + last + hop
    }

    fn content_dropped(&self) -> bool {
        self.hop
            .as_ref()
            .is_some_and(|hop| hop.content == Content::Dropped)
    }
}
