//! How many small keep-alive requests a second the lab answers, client included.
//!
//! `cargo run --release --example lab_load [EXITS] [CONNECTIONS] [SECONDS] [BYTES]`: plain
//! requests over kept-alive connections, by a client that does nothing but write and read.
//! Both sides share two worker threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use exitfetch::lab::{ExitConfig, Lab, LabConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (exits, connections, seconds, bytes) = (next(6)?, next(64)?, next(5)?, next(1024)?);
    let lab = Lab::start(LabConfig::alike(exits, &ExitConfig::http())).await?;
    let done = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..connections {
        let address = lab.exits()[n % exits].address();
        clients.spawn(client(
            address,
            n,
            bytes,
            Arc::clone(&done),
            Arc::clone(&stop),
        ));
    }
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    stop.store(true, Relaxed);
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let total = done.load(Relaxed);
    println!("{} requests/s", total / seconds as u64);
    println!("counted by the origin: {}", lab.origin_stats().requests);
    Ok(())
}

async fn client(
    address: SocketAddr,
    number: usize,
    bytes: usize,
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let host = format!("site-{}.test", number % 12);
    let request = format!("GET http://{host}/bytes/{bytes} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut answer = Vec::with_capacity(bytes + 1024);
    while !stop.load(Relaxed) {
        stream.write_all(request.as_bytes()).await?;
        answer.clear();
        let mut whole = usize::MAX;
        while answer.len() < whole {
            anyhow::ensure!(stream.read_buf(&mut answer).await? > 0, "closed early");
            if whole == usize::MAX
                && let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n")
            {
                whole = head + 4 + bytes;
            }
        }
        done.fetch_add(1, Relaxed);
    }
    Ok(())
}
