//! Requests as they come off a wire: the head as places in the buffer, the body whole.
//!
//! Nothing is copied on the way to an answer: a [`Head`] says where things stand in the
//! wire's input buffer, which is not moved until the request is done with.

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::{Status, parse_chunk_size};

use super::wire::{Gone, Wire};

/// Longest request head that is read.
const LONGEST_HEAD: usize = 1 << 20;
/// So much of a request body is kept (for `/echo`); the rest is read and thrown away.
const KEPT_BODY: usize = 1 << 20;
const FIELDS: usize = 64;
const MOST_FIELDS: usize = 4096;

/// A place in the wire's input buffer.
pub(super) type Place = Range<usize>;

/// The head of a request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) verb: Verb,
    pub(super) method: Place,
    pub(super) target: Place,
    /// Host, with port, of a target in absolute-form.
    pub(super) authority: Option<Place>,
    /// Path and query of the target, all of it in other forms.
    pub(super) path: Place,
    /// Value of `Host`.
    pub(super) host: Option<Place>,
    /// Value of `Proxy-Authorization`.
    pub(super) login: Option<Place>,
    /// A field whose name begins with `Proxy-` is there.
    pub(super) proxy_fields: bool,
    /// The sender means to go on with this connection.
    pub(super) persistent: bool,
    pub(super) whole: Place,
    length: Length,
    expects: bool,
}

/// The methods that change how an answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Connect,
    Head,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Known(u64),
    Chunked,
}

/// What is not a request.
#[derive(Debug)]
pub(super) struct BadRequest;

impl Wire {
    /// The next request's head. `Ok(Err(_))`: the peer speaks, but no HTTP.
    pub(super) async fn head(&mut self) -> Result<Result<Head, BadRequest>, Gone> {
        if self.used > 0 {
            self.inbuf.drain(..self.used);
            self.used = 0;
        }
        loop {
            if !self.inbuf.is_empty() {
                match parse(&self.inbuf) {
                    Ok(Some(head)) => return Ok(Ok(head)),
                    Ok(None) if self.inbuf.len() <= LONGEST_HEAD => {}
                    Ok(None) | Err(BadRequest) => return Ok(Err(BadRequest)),
                }
            }
            self.fill().await?;
        }
    }

    /// The text at `place`; what is not UTF-8 reads as nothing.
    pub(super) fn text(&self, place: &Place) -> &str {
        std::str::from_utf8(&self.inbuf[place.clone()]).unwrap_or_default()
    }

    /// Reads the body that belongs to `head`, up to its end. Gives its first part.
    pub(super) async fn body(&mut self, head: &Head) -> Result<Vec<u8>, Gone> {
        if head.length == Length::Known(0) {
            return Ok(Vec::new());
        }
        if head.expects {
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            self.send().await?;
        }
        let mut kept = Vec::new();
        match head.length {
            Length::Known(len) => self.take(head.whole.end, len, &mut kept).await?,
            Length::Chunked => self.chunks(head.whole.end, &mut kept).await?,
        }
        Ok(kept)
    }

    /// Takes `left` bytes out of the buffer at `from`, reading as needed.
    async fn take(&mut self, from: usize, mut left: u64, kept: &mut Vec<u8>) -> Result<(), Gone> {
        loop {
            let here = usize::try_from(left).unwrap_or(usize::MAX);
            let here = here.min(self.inbuf.len() - from);
            let room = KEPT_BODY.saturating_sub(kept.len()).min(here);
            kept.extend_from_slice(&self.inbuf[from..from + room]);
            self.inbuf.drain(from..from + here);
            left -= here as u64;
            if left == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn chunks(&mut self, from: usize, kept: &mut Vec<u8>) -> Result<(), Gone> {
        loop {
            match parse_chunk_size(&self.inbuf[from..]) {
                Ok(Status::Complete((line, size))) => {
                    self.inbuf.drain(from..from + line);
                    self.take(from, size, kept).await?;
                    let end = if size == 0 {
                        self.trailers(from).await?
                    } else {
                        self.line(from).await?
                    };
                    self.inbuf.drain(from..end);
                    if size == 0 {
                        return Ok(());
                    }
                }
                Ok(Status::Partial) => self.fill().await?,
                Err(_) => return Err(Gone),
            }
        }
    }

    /// Where the line at `from` ends, its line feed included.
    async fn line(&mut self, from: usize) -> Result<usize, Gone> {
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.inbuf[from..]) {
                return Ok(from + n + 1);
            }
            self.fill().await?;
        }
    }

    /// Where the trailer section at `from` ends, its empty line included.
    async fn trailers(&mut self, from: usize) -> Result<usize, Gone> {
        let mut at = from;
        loop {
            let end = self.line(at).await?;
            if self.inbuf[at..end].trim_ascii().is_empty() {
                return Ok(end);
            }
            at = end;
        }
    }
}

