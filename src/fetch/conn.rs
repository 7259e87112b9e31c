//! An HTTP/1.1 connection that nobody runs but the one who uses it.
//!
//! hyper's connection future is not spawned: whoever waits for a head or a chunk polls it.
//! An idle [`Conn`] is therefore only a value, and dropping it closes its socket at once;
//! there is no task that could keep a socket open behind the cap's back.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use crate::model::{Fault, FaultKind, Phase, Route};

use super::alarm::{Alarm, Timer};
use super::fault::of_head;
use super::socket::Socket;
use super::tape::Tape;
use super::wire::Wire;

/// Largest response head in bytes, status line included; also the most that is read ahead
/// of a body. Larger takes more memory per connection, smaller makes sites unfetchable.
const MAX_HEAD: usize = 128 * 1024;

/// Most header lines of a response.
const MAX_HEAD_LINES: usize = 1024;

/// Which requests an open connection can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// Any `http://` URL: the exit itself is asked, in absolute-form.
    Forward,
    /// One scheme, host and port: a tunnel ends there.
    Tunnel {
        /// TLS inside the tunnel.
        tls: bool,
        /// As in the URL, the default port left out.
        authority: Box<str>,
    },
}

impl Serves {
    /// What a connection that is opened for `url` will serve.
    pub(super) fn of(route: Route, url: &Url) -> Serves {
        match route {
            Route::Forward => Serves::Forward,
            Route::Tunnel => Serves::Tunnel {
                tls: url.scheme() == "https",
                authority: authority(url).into(),
            },
        }
    }

    fn takes(&self, url: &Url) -> bool {
        let https = url.scheme() == "https";
        match self {
            Serves::Forward => !https,
            Serves::Tunnel { tls, authority: of } => *tls == https && **of == *authority(url),
        }
    }
}

/// Host and, if it is not the default one, port of `url`; IPv6 in brackets, no userinfo.
pub(super) fn authority(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::BeforePath]
}

/// What hyper says of a request.
type Reply = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// An open connection to an exit, idle or in use.
pub struct Conn {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended. Boxed because connections move through every attempt.
    hyper: Option<Box<Connection<TokioIo<Wire>, Full<Bytes>>>>,
    socket: Socket,
    serves: Serves,
    tape: Option<Tape>,
    /// Of its last attempt, for the next.
    pub(super) timer: Option<Timer>,
}

/// Why a request got no head.
pub(super) struct NoHead {
    pub(super) fault: Fault,
    /// Nothing at all came back, or the request was not even sent.
    untouched: Untouched,
}

impl NoHead {
    /// Whether `method` may be sent over another connection, nobody being to blame.
    pub(super) fn allows_another(&self, method: &Method) -> bool {
        match self.untouched {
            Untouched::Unsent => true,
            Untouched::Unanswered => method.is_idempotent(),
            Untouched::No => false,
        }
    }
}

/// How far a failed request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Untouched {
    /// hyper still had it: not one byte was written.
    Unsent,
    /// It was written, perhaps in part, and the peer was gone before it answered.
    Unanswered,
    /// The peer answered something, or time ran out.
    No,
}

impl Conn {
    /// HTTP/1.1 over `wire`, whose socket is `socket`.
    pub(super) async fn new(wire: Wire, socket: Socket, serves: Serves) -> Result<Conn, Fault> {
        let (sender, hyper) = Builder::new()
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_HEAD_LINES)
            // What RFC 9112 §5 lets a user agent mend; sites depend on it.
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .handshake(TokioIo::new(wire))
            .await
            .map_err(|err| of_head(&err))?;
        Ok(Conn {
            sender,
            hyper: Some(Box::new(hyper)),
            socket,
            serves,
            tape: None,
            timer: None,
        })
    }

    /// The same, with `tape` for what `wire` notes on it.
    pub(super) fn with_tape(mut self, tape: Option<Tape>) -> Conn {
        self.tape = tape;
        self
    }

    /// What goes over it, where that is kept.
    pub(super) fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// Whether the next request for `url` can go over this connection.
    pub(super) fn takes(&self, url: &Url) -> bool {
        self.serves.takes(url)
    }

    /// Hands `request` to hyper, which begins to send it in [`Conn::head`].
    pub(super) fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> impl Future<Output = Reply> + use<> {
        if let Some(tape) = &self.tape {
            tape.rewind();
        }
        self.sender.try_send_request(request)
    }

    /// Waits for the whole head of the final answer, `reply`.
    pub(super) async fn head(
        &mut self,
        mut reply: Pin<&mut impl Future<Output = Reply>>,
        alarm: &mut Alarm,
    ) -> Result<Response<Incoming>, NoHead> {
        let hyper = &mut self.hyper;
        // Whether bytes of an answer were left over when the connection ended.
        let mut partial = false;
        let outcome = poll_fn(|cx| {
            if let Some(running) = hyper
                && running.poll_without_shutdown(cx).is_ready()
            {
                // Taking it apart makes hyper answer a request it had not begun.
                let rest = hyper.take().map(|it| it.into_parts().read_buf);
                partial = rest.is_some_and(|bytes| !bytes.is_empty());
            }
            match reply.as_mut().poll(cx) {
                Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
                Poll::Pending => alarm.poll(cx).map(Err),
            }
        })
        .await;
        match outcome {
            Ok(Ok(response)) => Ok(response),
            Err(passed) => Err(NoHead {
                fault: passed.fault(Phase::Head, "no complete head"),
                untouched: Untouched::No,
            }),
            Ok(Err(err)) => {
                let fault = of_head(err.error());
                let gone = matches!(fault.kind, FaultKind::Eof | FaultKind::Reset);
                let untouched = match err.message() {
                    Some(_) => Untouched::Unsent,
                    None if gone && !partial => Untouched::Unanswered,
                    None => Untouched::No,
                };
                Err(NoHead { fault, untouched })
            }
        }
    }

    /// The next piece of `body`, an answer of this connection.
    pub(super) fn poll_chunk(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Bytes>>> {
        loop {
            // First poll asks for a piece, hyper then reads it, second poll takes it.
            let mut frame = Pin::new(&mut *body).poll_frame(cx);
            if frame.is_pending() && self.run(cx) {
                frame = Pin::new(&mut *body).poll_frame(cx);
            }
            match frame {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(err))) => return Poll::Ready(Some(Err(err))),
                // Trailers are of no use here: on to the end.
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
            }
        }
    }

    /// Lets hyper work if it still runs; `false` if it had ended before.
    fn run(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(hyper) = &mut self.hyper else {
            return false;
        };
        if hyper.poll_without_shutdown(cx).is_ready() {
            self.hyper = None;
        }
        true
    }

    /// After an answer was read whole: whether another request can follow.
    pub(super) async fn settle(&mut self) -> bool {
        // Mostly hyper came to the end together with the last piece.
        self.is_ready() || poll_fn(|cx| Poll::Ready(self.poll_open(cx))).await
    }

    /// Whether an idle connection is still open, as far as is known without waiting.
    pub(super) fn is_open(&mut self) -> bool {
        self.poll_open(&mut Context::from_waker(Waker::noop()))
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> bool {
        self.run(cx) && self.is_ready()
    }

    fn is_ready(&self) -> bool {
        self.hyper.is_some() && self.sender.is_ready()
    }

    /// Begins to close: nothing more is sent. The socket stays until the value goes.
    pub(super) fn shut(&self) {
        self.socket.shut();
    }

    /// Closes so that the exit has seen it (at most 250 ms).
    pub(super) async fn close(self) {
        self.socket.clone().close().await;
    }
}
