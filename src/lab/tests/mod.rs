//! Whole labs over real sockets, asked by a client that knows nothing but bytes.

mod behaviours;
mod exits;
mod numbers;
mod routes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{ExitConfig, ExitHandle, Lab, LabConfig, OriginStats};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);
/// Long enough to see that nothing comes.
const SILENCE: Duration = Duration::from_millis(150);

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A client's side of a connection.
struct Peer {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

/// An answer, as far as it came.
#[derive(Debug)]
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head
            .split(' ')
            .nth(1)
            .unwrap_or_default()
            .parse()
            .unwrap_or(0)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Peer {
    async fn dial(address: SocketAddr) -> Peer {
        Peer::over(TcpStream::connect(address).await.unwrap())
    }

    fn over(stream: impl Stream + 'static) -> Peer {
        Peer {
            stream: Box::new(stream),
            read: Vec::new(),
        }
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The lab may have closed already; what it said before that is the matter.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    async fn more(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.read);
        let read = timeout(LIMIT, read).await.expect("an answer in time");
        read.is_ok_and(|n| n > 0)
    }

    /// Exactly `n` bytes, or what came before the close.
    async fn take(&mut self, n: usize) -> Vec<u8> {
        while self.read.len() < n && self.more().await {}
        let n = n.min(self.read.len());
        self.read.drain(..n).collect()
    }

    /// Everything up to the close.
    async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.read)
    }

    /// A head alone.
    async fn head(&mut self) -> String {
        loop {
            let end = self.read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.read.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(self.more().await, "closed in the head: {:?}", self.read);
        }
    }

    /// A head and the body it announces.
    async fn answer(&mut self) -> Answer {
        let mut answer = Answer {
            head: self.head().await,
            body: Vec::new(),
        };
        if let Some(length) = answer.field("Content-Length") {
            let length = length.parse().unwrap();
            answer.body = self.take(length).await;
        } else if answer.field("Transfer-Encoding").is_some() {
            answer.body = self.chunks().await;
        } else if !matches!(answer.status(), 100..=199 | 204 | 304) {
            answer.body = self.rest().await;
        }
        answer
    }

    async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            while !self.read.contains(&b'\n') {
                assert!(self.more().await, "closed between chunks");
            }
            let end = self.read.iter().position(|b| *b == b'\n').unwrap();
            let line: Vec<u8> = self.read.drain(..=end).collect();
            let size = std::str::from_utf8(&line).unwrap().trim();
            let size = usize::from_str_radix(size, 16).unwrap();
            body.extend(self.take(size).await);
            self.take(2).await;
            if size == 0 {
                return body;
            }
        }
    }

    /// Asks for an absolute URL.
    async fn forward(&mut self, url: &str) -> Answer {
        self.send(get(url)).await;
        self.answer().await
    }

    /// Nothing comes for a while, and the connection stays.
    async fn is_silent(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.read);
        timeout(SILENCE, read).await.is_err()
    }

    /// The next thing that happens is the close, by FIN (`Ok`) or reset.
    async fn closes(&mut self) -> std::io::Result<()> {
        let read = self.stream.read_buf(&mut self.read);
        let n = timeout(LIMIT, read).await.expect("a close in time")?;
        assert_eq!(n, 0, "{:?}", String::from_utf8_lossy(&self.read));
        Ok(())
    }

    /// TLS on top, trusting the lab's authority.
    async fn tls(self, name: &str, lab: &Lab) -> std::io::Result<Peer> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let stream = connector(lab).connect(name, self.stream).await?;
        Ok(Peer::over(stream))
    }
}

fn connector(lab: &Lab) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(lab.ca_pem().as_bytes()) {
        roots.add(cert.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// A GET for `target` as it stands; its host is that of an absolute target.
fn get(target: &str) -> String {
    let host = target.split('/').nth(2).unwrap_or_default();
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// A GET in origin-form.
fn get_at(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn basic(login: &str) -> String {
    format!(
        "Proxy-Authorization: Basic {}\r\n",
        BASE64_STANDARD.encode(login)
    )
}

async fn lab(exits: impl IntoIterator<Item = ExitConfig>) -> Lab {
    Lab::start(LabConfig::with(exits).logging(1000))
        .await
        .unwrap()
}

/// A lab of one exit that behaves like `word`.
async fn behaving(exit: ExitConfig, word: &str) -> (Lab, ExitHandle) {
    let lab = lab([exit.behaving(word.parse().unwrap())]).await;
    let exit = lab.exits()[0].clone();
    (lab, exit)
}

/// CONNECT: the exit's answer, and the tunnel.
async fn connect(exit: &ExitHandle, target: &str) -> (u16, Peer) {
    let mut peer = Peer::dial(exit.address()).await;
    peer.send(format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
    ))
    .await;
    let head = peer.head().await;
    let answer = Answer {
        head,
        body: Vec::new(),
    };
    (answer.status(), peer)
}

/// SOCKS5 without a login up to the reply: its code, and the tunnel.
async fn socks(exit: &ExitHandle, host: &str, port: u16) -> (u8, Peer) {
    let mut peer = Peer::dial(exit.address()).await;
    peer.send([5, 1, 0]).await;
    assert_eq!(peer.take(2).await, [5, 0]);
    peer.send(socks_request(host, port)).await;
    let reply = peer.take(10).await;
    (reply[1], peer)
}

fn socks_request(host: &str, port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 3, u8::try_from(host.len()).unwrap()];
    bytes.extend(host.as_bytes());
    bytes.extend(port.to_be_bytes());
    bytes
}

/// Waits until `done` holds of what the lab counted: the lab's tasks need their turn.
async fn until(lab: &Lab, done: impl Fn(&super::LabStats) -> bool) {
    let watch = async {
        while !done(&lab.stats()) {
            tokio::task::yield_now().await;
        }
    };
    let reached = timeout(LIMIT, watch).await;
    assert!(reached.is_ok(), "never reached: {:#?}", lab.stats());
}

fn no_requests(origin: &OriginStats) -> bool {
    origin.requests == 0
}
