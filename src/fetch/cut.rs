//! The word from outside that an answer is no longer waited for.
//!
//! Owns the two ends of it: the engine's [`Cut`] and the attempt's [`Patience`]. It counts until
//! the head of the answer is complete, whatever phase the attempt is in; after that it is not
//! heard any more, and whoever says it learns that the head is there. The attempt ends by itself,
//! like by a limit of its own, so its facts are as exact and its socket is closed as politely.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// Ends one attempt's wait for its head.
#[derive(Debug)]
pub struct Cut(oneshot::Sender<()>);

/// How far an attempt was when it was to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// No head had come: it ends now.
    Nothing,
    /// Its head is there: it goes on.
    Head,
}

/// How long an attempt waits for its head: as long as its limits allow, unless it is cut.
#[derive(Debug, Default)]
pub struct Patience {
    word: Option<oneshot::Receiver<()>>,
    lost: bool,
}

/// Both ends for one attempt.
pub fn cut() -> (Cut, Patience) {
    let (say, word) = oneshot::channel();
    let patience = Patience {
        word: Some(word),
        lost: false,
    };
    (Cut(say), patience)
}

impl Cut {
    /// Says it.
    pub fn say(self) -> Reached {
        match self.0.send(()) {
            Ok(()) => Reached::Nothing,
            Err(()) => Reached::Head,
        }
    }
}

impl Patience {
    /// The head is complete: from now on only the attempt's own limits count.
    pub(super) fn keep(&mut self) {
        self.word = None;
    }

    /// It was cut.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Ready once it is cut.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(word) = &mut self.word else {
            return Poll::Pending;
        };
        match Pin::new(word).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(said) => {
                self.word = None;
                self.lost = said.is_ok();
                if self.lost {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }
        }
    }
}
