//! An exit that speaks SOCKS5 (RFC 1928), with username and password (RFC 1929) or without.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::super::behaviour::{Act, Moment};
use super::super::reply::{End, Reply};
use super::super::serve::{Session, misbehave, turn_away};
use super::super::wire::{Gone, Wire};
use super::tunnel::through;
use super::{Access, Exit};

const VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const NO_METHOD: u8 = 0xff;

// Reply codes of RFC 1928 §6.
const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

/// Why a handshake ends here.
enum Stop {
    /// The peer went.
    Gone,
    /// These bytes are the last.
    Say(Vec<u8>),
    /// These bytes are the last, and what the exit's behaviour wants: that is counted already.
    Behave(Vec<u8>),
    /// The exit misbehaves otherwise.
    Act(Act),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Stop {
        Stop::Gone
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(mut wire: Wire, mut session: Session, exit: &Arc<Exit>) {
    match handshake(&mut wire, &mut session, exit).await {
        Ok((target, act)) => through(wire, session, target, act).await,
        Err(Stop::Gone) => {}
        Err(Stop::Say(bytes)) => {
            exit.turned_away.fetch_add(1, Relaxed);
            turn_away(wire, Reply::raw(bytes, End::Close)).await;
        }
        Err(Stop::Behave(bytes)) => turn_away(wire, Reply::raw(bytes, End::Close)).await,
        Err(Stop::Act(act)) => misbehave(wire, act).await,
    }
}

async fn handshake(
    wire: &mut Wire,
    session: &mut Session,
    exit: &Arc<Exit>,
) -> Result<(Box<str>, Act), Stop> {
    wire.fill_to(2).await?;
    let act = exit.act(Moment::Handshake);
    if matches!(
        act,
        Act::Reset | Act::Close | Act::Hang | Act::Mail | Act::Garbage
    ) {
        return Err(Stop::Act(act));
    }
    greet(wire, session, exit, &act).await?;
    let target = request(wire, exit).await?;
    let act = match act {
        Act::Serve => exit.act_towards(&target, Moment::Handshake),
        act => act,
    };
    match act {
        Act::Page(page) => Err(Stop::Behave(
            reply(match page.status {
                401 | 403 => NOT_ALLOWED,
                502 => HOST_UNREACHABLE,
                503 => REFUSED,
                _ => GENERAL_FAILURE,
            })
            .to_vec(),
        )),
        Act::SocksReply(code) => Err(Stop::Behave(reply(code).to_vec())),
        Act::Serve | Act::Intercept | Act::Cut => {
            wire.out.extend_from_slice(&reply(0));
            Ok((target, act))
        }
        act => Err(Stop::Act(act)),
    }
}

fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn refusal(code: u8) -> Stop {
    Stop::Say(reply(code).to_vec())
}

/// Method choice and login.
async fn greet(
    wire: &mut Wire,
    session: &mut Session,
    exit: &Arc<Exit>,
    act: &Act,
) -> Result<(), Stop> {
    let bytes = take(wire, 2).await?;
    if bytes[0] != VERSION {
        return Err(Stop::Act(Act::Close));
    }
    let methods = take(wire, bytes[1].into()).await?;
    let denies = matches!(act, Act::Page(page) if page.status == 407);
    let wanted = denies || !matches!(exit.config.access, Access::Open);
    let method = match (methods.contains(&LOGIN), methods.contains(&NO_LOGIN)) {
        // A login that is offered is taken also where none is wanted: it tells who it is.
        (true, _) => LOGIN,
        (false, true) if !wanted => NO_LOGIN,
        _ if denies => return Err(Stop::Behave(vec![VERSION, NO_METHOD])),
        _ => return Err(Stop::Say(vec![VERSION, NO_METHOD])),
    };
    wire.out.extend_from_slice(&[VERSION, method]);
    wire.send().await?;
    if method == LOGIN {
        let (name, password) = login(wire).await?;
        if denies {
            return Err(Stop::Behave(vec![1, 1]));
        }
        if !exit.admits(Some((&name, &password))) {
            return Err(Stop::Say(vec![1, 1]));
        }
        let user = exit.user(&name);
        wire.count(user.sockets.enter_owned());
        session.user = Some(user);
        wire.out.extend_from_slice(&[1, 0]);
        wire.send().await?;
    }
    Ok(())
}

async fn login(wire: &mut Wire) -> Result<(String, String), Gone> {
    let version = take(wire, 1).await?[0];
    let name = counted(wire).await?;
    let password = counted(wire).await?;
    if version != 1 || name.is_empty() || password.is_empty() {
        return Err(Gone);
    }
    let text = |bytes| String::from_utf8(bytes).map_err(|_| Gone);
    Ok((text(name)?, text(password)?))
}

/// The request; gives its target as `host:port`.
async fn request(wire: &mut Wire, exit: &Exit) -> Result<Box<str>, Stop> {
    let bytes = take(wire, 4).await?;
    let kind = bytes[3];
    let host = match kind {
        1 => {
            let octets: [u8; 4] = take(wire, 4).await?.try_into().map_err(|_| Gone)?;
            Ipv4Addr::from(octets).to_string()
        }
        3 => String::from_utf8(counted(wire).await?).map_err(|_| Gone)?,
        4 => {
            let octets: [u8; 16] = take(wire, 16).await?.try_into().map_err(|_| Gone)?;
            format!("[{}]", Ipv6Addr::from(octets))
        }
        _ => return Err(refusal(NO_SUCH_ADDRESS)),
    };
    let port = take(wire, 2).await?;
    if bytes[0] != VERSION || bytes[1] != 1 {
        return Err(refusal(NO_SUCH_COMMAND));
    }
    let counter = if kind == 3 {
        &exit.names
    } else {
        &exit.addresses
    };
    counter.fetch_add(1, Relaxed);
    let port = u16::from_be_bytes([port[0], port[1]]);
    Ok(format!("{host}:{port}").into())
}

/// The next `len` bytes.
async fn take(wire: &mut Wire, len: usize) -> Result<Vec<u8>, Gone> {
    wire.fill_to(len).await?;
    let bytes = wire.unread()[..len].to_vec();
    let end = wire.used + len;
    wire.use_up(end);
    Ok(bytes)
}

/// The bytes that a length byte announces.
async fn counted(wire: &mut Wire) -> Result<Vec<u8>, Gone> {
    let len = take(wire, 1).await?[0];
    take(wire, len.into()).await
}
