//! CONNECT (RFC 9110 §9.3.6): any 2xx opens the tunnel, and what follows its head is the
//! tunnel's. Another answer is kept whole: it says why the exit refused.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fetch::wire::Wire;
use crate::model::{Fault, FaultKind, Head};

use super::{NoTunnel, broken};

/// Largest head of a CONNECT answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Most header lines of a CONNECT answer.
const MAX_ANSWER_LINES: usize = 256;

/// What goes into a CONNECT request.
pub(in crate::fetch) struct Connect<'a> {
    /// `host:port`, IPv6 in brackets.
    pub(in crate::fetch) authority: String,
    pub(in crate::fetch) user_agent: Option<&'a HeaderValue>,
    pub(in crate::fetch) authorization: Option<&'a HeaderValue>,
}

impl Connect<'_> {
    pub(super) async fn open(&self, wire: &mut Wire) -> Result<(), NoTunnel> {
        wire.write_all(&self.request()).await?;
        wire.flush().await?;
        let mut read = BytesMut::new();
        let (head, length) = loop {
            read.reserve(1024);
            if wire.read_buf(&mut read).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            match first_answer(&mut read)? {
                Some(answer) => break answer,
                None if read.len() >= MAX_ANSWER => {
                    let detail = "the answer to CONNECT has too large a head";
                    return Err(broken(FaultKind::HeadTooLarge, detail).into());
                }
                None => {}
            }
        };
        let status = head.status;
        let fault = match status {
            200..=299 => {
                wire.put_back(read.split_off(length).freeze());
                return Ok(());
            }
            407 => broken(FaultKind::Credentials, "CONNECT was answered with 407"),
            _ => {
                let detail = format!("CONNECT was answered with {status}");
                broken(FaultKind::ConnectStatus(status), detail)
            }
        };
        let refusal = Some(head);
        Err(NoTunnel { fault, refusal })
    }

    fn request(&self) -> Bytes {
        let authority = &self.authority;
        let mut out = BytesMut::with_capacity(512);
        out.put_slice(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").as_bytes());
        let lines = [
            ("User-Agent", self.user_agent),
            ("Proxy-Authorization", self.authorization),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                out.put_slice(name.as_bytes());
                out.put_slice(b": ");
                out.put_slice(value.as_bytes());
                out.put_slice(b"\r\n");
            }
        }
        out.put_slice(b"\r\n");
        out.freeze()
    }
}

/// The first final answer in `read` and the length of its head, once it is complete.
/// Informational answers before it are taken out of `read`.
fn first_answer(read: &mut BytesMut) -> Result<Option<(Head, usize)>, Fault> {
    loop {
        match parse_answer(read)? {
            Some((head, length)) if (100..200).contains(&head.status) => {
                let _ = read.split_to(length);
            }
            other => return Ok(other),
        }
    }
}

fn parse_answer(read: &[u8]) -> Result<Option<(Head, usize)>, Fault> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_ANSWER_LINES];
    let mut answer = httparse::Response::new(&mut lines);
    let parsed = httparse::ParserConfig::default()
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .parse_response(&mut answer, read);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            let detail = "the answer to CONNECT has too many header lines";
            return Err(broken(FaultKind::HeadTooLarge, detail));
        }
        Err(err) => {
            let detail = format!("the answer to CONNECT is not HTTP: {err}");
            return Err(broken(FaultKind::Protocol, detail));
        }
    };
    let status = answer.code.unwrap_or_default();
    let mut headers = HeaderMap::with_capacity(answer.headers.len());
    for line in answer.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line.value)) {
            headers.append(name, value);
        }
    }
    Ok(Some((Head { status, headers }, length)))
}
