//! One attempt in flight: `fetch` brings bytes, `store` takes them, neither knows the other.
//!
//! Runs as a task of its own, so body bytes never pass the engine's loop. Returns facts; what
//! they mean is the scheduler's to say. Dropped at any await, it closes its socket and leaves
//! no file.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::fetch::{Conn, Exchange, Fetcher, Patience, Request, Seat};
use crate::model::{Attempt, Clock, Codes, Fault, FaultKind, Phase};
use crate::store::{Archive, Bodies, Captured, Finished, Opening, StoreError};

/// What every attempt of a run shares.
pub(super) struct Ground {
    pub(super) fetcher: Fetcher,
    pub(super) bodies: Bodies,
    pub(super) clock: Clock,
    /// Where exchanges go instead.
    pub(super) archive: Option<Archive>,
    /// Statuses whose bodies are stored.
    pub(super) accept: Codes,
    /// 0: a 3xx is an answer like any other.
    pub(super) max_redirects: u32,
}

/// What came of an attempt.
pub(super) struct Landed {
    pub(super) attempt: Box<Attempt>,
    /// The whole body, if it is one to keep.
    pub(super) body: Option<Body>,
    /// The connection, if it can serve again.
    pub(super) conn: Option<Conn>,
    /// Why the body could not be stored.
    pub(super) disk: Option<StoreError>,
    /// How long it waited for the disk.
    pub(super) at_disk: AtDisk,
}

/// How long an attempt waited for the disk.
#[derive(Clone, Copy, Default)]
pub(super) struct AtDisk {
    /// Between pieces of the body: no time of the network's.
    pub(super) meanwhile: Duration,
    /// When all of it had come: for the rest of a long body.
    pub(super) after: Duration,
}

impl AtDisk {
    /// The attempt has waited: the last piece's wait is no part of the body's time.
    fn add(&mut self, wait: Duration, attempt: &Attempt) {
        match attempt.phases.body {
            None => self.meanwhile += wait,
            Some(_) => self.after += wait,
        }
    }
}

/// A body that is whole, not under its final name yet.
pub(super) enum Body {
    File(Finished),
    Exchange(Box<Captured>),
}

impl Body {
    /// Bytes that it takes in memory until it is stored; 0: it is in an open file.
    pub(super) fn in_memory(&self) -> usize {
        match self {
            Body::File(body) => body.in_memory(),
            Body::Exchange(captured) => captured.in_memory(),
        }
    }
}

/// What one attempt is made of.
pub(super) struct Plane {
    /// Index of the exit.
    pub(super) exit: usize,
    pub(super) seat: Seat,
    pub(super) request: Request,
    /// By which it hears that its answer is no longer waited for.
    pub(super) patience: Patience,
}

/// Makes one attempt. Boxed at both ends: a task moves its future and its output several times.
pub(super) fn fly(
    ground: Arc<Ground>,
    plane: Box<Plane>,
) -> Pin<Box<impl Future<Output = Box<Landed>> + Send>> {
    Box::pin(attempt(ground, plane))
}

async fn attempt(ground: Arc<Ground>, plane: Box<Plane>) -> Box<Landed> {
    let Plane {
        exit,
        seat,
        ref request,
        patience,
    } = *plane;
    let target = ground.archive.as_ref().map(|_| request.target.to_string());
    let started = ground
        .fetcher
        .start_unless_cut(exit, seat, request, patience);
    let mut exchange = started.await;
    let mut stored = None;
    let mut at_disk = AtDisk::default();
    if ground.keeps(exchange.attempt()) {
        stored = Some(ground.store(&mut exchange, target, &mut at_disk).await);
    } else {
        exchange.discard().await;
    }
    let (mut attempt, conn) = exchange.finish().await;
    if let Some(body) = &mut attempt.phases.body {
        *body = body.saturating_sub(at_disk.meanwhile);
    }
    let mut landed = (None, None);
    match stored {
        Some(Ok(body)) if attempt.fault.is_none() => landed.0 = Some(body),
        Some(Err(error)) => {
            attempt.fault = Some(Fault {
                phase: Phase::Body,
                kind: FaultKind::Disk,
                detail: error.to_string(),
            });
            landed.1 = Some(error);
        }
        Some(Ok(_)) | None => {}
    }
    let (body, disk) = landed;
    Box::new(Landed {
        attempt,
        body,
        conn,
        disk,
        at_disk,
    })
}

impl Ground {
    /// Whether the body that follows is the job's result.
    fn keeps(&self, attempt: &Attempt) -> bool {
        let Some(head) = &attempt.head else {
            return false;
        };
        let redirects = matches!(head.status, 301..=303 | 307 | 308) && self.max_redirects > 0;
        !redirects && !attempt.is_not_modified() && self.accept.contains(head.status)
    }

    /// Stores the body; `at_disk` is how long that made the attempt wait. `target`: what an
    /// archive calls it.
    async fn store(
        &self,
        exchange: &mut Exchange,
        target: Option<String>,
        at_disk: &mut AtDisk,
    ) -> Result<Body, StoreError> {
        match (&self.archive, target) {
            (Some(archive), Some(target)) => {
                self.capture(exchange, (archive, target), at_disk).await
            }
            _ => self.write(exchange, at_disk).await,
        }
    }

    async fn write(
        &self,
        exchange: &mut Exchange,
        at_disk: &mut AtDisk,
    ) -> Result<Body, StoreError> {
        let mut body = self.bodies.create();
        while let Some(chunk) = exchange.chunk().await {
            let (written, wait) = self.timed(pin!(body.write(chunk))).await;
            exchange.excuse(wait);
            at_disk.add(wait, exchange.attempt());
            written?;
        }
        let (finished, wait) = self.timed(pin!(body.finish())).await;
        at_disk.after += wait;
        Ok(Body::File(finished?))
    }

    /// The same with the bytes of the whole exchange.
    async fn capture(
        &self,
        exchange: &mut Exchange,
        (archive, target): (&Archive, String),
        at_disk: &mut AtDisk,
    ) -> Result<Body, StoreError> {
        let tape = exchange.tape().cloned().unwrap_or_default();
        let mut capture = archive.capture(Opening {
            target,
            framing: exchange.framing(),
            decoded: exchange.is_decoding(),
            since_sent: exchange.attempt().phases.first_byte.unwrap_or_default(),
        });
        while let Some(chunk) = exchange.chunk().await {
            tape.received(capture.incoming());
            let (taken, wait) = self.timed(pin!(capture.body(&chunk))).await;
            exchange.excuse(wait);
            at_disk.add(wait, exchange.attempt());
            taken?;
        }
        tape.received(capture.incoming());
        let sent = tape.sent();
        let (captured, wait) = self.timed(pin!(capture.finish(&sent))).await;
        at_disk.after += wait;
        Ok(Body::Exchange(Box::new(captured?)))
    }

    /// Awaits `work`; answers how long it kept us waiting too. What is done at once, as a short
    /// body always is, has waited for nothing.
    async fn timed<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> (T, Duration) {
        let at_once = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = at_once {
            return (done, Duration::ZERO);
        }
        let since = self.clock.now();
        let done = work.await;
        (done, self.clock.now() - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_before_the_body_s_end_are_part_of_its_time() {
        let (mut at_disk, mut attempt) = (AtDisk::default(), Attempt::default());
        let wait = Duration::from_millis(20);
        at_disk.add(wait, &attempt);
        attempt.phases.body = Some(Duration::from_millis(30));
        at_disk.add(2 * wait, &attempt);
        assert_eq!((at_disk.meanwhile, at_disk.after), (wait, 2 * wait));
    }
}
