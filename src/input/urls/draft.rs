//! An entry between its row and its job: the fields as listed, then checked.
//!
//! Owns what each field must be, alike for text, CSV and JSONL. Invariant: a draft becomes
//! a job or a refusal, and what it knows of URL and id is in both.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};

use super::Entry;
use crate::input::{Reason, mask, target};
use crate::model::{ErrorKind, Job, Refusal};

/// Longest id that may be given, in bytes.
const MAX_ID: usize = 1024;

/// What is wrong with an entry.
#[derive(Debug)]
pub(super) struct Fault {
    pub kind: ErrorKind,
    pub reason: Reason,
}

impl Fault {
    /// The URL is missing or cannot be fetched.
    pub fn url(reason: impl Into<Reason>) -> Fault {
        Fault {
            kind: ErrorKind::BadUrl,
            reason: reason.into(),
        }
    }

    /// Anything else of the entry.
    pub fn entry(reason: impl Into<Reason>) -> Fault {
        Fault {
            kind: ErrorKind::BadEntry,
            reason: reason.into(),
        }
    }
}

/// The fields of an entry as far as they were read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub line: u64,
    /// As listed, outer blanks removed; empty: none.
    pub url: String,
    /// Checked by [`Draft::set_id`].
    pub id: Option<Box<str>>,
    pub method: Option<Method>,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    pub extra: Map<String, Value>,
}

impl Draft {
    /// Takes a given id; any text that can be shown on one line will do.
    pub fn set_id(&mut self, id: &str) -> Result<(), Fault> {
        if id.is_empty() || id.len() > MAX_ID || id.contains(char::is_control) {
            return Err(Fault::entry(format!(
                "has an id that is empty, longer than {MAX_ID} bytes or holds a control character"
            )));
        }
        self.id = Some(id.into());
        Ok(())
    }

    /// Takes a method. The well-known ones are upper-cased, as browsers do (Fetch standard,
    /// "normalize a method"); others are sent as listed.
    pub fn set_method(&mut self, method: &str) -> Result<(), Fault> {
        const KNOWN: [Method; 8] = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
            Method::PATCH,
            Method::TRACE,
        ];
        if method.eq_ignore_ascii_case("CONNECT") {
            return Err(Fault::entry(
                "has the method CONNECT, which is for proxies only",
            ));
        }
        let known = KNOWN
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(method));
        let method = match known {
            Some(known) => known,
            None => Method::from_bytes(method.as_bytes())
                .map_err(|_| Fault::entry("has a method that is not valid"))?,
        };
        self.method = Some(method);
        Ok(())
    }

    /// The job, if the fields read make one.
    pub fn job(&mut self) -> Result<Job, Fault> {
        if self.url.is_empty() {
            return Err(Fault::url("has no url"));
        }
        let target = target::parse(&self.url).map_err(Fault::url)?;
        let body = self.body.take().filter(|body| !body.is_empty());
        let method = self.method.take().unwrap_or(match body {
            Some(_) => Method::POST,
            None => Method::GET,
        });
        let id_given = self.id.is_some();
        let id = self.id.take().unwrap_or_else(|| {
            let body = body.as_deref().unwrap_or_default();
            Job::default_id(method.as_str(), target.identity.expose(), body)
        });
        let headers = std::mem::take(&mut self.headers);
        let extra = std::mem::take(&mut self.extra);
        Ok(Job {
            id,
            id_given,
            line: self.line,
            method,
            url: target.url,
            listed: target.listed,
            // A header that says it outright wins over the URL's login.
            authorization: target
                .authorization
                .filter(|_| !headers.contains_key(http::header::AUTHORIZATION)),
            headers: (!headers.is_empty()).then(|| Box::new(headers)),
            body,
            extra: (!extra.is_empty()).then(|| Box::new(extra)),
        })
    }

    /// The refusal of what was read so far.
    pub fn refusal(self, fault: Fault) -> Entry {
        let shown = mask::masked(&self.url);
        let id = self.id.unwrap_or_else(|| match shown.as_str() {
            "" => Job::default_id("", &format!("line {}", self.line), b""),
            shown => Job::default_id("", shown, b""),
        });
        Entry::Refused(Refusal {
            line: self.line,
            id,
            url: mask::cut(&shown).into(),
            kind: fault.kind,
            reason: fault.reason.into_owned(),
            extra: (!self.extra.is_empty()).then(|| Box::new(self.extra)),
        })
    }
}
