//! Answers `GET /metrics`, one request per connection, and nothing else.
//!
//! So small that it needs no HTTP library: a head of bounded size within bounded time from a
//! bounded number of clients, one answer, the close. Runs beside the engine on its thread and
//! takes what the figures' atomics hold; nobody's scrape can hold the run up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Clients at one time; further ones wait until one is done.
const CLIENTS: usize = 8;
/// Largest request head.
const HEAD_MOST: usize = 8 * 1024;
/// From the connection to the end of the answer.
const TIME_MOST: Duration = Duration::from_secs(10);
/// After a connection that could not be taken: this machine is short of descriptors.
const BREATHER: Duration = Duration::from_millis(200);
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts answering, inside a runtime.
    pub(super) fn start(listener: TcpListener, registry: Arc<Registry>) -> anyhow::Result<Server> {
        Ok(Server {
            address: listener.local_addr()?,
            task: tokio::spawn(listen(listener, registry)),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, registry: Arc<Registry>) {
    // Aborted with this task.
    let mut clients = JoinSet::new();
    loop {
        while clients.len() >= CLIENTS {
            clients.join_next().await;
        }
        while clients.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let answered = answer(stream, Arc::clone(&registry));
                clients.spawn(async move {
                    // A client that is too slow or gone costs its own answer.
                    let _ = timeout(TIME_MOST, answered).await;
                });
            }
            Err(_) => sleep(BREATHER).await,
        }
    }
}

async fn answer(mut stream: TcpStream, registry: Arc<Registry>) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let reply = loop {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if let Some(reply) = reply(&head, &registry) {
            break reply;
        }
    };
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}

/// The whole answer to a request, once its head is complete or cannot be one.
fn reply(head: &[u8], registry: &Registry) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let plain = |status: &str, text: &str| Some(whole(status, PLAIN, text));
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < HEAD_MOST => return None,
        Ok(httparse::Status::Partial) => {
            return plain(
                "431 Request Header Fields Too Large",
                "the head is too large\n",
            );
        }
        Err(_) => return plain("400 Bad Request", "this is no HTTP request\n"),
    }
    let path = request.path.unwrap_or_default();
    match (request.method.unwrap_or_default(), path.split('?').next()) {
        ("GET", Some("/metrics")) => {
            let mut text = String::with_capacity(16 * 1024);
            match encode(&mut text, registry) {
                Ok(()) => Some(whole("200 OK", OPENMETRICS, &text)),
                Err(_) => plain(
                    "500 Internal Server Error",
                    "the figures cannot be written\n",
                ),
            }
        }
        ("GET", _) => plain("404 Not Found", "the figures are at /metrics\n"),
        _ => plain("405 Method Not Allowed\r\nAllow: GET", "only GET\n"),
    }
}

fn whole(status: &str, content_type: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> Option<u16> {
        let reply = reply(head.as_bytes(), &Registry::default())?;
        reply.get(9..12)?.parse().ok()
    }

    #[test]
    fn only_the_figures_are_served_and_bad_requests_are_told_so() {
        assert_eq!(
            status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
            Some(200)
        );
        assert_eq!(status("GET /metrics?a=b HTTP/1.0\r\n\r\n"), Some(200));
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), Some(404));
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), Some(405));
        assert_eq!(status("\0\0\0"), Some(400));
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost:"), None);
        let long = format!("GET /{} ", "x".repeat(HEAD_MOST));
        assert_eq!(status(&long), Some(431));
    }

    #[test]
    fn an_answer_has_the_length_it_announces() {
        let text = reply(b"GET /metrics HTTP/1.1\r\n\r\n", &Registry::default()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        assert_eq!(body, "# EOF\n");
    }
}
