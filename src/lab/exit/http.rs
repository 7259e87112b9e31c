//! An exit that speaks HTTP: plain requests in absolute-form, and CONNECT.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::model::Scheme;

use super::super::behaviour::{Act, Moment, Page};
use super::super::reply::{After, Reply};
use super::super::request::{Head, Verb};
use super::super::serve::{Session, end, misbehave, turn_away};
use super::super::wire::Wire;
use super::tunnel::through;
use super::{Exit, User};

/// TLS with the exit itself.
pub(super) async fn exit_tls(exit: &Exit, wire: Wire) -> Option<Wire> {
    let config = exit.authority.server("127.0.0.1").ok()?;
    wire.into_tls(config).await.ok()
}

/// Reads one request and answers it with the exit's own page.
pub(super) async fn answer_first(exit: &Exit, wire: Wire, page: &Page) {
    let mut wire = match exit.config.scheme {
        Scheme::Https => match exit_tls(exit, wire).await {
            Some(wire) => wire,
            None => return,
        },
        Scheme::Http | Scheme::Socks5 => wire,
    };
    if wire.head().await.is_ok() {
        turn_away(wire, page.reply()).await;
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(mut wire: Wire, mut session: Session, exit: &Arc<Exit>) {
    let mut identity = Identity::default();
    loop {
        let Ok(head) = wire.head().await else { return };
        let Ok(head) = head else {
            exit.turned_away.fetch_add(1, Relaxed);
            return turn_away(wire, Reply::status(400)).await;
        };
        let act = match asked(exit, &wire, &head) {
            act @ (Act::Serve | Act::Cut | Act::Intercept) => act,
            act => return misbehave(wire, act).await,
        };
        let Ok(user) = identity.check(exit, &mut wire, &head) else {
            exit.turned_away.fetch_add(1, Relaxed);
            return turn_away(wire, Page::bare(407).reply()).await;
        };
        session.user = user;
        if head.verb == Verb::Connect {
            return tunnel(wire, session, &head, act).await;
        }
        if wire.inbuf[head.target.clone()].starts_with(b"/") {
            let text = "this is a proxy: ask for an absolute URL, or CONNECT\n";
            return turn_away(wire, Reply::text(400, text)).await;
        }
        let after = session.answer(&mut wire, &head, &act).await;
        if !matches!(after, Ok(After::Keep)) {
            return end(wire, after).await;
        }
    }
}

/// What the exit does about this request.
fn asked(exit: &Exit, wire: &Wire, head: &Head) -> Act {
    let (moment, target) = match head.verb {
        Verb::Connect => (Moment::Handshake, Some(&head.target)),
        Verb::Head | Verb::Other => (Moment::Forward, head.authority.as_ref()),
    };
    match exit.act(moment) {
        Act::Serve => {
            let target = target.map_or("", |place| wire.text(place));
            exit.act_towards(target, moment)
        }
        act => act,
    }
}

/// Who uses a connection, as its last request told.
#[derive(Default)]
struct Identity {
    /// The field's value as it was, so that it is decoded once.
    value: Vec<u8>,
    user: Option<Arc<User>>,
    asked: Asked,
}

#[derive(Default, PartialEq, Eq)]
enum Asked {
    #[default]
    Never,
    Before,
    /// With two different logins.
    Twice,
}

impl Identity {
    /// The user of this request, or the refusal.
    fn check(
        &mut self,
        exit: &Exit,
        wire: &mut Wire,
        head: &Head,
    ) -> Result<Option<Arc<User>>, Refused> {
        let value = head.login.clone().unwrap_or(0..0);
        if self.asked != Asked::Never && wire.inbuf[value.clone()] == *self.value {
            return Ok(self.user.clone());
        }
        let login = decode(&wire.inbuf[value.clone()]);
        let parts = login
            .as_deref()
            .map(|l| l.split_once(':').unwrap_or((l, "")));
        if !exit.admits(parts) {
            return Err(Refused);
        }
        let user = parts.map(|(name, _)| exit.user(name));
        match self.asked {
            Asked::Never => self.asked = Asked::Before,
            Asked::Before => {
                exit.two_logins.fetch_add(1, Relaxed);
                self.asked = Asked::Twice;
            }
            Asked::Twice => {}
        }
        if let Some(user) = &user {
            wire.count(user.sockets.enter_owned());
        }
        self.value = wire.inbuf[value].to_vec();
        self.user.clone_from(&user);
        Ok(user)
    }
}

struct Refused;

/// The `user:password` of a Basic value (RFC 7617).
fn decode(value: &[u8]) -> Option<String> {
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let bytes = BASE64_STANDARD.decode(rest.trim_ascii()).ok()?;
    String::from_utf8(bytes).ok()
}

async fn tunnel(mut wire: Wire, session: Session, head: &Head, act: Act) {
    let target: Box<str> = wire.text(&head.target).into();
    if target
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.parse::<u16>().is_err())
    {
        return turn_away(wire, Reply::status(400)).await;
    }
    wire.use_up(head.whole.end);
    wire.out
        .extend_from_slice(b"HTTP/1.1 200 Connection established\r\n\r\n");
    through(wire, session, target, act).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basic_value_gives_its_login_and_anything_else_none() {
        assert_eq!(decode(b"Basic dTpwOnE=").as_deref(), Some("u:p:q"));
        assert_eq!(decode(b"basic dTpwOnE=").as_deref(), Some("u:p:q"));
        for value in [&b""[..], b"Basic", b"Bearer xyz", b"Basic ???"] {
            assert_eq!(decode(value), None);
        }
    }
}
