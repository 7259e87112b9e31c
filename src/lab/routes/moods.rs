//! Routes whose answer depends on what was asked before, leads elsewhere, or tells what was
//! asked.

use std::time::{Duration, SystemTime};

use percent_encoding::percent_decode_str;
use serde_json::json;

use super::{Ask, Route};
use crate::lab::reply::{Body, End, Reply};

const SIZE: u64 = 64;

pub(super) fn reply(route: &Route<'_>, ask: &Ask<'_>) -> Option<Reply> {
    Some(match route.name {
        "redirect" => match route.number::<u32>()? {
            0 => Reply::content(SIZE),
            left => {
                let query = with_question_mark(route.query.0);
                to(route, &format!("/redirect/{}{query}", left - 1))
            }
        },
        "redirect-to" => match route.query.get("url") {
            Some(url) if !url.contains(['\r', '\n']) => to(route, &url),
            _ => Reply::status(route.query.status("status", 302)),
        },
        "redirect-loop" => to(
            route,
            match route.value {
                "a" => "/redirect-loop/b",
                "b" => "/redirect-loop/a",
                _ => "/redirect-loop",
            },
        ),
        "redirect-on" => to(
            route,
            &format!("/redirect-on/{}", route.number::<u64>()?.saturating_add(1)),
        ),
        "retry-after" => retry_after(route, ask),
        "rate-limited" => rate_limited(route, ask)?,
        "busy" => busy(route, ask)?,
        "banned" => match ask.via {
            Some((exit, _)) if exit == route.value => {
                Reply::status(route.query.status("status", 403))
            }
            _ => Reply::content(SIZE),
        },
        "flaky" => flaky(route, ask)?,
        "echo" => echo(ask),
        _ => return None,
    })
}

fn with_question_mark(query: &str) -> String {
    if query.is_empty() {
        String::new()
    } else {
        format!("?{query}")
    }
}

fn to(route: &Route<'_>, location: &str) -> Reply {
    Reply::status(route.query.status("status", 302)).field("Location", location)
}

fn retry_after(route: &Route<'_>, ask: &Ask<'_>) -> Reply {
    let key = match route.query.get("per").as_deref() {
        Some("host") => format!("{} retry-after", ask.host.name),
        _ => format!("{} {}", ask.host.name, ask.target),
    };
    if ask.origin.visit(key) >= route.query.number("times", 1) {
        return Reply::content(SIZE);
    }
    let value = percent_decode_str(route.value).decode_utf8_lossy();
    let clock = ask.origin.clock;
    let skew: i64 = route.query.number("skew", 0);
    let date = |ahead: i64| {
        let now = clock.unix(clock.now()).as_secs();
        let at = now.saturating_add_signed(skew.saturating_add(ahead));
        // Later than the year 9999 cannot be written.
        httpdate::fmt_http_date(
            SystemTime::UNIX_EPOCH + Duration::from_secs(at.min(253_402_300_799)),
        )
    };
    let value = match value.strip_prefix("in:").and_then(|s| s.parse().ok()) {
        Some(ahead) => date(ahead),
        None => value.replace(['\r', '\n'], ""),
    };
    Reply::status(route.query.status("status", 429))
        .field("Date", &date(0))
        .field("Retry-After", &value)
}

fn rate_limited(route: &Route<'_>, ask: &Ask<'_>) -> Option<Reply> {
    if ask.origin.admits(ask.host, route.number()?) {
        return Some(Reply::content(SIZE));
    }
    let reply = Reply::status(429);
    Some(match route.query.get("retry-after") {
        Some(value) if !value.contains(['\r', '\n']) => reply.field("Retry-After", &value),
        _ => reply,
    })
}

fn busy(route: &Route<'_>, ask: &Ask<'_>) -> Option<Reply> {
    if ask.host.in_flight.now() > route.number()? {
        return Some(Reply::status(503));
    }
    let mut reply = Reply::content(SIZE);
    reply.wait = route.query.millis("ms", 100);
    Some(reply)
}

fn flaky(route: &Route<'_>, ask: &Ask<'_>) -> Option<Reply> {
    let key = format!("{} {}", ask.host.name, ask.target);
    if ask.origin.visit(key) >= route.number()? {
        return Some(Reply::content(SIZE));
    }
    Some(match route.query.get("how").as_deref() {
        Some("reset") => Reply::raw("", End::Reset),
        Some("close") => Reply::raw("", End::Close),
        Some("cut") => Reply::content(SIZE).cut(SIZE / 2, End::Close),
        _ => Reply::status(route.query.status("how", 503)),
    })
}

fn echo(ask: &Ask<'_>) -> Reply {
    let mut fields = vec![httparse::EMPTY_HEADER; 4096];
    let mut request = httparse::Request::new(&mut fields);
    // It was read once already.
    let _ = request.parse(ask.head);
    let headers: Vec<[String; 2]> = request
        .headers
        .iter()
        .filter(|field| !(ask.forwarded && is_for_the_exit(field.name)))
        .map(|field| {
            let value = String::from_utf8_lossy(field.value).into_owned();
            [field.name.to_owned(), value]
        })
        .collect();
    let said = json!({
        "method": ask.method,
        "target": ask.target,
        "host": &*ask.host.name,
        "secure": ask.secure,
        "headers": headers,
        "body": String::from_utf8_lossy(ask.body),
        "exit": ask.via.map(|(exit, _)| exit),
        "login": ask.via.and_then(|(_, login)| login),
    });
    Reply::new(200, Body::Bytes(format!("{said:#}\n").into()))
        .field("Content-Type", "application/json")
}

/// Fields that a proxy keeps to itself.
fn is_for_the_exit(name: &str) -> bool {
    name.len() > 6 && name.as_bytes()[..6].eq_ignore_ascii_case(b"proxy-")
}
