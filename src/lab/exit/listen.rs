//! The port of an exit: open, closed or full, as the behaviour has it, and its connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::model::Scheme;

use super::super::behaviour::{Act, Moment};
use super::super::serve::{Session, misbehave};
use super::super::wire::Wire;
use super::turns::{Mood, Port};
use super::{Exit, http, socks};

const BACKLOG: u32 = 1024;

/// A port of 127.0.0.1 that is taken and does not listen yet; 0 takes any.
pub(in crate::lab) fn take_port(port: u16) -> anyhow::Result<TcpSocket> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    bind(address).with_context(|| format!("listen on {address}: choose another base port"))
}

fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Starts listening on a port taken by [`take_port`].
pub(in crate::lab) fn open(socket: TcpSocket) -> anyhow::Result<TcpListener> {
    socket
        .listen(BACKLOG)
        .context("listen on a port of the lab")
}

/// Serves the exit at its port until dropped; connections end with it.
pub(in crate::lab) async fn listen(exit: Arc<Exit>, socket: TcpSocket) -> std::io::Result<()> {
    let mut moods = exit.mood.subscribe();
    let mut connections = JoinSet::new();
    let mut taken = Some(socket);
    loop {
        let mood = Arc::clone(&moods.borrow_and_update());
        let socket = match taken.take() {
            Some(socket) => socket,
            None => bind(exit.address)?,
        };
        match mood.port() {
            Port::Open => {
                let listener = socket.listen(BACKLOG)?;
                serve_open(&exit, &listener, &mut moods, &mut connections).await;
            }
            Port::Closed => {
                exit.heard.send_replace(mood.serial);
                let _ = moods.changed().await;
                taken = Some(socket);
            }
            Port::Full => {
                let _listener = socket.listen(1)?;
                let _queue = fill_queue(exit.address).await;
                exit.heard.send_replace(mood.serial);
                let _ = moods.changed().await;
            }
        }
    }
}

/// Accepts connections for as long as the mood leaves the port open.
async fn serve_open(
    exit: &Arc<Exit>,
    listener: &TcpListener,
    moods: &mut watch::Receiver<Arc<Mood>>,
    connections: &mut JoinSet<()>,
) {
    loop {
        let mood = Arc::clone(&moods.borrow_and_update());
        if mood.port() != Port::Open {
            return;
        }
        exit.heard.send_replace(mood.serial);
        loop {
            tokio::select! {
                _ = moods.changed() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => accept(exit, stream, connections),
                    // Out of descriptors: those who hold them may let go.
                    Err(_) => sleep(Duration::from_millis(10)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Connects until a connect gets no answer: from then on nobody gets one.
async fn fill_queue(address: SocketAddr) -> Vec<TcpStream> {
    let mut queue = Vec::new();
    while let Ok(Ok(stream)) =
        timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        queue.push(stream);
    }
    queue
}

fn accept(exit: &Arc<Exit>, stream: TcpStream, connections: &mut JoinSet<()>) {
    let counted = exit.sockets.enter_owned();
    exit.connections.fetch_add(1, Relaxed);
    let open = exit.sockets.now();
    let wire = Wire::new(stream, counted);
    let exit = Arc::clone(exit);
    connections.spawn(async move {
        let act = exit.act(Moment::Accept { open });
        let session = Session::new(&exit.origin, Some(&exit));
        match act {
            Act::Serve | Act::Intercept | Act::Cut => serve(&exit, wire, session).await,
            // An answer needs a question first.
            Act::Page(page) if !exit.is_socks() => http::answer_first(&exit, wire, &page).await,
            Act::Page(_) => misbehave(wire, Act::Close).await,
            act => misbehave(wire, act).await,
        }
    });
}

async fn serve(exit: &Arc<Exit>, wire: Wire, session: Session) {
    match exit.config.scheme {
        Scheme::Http => http::serve(wire, session, exit).await,
        Scheme::Https => {
            if let Some(wire) = http::exit_tls(exit, wire).await {
                http::serve(wire, session, exit).await;
            }
        }
        Scheme::Socks5 => socks::serve(wire, session, exit).await,
    }
}
