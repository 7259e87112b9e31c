//! One attempt in flight: `fetch` brings bytes, `store` takes them, neither knows the other.
//!
//! Runs as a task of its own, so body bytes never pass the engine's loop. Returns facts; what
//! they mean is the scheduler's to say. Dropped at any await, it closes its socket and leaves
//! no file.

use std::pin::Pin;
use std::sync::Arc;

use crate::fetch::{Conn, Exchange, Fetcher, Request, Seat};
use crate::model::{Attempt, Codes, Fault, FaultKind, Phase};
use crate::store::{Bodies, Finished, StoreError, TempBody};

/// What every attempt of a run shares.
pub(super) struct Ground {
    pub(super) fetcher: Fetcher,
    pub(super) bodies: Bodies,
    /// Statuses whose bodies are stored.
    pub(super) accept: Codes,
    /// 0: a 3xx is an answer like any other.
    pub(super) max_redirects: u32,
}

/// What came of an attempt.
pub(super) struct Landed {
    pub(super) attempt: Attempt,
    /// The whole body, if it is one to keep.
    pub(super) body: Option<Finished>,
    /// The connection, if it can serve again.
    pub(super) conn: Option<Conn>,
    /// Why the body could not be stored.
    pub(super) disk: Option<StoreError>,
}

/// Makes one attempt through the exit with index `exit`. Boxed at both ends: the state of an
/// attempt is some 5 KB, and a task moves its future and its output several times.
pub(super) fn fly(
    ground: Arc<Ground>,
    exit: usize,
    seat: Seat,
    request: Request,
) -> Pin<Box<impl Future<Output = Box<Landed>> + Send>> {
    Box::pin(attempt(ground, exit, seat, request))
}

async fn attempt(ground: Arc<Ground>, exit: usize, seat: Seat, request: Request) -> Box<Landed> {
    let mut exchange = ground.fetcher.start(exit, seat, request).await;
    let mut stored = None;
    if ground.keeps(exchange.attempt()) {
        stored = Some(store(&mut exchange, ground.bodies.create()).await);
    } else {
        exchange.discard().await;
    }
    let (mut attempt, conn) = exchange.finish().await;
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
}

async fn store(exchange: &mut Exchange, mut body: TempBody) -> Result<Finished, StoreError> {
    while let Some(chunk) = exchange.chunk().await {
        body.write(chunk).await?;
    }
    body.finish().await
}
