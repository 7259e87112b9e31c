//! Reaching the exit: look-up and dial.

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::fetch::testing::{BRIEF, Peer, Rig, attempt, exit, fault_of, options};
use crate::model::{FaultKind, Phase, Scheme};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_closed_port_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut rig = Rig::new(exit(Scheme::Http, address), options());
    let (attempt, _) = rig.get("http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Dial, FaultKind::Refused));
    assert!(attempt.not_delivered() && attempt.phases.dial.is_some());
    assert_eq!((rig.conns.open(0), rig.conns.peak(0)), (0, 1));
}

#[tokio::test]
async fn an_exit_that_never_answers_the_syn_is_given_up_in_time() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts: once the queue is full, further SYNs are dropped.
    let mut queue = Vec::new();
    while let Ok(stream) = tokio::time::timeout(BRIEF, TcpStream::connect(address)).await {
        queue.push(stream.unwrap());
    }
    let mut options = options();
    options.limits.connect = BRIEF;
    let mut rig = Rig::new(exit(Scheme::Socks5, address), options);
    let (attempt, _) = rig.get("http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Dial, FaultKind::Timeout));
    assert_eq!(rig.conns.open(0), 0);
}

#[tokio::test]
async fn a_name_without_address_is_a_fault_of_the_look_up() {
    let mut exit = exit(Scheme::Http, "127.0.0.1:1".parse().unwrap());
    // Too long a label for any resolver, so none is asked.
    exit.host = "x".repeat(70).into();
    let mut rig = Rig::new(exit, options());
    let (attempt, _) = rig.get("http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Resolve, FaultKind::NoAddress));
    assert_eq!(rig.conns.peak(0), 0);
}

#[tokio::test]
async fn an_exit_given_by_name_is_reached_at_whichever_address_listens() {
    let peer = Peer::serving(OK).await;
    let mut exit = exit(Scheme::Http, peer.address);
    exit.host = "localhost".into();
    let mut rig = Rig::new(exit, options());
    let (attempt, body) = rig.get("http://o.test/").await;
    assert_eq!(attempt.fault, None);
    assert_eq!(body, b"ok");
    assert_eq!(rig.conns.peak(0), 1, "never two sockets for one lease");
}

#[tokio::test]
async fn the_limit_of_the_attempt_counts_while_dialling_too() {
    let peer = Peer::silent().await;
    let mut options = options();
    options.limits.total = BRIEF;
    let attempt = attempt(Scheme::Socks5, &peer, options, "http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Handshake, FaultKind::Deadline));
}
