//! One job as bytes, and back: everything in it, to the last bit.
//!
//! Owns the form of a record's content: lengths as LEB128, then bytes. Never read by another
//! program or another run, so it has no version. Other columns are written value by value and
//! not as JSON text: a number must come back as it was, not as its shortest spelling is read.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Number, Value};
use url::Url;

use crate::model::{Job, Secret};

/// Which parts a record has.
const ID_GIVEN: u8 = 1;
const LISTED: u8 = 2;
const AUTHORIZATION: u8 = 4;
const HEADERS: u8 = 8;
const BODY: u8 = 16;
const EXTRA: u8 = 32;

/// Appends `job` to `out`.
pub(super) fn encode(job: &Job, out: &mut Vec<u8>) {
    let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
    out.push(
        flag(job.id_given, ID_GIVEN)
            | flag(job.listed.is_some(), LISTED)
            | flag(job.authorization.is_some(), AUTHORIZATION)
            | flag(job.headers.is_some(), HEADERS)
            | flag(job.body.is_some(), BODY)
            | flag(job.extra.is_some(), EXTRA),
    );
    put_number(job.line, out);
    put(job.id.as_bytes(), out);
    put(job.method.as_str().as_bytes(), out);
    put(job.url.as_str().as_bytes(), out);
    if let Some(listed) = &job.listed {
        put(listed.as_bytes(), out);
    }
    if let Some(authorization) = &job.authorization {
        put(authorization.expose().as_bytes(), out);
    }
    if let Some(headers) = &job.headers {
        put_headers(headers, out);
    }
    if let Some(body) = &job.body {
        put(body, out);
    }
    if let Some(extra) = &job.extra {
        put_map(extra, out);
    }
}

/// The job that [`encode`] wrote; `None` if `bytes` are something else.
pub(super) fn decode(bytes: &[u8]) -> Option<Job> {
    let mut rest = Rest(bytes);
    let flags = rest.byte()?;
    let has = |flag: u8| flags & flag != 0;
    let job = Job {
        id_given: has(ID_GIVEN),
        line: rest.number()?,
        id: rest.text()?.into(),
        method: Method::from_bytes(rest.bytes()?).ok()?,
        url: Url::parse(rest.text()?).ok()?,
        listed: match has(LISTED) {
            true => Some(rest.text()?.into()),
            false => None,
        },
        authorization: match has(AUTHORIZATION) {
            true => Some(Secret::new(rest.text()?)),
            false => None,
        },
        headers: match has(HEADERS) {
            true => Some(Box::new(rest.headers()?)),
            false => None,
        },
        body: match has(BODY) {
            true => Some(Bytes::copy_from_slice(rest.bytes()?)),
            false => None,
        },
        extra: match has(EXTRA) {
            true => Some(Box::new(rest.map()?)),
            false => None,
        },
    };
    rest.0.is_empty().then_some(job)
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_headers(headers: &HeaderMap, out: &mut Vec<u8>) {
    put_number(headers.len() as u64, out);
    for (name, value) in headers {
        put(name.as_str().as_bytes(), out);
        put(value.as_bytes(), out);
        out.push(u8::from(value.is_sensitive()));
    }
}

fn put_map(map: &Map<String, Value>, out: &mut Vec<u8>) {
    put_number(map.len() as u64, out);
    for (key, value) in map {
        put(key.as_bytes(), out);
        put_value(value, out);
    }
}

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(b'n'),
        Value::Bool(false) => out.push(b'f'),
        Value::Bool(true) => out.push(b't'),
        Value::Number(number) => put_json_number(number, out),
        Value::String(text) => {
            out.push(b's');
            put(text.as_bytes(), out);
        }
        Value::Array(values) => {
            out.push(b'a');
            put_number(values.len() as u64, out);
            values.iter().for_each(|value| put_value(value, out));
        }
        Value::Object(map) => {
            out.push(b'o');
            put_map(map, out);
        }
    }
}

fn put_json_number(number: &Number, out: &mut Vec<u8>) {
    let (tag, bits) = match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(whole), ..) => (b'u', whole),
        (None, Some(whole), _) => (b'i', whole.cast_unsigned()),
        (None, None, other) => (b'd', other.unwrap_or_default().to_bits()),
    };
    out.push(tag);
    out.extend_from_slice(&bits.to_le_bytes());
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn headers(&mut self) -> Option<HeaderMap> {
        let count = self.number()?;
        let mut headers = HeaderMap::new();
        for _ in 0..count {
            let name = HeaderName::from_bytes(self.bytes()?).ok()?;
            let mut value = HeaderValue::from_bytes(self.bytes()?).ok()?;
            value.set_sensitive(self.byte()? == 1);
            headers.append(name, value);
        }
        Some(headers)
    }

    fn map(&mut self) -> Option<Map<String, Value>> {
        let count = self.number()?;
        let mut map = Map::new();
        for _ in 0..count {
            let key = self.text()?.to_owned();
            map.insert(key, self.value()?);
        }
        Some(map)
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            b'n' => Value::Null,
            b'f' => Value::Bool(false),
            b't' => Value::Bool(true),
            b'u' => Value::from(self.eight()?),
            b'i' => Value::from(self.eight()?.cast_signed()),
            b'd' => Value::from(f64::from_bits(self.eight()?)),
            b's' => Value::String(self.text()?.to_owned()),
            b'a' => {
                let count = self.number()?;
                let values = (0..count).map(|_| self.value());
                Value::Array(values.collect::<Option<_>>()?)
            }
            b'o' => Value::Object(self.map()?),
            _ => return None,
        })
    }

    fn eight(&mut self) -> Option<u64> {
        let (bits, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bits))
    }
}
