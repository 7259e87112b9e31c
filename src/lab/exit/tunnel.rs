//! A tunnel, once an exit has consented to it: plain requests or TLS, to any host.
//!
//! TLS comes before any route, so the first label of the host's name says how it goes:
//!
//! | host | TLS |
//! | --- | --- |
//! | `untrusted.…` | a certificate of an authority nobody trusts |
//! | `wrong-name.…` | a good certificate, but for another name |
//! | `tls-alert.…` | a fatal alert (`handshake_failure`) |
//! | `tls-close.…` | the close, instead of an answer to the hello |
//! | `tls-silent.…` | no answer |
//! | `tls-garbage.…` | bytes that are no TLS |
//! | any other | as it should be |

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustls::ServerConfig;

use super::super::behaviour::Act;
use super::super::reply::{End, Reply};
use super::super::serve::{Session, turn_away};
use super::super::wire::Wire;
use super::Exit;

/// First byte of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;
/// An alert record: fatal, handshake_failure (RFC 8446 §6).
const ALERT: &[u8] = &[0x15, 3, 3, 0, 2, 2, 40];
const GARBAGE: &[u8] = b"this is no TLS record, nor anything else\r\n";

/// Sends the prepared consent and serves what comes through the tunnel to `target`.
pub(super) async fn through(mut wire: Wire, mut session: Session, target: Box<str>, act: Act) {
    let Some(exit) = session.exit.clone() else {
        return;
    };
    exit.handshakes.fetch_add(1, Relaxed);
    if let Some(user) = &session.user {
        user.handshakes.fetch_add(1, Relaxed);
    }
    if wire.send().await.is_err() || wire.fill_to(1).await.is_err() {
        return;
    }
    session.secure = wire.unread()[0] == HANDSHAKE;
    if session.secure {
        match secured(wire, &exit, &target, act).await {
            Some(secured) => wire = secured,
            None => return,
        }
    }
    session.tunnel = Some(target);
    session.serve(wire).await;
}

/// TLS as the origin `target` (`host:port`), if it comes to it.
async fn secured(mut wire: Wire, exit: &Exit, target: &str, act: Act) -> Option<Wire> {
    let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
    let last = match host.split('.').next().unwrap_or_default() {
        "tls-alert" => Reply::raw(ALERT, End::Close),
        "tls-close" => Reply::raw("", End::Close),
        "tls-garbage" => Reply::raw(GARBAGE, End::Close),
        "tls-silent" => {
            wire.until_gone().await;
            return None;
        }
        label => {
            let config = server(exit, host, label, act)?;
            return wire.into_tls(config).await.ok();
        }
    };
    turn_away(wire, last).await;
    None
}

fn server(exit: &Exit, host: &str, label: &str, act: Act) -> Option<Arc<ServerConfig>> {
    let config = match (act, label) {
        (Act::Intercept, _) | (_, "untrusted") => exit.stranger.server(host),
        (_, "wrong-name") => exit.authority.server_as("another-name.test"),
        _ => exit.authority.server(host),
    };
    config.ok()
}