fn parse(buf: &[u8]) -> Result<Option<Head>, BadRequest> {
    let mut few = [const { MaybeUninit::uninit() }; FIELDS];
    match parse_into(buf, &mut few) {
        Err(httparse::Error::TooManyHeaders) => {
            let mut many = vec![MaybeUninit::uninit(); MOST_FIELDS];
            parse_into(buf, &mut many).map_err(|_| BadRequest)
        }
        parsed => parsed.map_err(|_| BadRequest),
    }
}

fn parse_into<'b>(
    buf: &'b [u8],
    fields: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Option<Head>, httparse::Error> {
    let mut request = httparse::Request::new(&mut []);
    let Status::Complete(end) = request.parse_with_uninit_headers(buf, fields)? else {
        return Ok(None);
    };
    let place = |part: &[u8]| {
        let start = part.as_ptr().addr() - buf.as_ptr().addr();
        start..start + part.len()
    };
    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    let parts = absolute(target);
    let mut head = Head {
        verb: match method {
            "CONNECT" => Verb::Connect,
            "HEAD" => Verb::Head,
            _ => Verb::Other,
        },
        method: place(method.as_bytes()),
        target: place(target.as_bytes()),
        authority: parts.map(|(authority, _)| place(authority.as_bytes())),
        path: place(parts.map_or(target, |(_, path)| path).as_bytes()),
        host: None,
        login: None,
        proxy_fields: false,
        persistent: request.version == Some(1),
        whole: 0..end,
        length: Length::Known(0),
        expects: false,
    };
    for field in request.headers.iter() {
        note(&mut head, field, &place)?;
    }
    Ok(Some(head))
}

/// Host (with port) and path of a target in absolute-form.
fn absolute(target: &str) -> Option<(&str, &str)> {
    let rest = target
        .strip_prefix("http://")
        .or_else(|| target.strip_prefix("https://"))?;
    let end = memchr::memchr2(b'/', b'?', rest.as_bytes()).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let login = memchr::memrchr(b'@', host.as_bytes()).map_or(0, |at| at + 1);
    Some((&host[login..], path))
}

fn note(
    head: &mut Head,
    field: &httparse::Header<'_>,
    place: &impl Fn(&[u8]) -> Place,
) -> Result<(), httparse::Error> {
    let name = field.name;
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    let says = |word: &[u8]| field.value.to_ascii_lowercase().ends_with(word);
    match name.len() {
        4 if is("host") => head.host = Some(place(field.value)),
        6 if is("expect") => head.expects = says(b"100-continue"),
        10 if is("connection") => {
            head.persistent = !says(b"close") && (head.persistent || says(b"keep-alive"));
        }
        14 if is("content-length") => {
            let digits = std::str::from_utf8(field.value).ok();
            let length = digits.and_then(|text| text.trim().parse().ok());
            head.length = Length::Known(length.ok_or(httparse::Error::HeaderValue)?);
        }
        17 if is("transfer-encoding") && says(b"chunked") => head.length = Length::Chunked,
        _ => {}
    }
    if name.len() > 6 && name.as_bytes()[..6].eq_ignore_ascii_case(b"proxy-") {
        head.proxy_fields = true;
        if is("proxy-authorization") {
            head.login = Some(place(field.value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn the_parts_of_a_head_are_found_in_the_buffer() {
        let text = "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic QQ==\r\n\r\nrest";
        let head = head(text);
        assert_eq!(&text[head.method.clone()], "GET");
        assert_eq!(&text[head.target.clone()], "http://a.test/x");
        assert_eq!(&text[head.host.clone().unwrap()], "a.test");
        assert_eq!(&text[head.login.clone().unwrap()], "Basic QQ==");
        assert_eq!(&text[head.whole.end..], "rest");
        assert!(head.persistent && head.proxy_fields);
        assert_eq!((head.verb, head.length), (Verb::Other, Length::Known(0)));
    }

    #[test]
    fn an_absolute_target_falls_into_host_and_path() {
        for (target, parts) in [
            ("http://a.test/x?y", Some(("a.test", "/x?y"))),
            ("http://a.test:81", Some(("a.test:81", ""))),
            ("http://[::1]:81/", Some(("[::1]:81", "/"))),
            ("http://u:p@a.test/", Some(("a.test", "/"))),
            ("/x", None),
            ("*", None),
        ] {
            assert_eq!(absolute(target), parts, "{target}");
        }
    }

    #[test]
    fn persistence_follows_the_version_and_the_connection_field() {
        for (text, persistent) in [
            ("GET / HTTP/1.1\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true),
        ] {
            assert_eq!(head(text).persistent, persistent, "{text}");
        }
    }

    #[test]
    fn a_head_with_very_many_fields_is_read_and_an_unfinished_one_waited_for() {
        let fields: String = (0..500).map(|n| format!("X-{n}: y\r\n")).collect();
        assert!(
            parse(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes()).is_ok_and(|h| h.is_some())
        );
        assert!(parse(b"GET / HTTP/1.1\r\nHost: a").unwrap().is_none());
        assert!(parse(b"\x16\x03\x01\x02\x00").is_err());
        assert!(parse(b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n").is_err());
    }
}
