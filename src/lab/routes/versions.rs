//! The route whose answer changes from time to time and says so: validators and 304.

use std::time::{Duration, SystemTime};

use super::{Ask, Route};
use crate::lab::reply::{Body, Reply};

/// Version 1 is of the year 2026; each further one is a day younger.
const FIRST: u64 = 1_767_225_600;
const DAY: u64 = 86_400;

pub(super) fn reply(route: &Route<'_>, ask: &Ask<'_>) -> Option<Reply> {
    if route.name != "versions" {
        return None;
    }
    let visits = ask
        .origin
        .visit(format!("{} {}", ask.host.name, ask.target));
    let visit = u64::from(visits);
    if visit >= route.query.number("gone", u64::MAX) {
        return Some(Reply::status(404));
    }
    let version = visit / route.number::<u64>().filter(|every| *every > 0)? + 1;
    let only = route.query.get("only");
    let has = |what: &str| only.as_deref().is_none_or(|only| only == what);
    let etag = has("etag").then(|| format!("\"v{version}\""));
    let date = has("date").then(|| {
        let at = Duration::from_secs(FIRST + version.min(9999) * DAY);
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + at)
    });
    let body = Body::Bytes(format!("version {version} of {}\n", ask.target).into());
    let holds = holds(ask.head, etag.as_deref(), date.as_deref());
    let mut reply = match route.query.get("to") {
        _ if holds => Reply::status(304),
        Some(url) if !url.contains(['\r', '\n']) => Reply::status(302).field("Location", &url),
        _ => Reply::new(200, body).field("Content-Type", "text/plain"),
    };
    for (name, value) in [("ETag", etag), ("Last-Modified", date)] {
        if let Some(value) = value {
            reply = reply.field(name, &value);
        }
    }
    Some(reply)
}

/// RFC 9110 §13.2.2: `If-None-Match` counts alone where it is there.
fn holds(head: &[u8], etag: Option<&str>, date: Option<&str>) -> bool {
    let field = |name: &str| {
        let text = String::from_utf8_lossy(head);
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    match (field("if-none-match"), field("if-modified-since")) {
        (Some(known), _) => Some(known.as_str()) == etag,
        (None, Some(known)) => Some(known.as_str()) == date,
        (None, None) => false,
    }
}
