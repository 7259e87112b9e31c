//! The origin's routes: one per behaviour, the same at every host.
//!
//! Bodies are [`super::content`] unless a route says otherwise. Every route takes more path
//! segments after its own (`/ok/10/7`), so that one route gives as many URLs as wanted, and
//! these query parameters: `wait=MS` before the first byte, `type=T` as content type,
//! `field=Name: value` as one more header line (may come several times).
//!
//! | route | answer |
//! | --- | --- |
//! | `/` | this table in short |
//! | `/bytes/N`, `/ok/N` | 200, N bytes |
//! | `/delay/MS` | MS milliseconds, then 200; `size=N` bytes (64) |
//! | `/status/S` | status S with a line of text (none at 1xx, 204, 304) |
//! | `/no-content`, `/not-modified` | 204, 304 |
//! | `/drip?bytes=N&ms=MS` | head at once, N bytes spread over MS (20 over 2000) |
//! | `/drip-head?ms=MS` | the head byte by byte over MS (2000), then `bytes=N` (20) |
//! | `/chunked/N` | N bytes, chunked; with `ms=MS` spread over that time |
//! | `/http10/N` | N bytes, HTTP/1.0, ended by the close |
//! | `/last/N` | N bytes, `Connection: close` |
//! | `/head/N` | a head of N bytes, then 20 bytes |
//! | `/gzip/N`, `/br/N`, `/zstd/N` | N bytes in that content coding |
//! | `/archive/N` | as `/gzip/N`, with the type `application/gzip` |
//! | `/gzip-bomb/N` | N zero bytes in gzip |
//! | `/gzip-lie` | plain text that claims to be gzip |
//! | `/redirect/N` | N redirects, then 200; `status=S` (302) |
//! | `/redirect-to?url=U&status=S` | to U as it is; without `url` no `Location` at all |
//! | `/redirect-loop`, `/redirect-loop/a` | to itself; to `/redirect-loop/b` and back |
//! | `/redirect-on/N` | to `/redirect-on/N+1`, without end |
//! | `/retry-after/V` | `Retry-After: V` once per URL, then 200; `in:S` is the date S seconds ahead; `times=N`, `status=S` (429), `per=host`, `skew=S` shifts `Date` and date |
//! | `/rate-limited/R` | 429 above R requests in a second at this host; `retry-after=V` adds the field |
//! | `/busy/N` | 503 while more than N are in flight at this host; takes `ms=MS` (100) |
//! | `/banned/EXIT` | 403 to what comes through the exit of that name, else 200; `status=S` |
//! | `/flaky/N` | fails the first N times per URL, then 200; `how=S` (503), `reset`, `close`, `cut` |
//! | `/versions/N` | a text that changes with every N requests of the URL, with `ETag` and `Last-Modified` (`only=etag`, `only=date`), 304 if asked by them; `to=U`: else to U; `gone=K`: 404 after K |
//! | `/echo` | what was sent, as JSON: method, target, host, headers, body, exit, login |
//! | `/truncated/N` | announces N bytes, sends one fewer (`sent=K`), closes |
//! | `/reset-body/N` | half of N bytes, then a reset |
//! | `/half/N` | half of N bytes, then silence |
//! | `/endless` | a body without end, chunked; `ms=MS` between pieces of 1 KiB |
//! | `/chunked-cut/N` | N bytes, chunked, closed before the last chunk |
//! | `/chunked-bad` | a chunk size that is none |
//! | `/two-lengths` | two `Content-Length` fields that differ |
//! | `/silent` | nothing, ever |
//! | `/close`, `/reset` | the close or a reset instead of an answer |
//! | `/no-http` | text without a status line |
//! | `/early` | 103 and then 200 |
//! | `/switching` | 101, which nobody asked for |
//! | `/garbage-after` | 200, and bytes that belong to no answer |
//! | `/stale/N` | 200 with N bytes; the socket closes when the next request comes |
//!
//! Anything else is 404.
//!
//! TLS comes before any route, so there the host name says how it goes (`exit/tunnel.rs`):
//! `untrusted.…`, `wrong-name.…`, `tls-alert.…`, `tls-close.…`, `tls-silent.…`,
//! `tls-garbage.…`.

mod bodies;
mod broken;
mod moods;
mod query;
mod versions;

use super::origin::{Host, Origin};
use super::reply::{End, Reply};
pub(super) use query::Query;

/// What is asked of the origin.
pub(super) struct Ask<'a> {
    pub(super) origin: &'a Origin,
    pub(super) host: &'a Host,
    /// Path and query, as sent.
    pub(super) target: &'a str,
    pub(super) method: &'a str,
    /// The whole request head.
    pub(super) head: &'a [u8],
    /// First MiB of the request body.
    pub(super) body: &'a [u8],
    /// Inside TLS.
    pub(super) secure: bool,
    /// Came as absolute-form: fields for the exit are not the origin's.
    pub(super) forwarded: bool,
    /// Name of the exit, and the username there.
    pub(super) via: Option<(&'a str, Option<&'a str>)>,
}

/// A target in its parts.
pub(super) struct Route<'a> {
    /// First path segment.
    name: &'a str,
    /// Second path segment, empty if there is none.
    value: &'a str,
    query: Query<'a>,
}

impl<'a> Route<'a> {
    fn of(target: &'a str) -> Route<'a> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut segments = path.trim_start_matches('/').split('/');
        Route {
            name: segments.next().unwrap_or_default(),
            value: segments.next().unwrap_or_default(),
            query: Query(query),
        }
    }

    /// The second segment as a number.
    fn number<T: std::str::FromStr>(&self) -> Option<T> {
        self.value.parse().ok()
    }

    /// The second segment as a number, `default` if there is none.
    fn number_or(&self, default: u64) -> Option<u64> {
        if self.value.is_empty() {
            return Some(default);
        }
        self.number()
    }
}

/// The origin's answer.
pub(super) fn reply(ask: &Ask<'_>) -> Reply {
    let route = Route::of(ask.target);
    let found = bodies::reply(&route, ask)
        .or_else(|| moods::reply(&route, ask))
        .or_else(|| versions::reply(&route, ask))
        .or_else(|| broken::reply(&route));
    let mut reply =
        found.unwrap_or_else(|| Reply::text(404, "no such route, or not in this form; see /\n"));
    if !route.query.is_empty() {
        adorn(&mut reply, &route.query);
    }
    reply
}

/// The query parameters that every route takes.
fn adorn(reply: &mut Reply, query: &Query<'_>) {
    reply.wait += query.millis("wait", 0);
    let extra = query.all("field").chain(
        query
            .get("type")
            .map(|kind| format!("Content-Type: {kind}").into()),
    );
    for line in extra {
        if !line.contains(['\r', '\n']) && line.contains(':') {
            reply.fields.push_str(&line);
            reply.fields.push_str("\r\n");
        }
    }
}

/// The module's table as text, for `/`.
fn index() -> Reply {
    let table: String = include_str!("mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `"))
        .map(|line| line.replace(['`', '|'], "") + "\n")
        .collect();
    Reply::text(200, table)
}

/// The half of a body that an exit lets through before it closes.
pub(super) fn halved(reply: Reply) -> Reply {
    match reply.body {
        super::reply::Body::Content(size) => reply.cut(size / 2, End::Close),
        super::reply::Body::Bytes(ref bytes) => {
            let half = bytes.len() as u64 / 2;
            reply.cut(half, End::Close)
        }
        super::reply::Body::None => reply,
    }
}
