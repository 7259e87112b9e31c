//! What the calls of a run cost without exitfetch: the same requests over the same number of
//! sockets, the same files in the same directories, and nothing else. No HTTP library, no
//! scheduler, no digests, no records. `bench/peers.sh` runs it as the peer `floor`: what
//! exitfetch may save at most is the difference. With `-` for OUT no file is made either
//! (the peer `requests`).
//!
//!     cargo run --release --example floor -- PROXIES URLS OUT PER_EXIT
//!
//! PROXIES has a `http://HOST:PORT` per line, URLs are plain http and each answer has a
//! `Content-Length`: the lab's have.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// What becomes of bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    OneEach,
    None,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [proxies, urls, out, per_exit] = &args[..] else {
        bail!("usage: floor PROXIES URLS OUT PER_EXIT");
    };
    let proxies = std::fs::read_to_string(proxies)?;
    let urls: Rc<[String]> = std::fs::read_to_string(urls)?
        .lines()
        .map(str::to_owned)
        .collect();
    let files = if out == "-" {
        Files::None
    } else {
        std::fs::create_dir_all(Path::new(out).join("bodies"))?;
        std::env::set_current_dir(out)?;
        Files::OneEach
    };
    let next = Rc::new(Cell::new(0));
    let slots = LocalSet::new();
    for proxy in proxies.lines() {
        let address = proxy.trim_start_matches("http://").trim_end_matches('/');
        for _ in 0..per_exit.parse::<usize>()? {
            let slot = work(
                address.to_owned(),
                Rc::clone(&urls),
                Rc::clone(&next),
                files,
            );
            slots.spawn_local(async move {
                if let Err(error) = slot.await {
                    eprintln!("floor: {error:#}");
                }
            });
        }
    }
    slots.await;
    Ok(())
}

/// One socket: asks for the next URL until there is none.
async fn work(
    address: String,
    urls: Rc<[String]>,
    next: Rc<Cell<usize>>,
    files: Files,
) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect(&address).await?;
    socket.set_nodelay(true)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Some(url) = urls.get(next.replace(next.get() + 1)) else {
            return Ok(());
        };
        let host = url.split('/').nth(2).context("a URL without a host")?;
        let request = format!("GET {url} HTTP/1.1\r\nhost: {host}\r\naccept: */*\r\n\r\n");
        socket.write_all(request.as_bytes()).await?;
        let (mut have, mut whole) = (0, None);
        while whole.is_none_or(|(_, end)| have < end) {
            let n = socket.read(&mut buffer[have..]).await?;
            anyhow::ensure!(n > 0, "the exit has closed");
            have += n;
            whole = whole.or_else(|| extent(&buffer[..have]));
        }
        let (body, end) = whole.unwrap_or_default();
        if files == Files::OneEach {
            store(url, &buffer[body..end])?;
        }
    }
}

/// Where the body begins and ends, once the head is there.
fn extent(received: &[u8]) -> Option<(usize, usize)> {
    let head = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&received[..head]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.trim().parse::<usize>().ok())?
    })?;
    Some((head, head + length))
}

/// The same calls as `store/temp`: an unnamed file, one write, a name.
fn store(url: &str, body: &[u8]) -> anyhow::Result<()> {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    hasher.write(url.as_bytes());
    let id = format!("{:016x}", hasher.finish());
    let dir = format!("bodies/{}/{}", &id[..2], &id[2..4]);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, ".", flags, Mode::from_raw_mode(0o666))?;
    rustix::io::write(&file, body)?;
    let made = rustix::fs::mkdirat(CWD, &dir, Mode::from_raw_mode(0o777));
    if made == Err(rustix::io::Errno::NOENT) {
        std::fs::create_dir_all(&dir)?;
    }
    let name = format!("{dir}/{id}.txt");
    rustix::fs::linkat(&file, "", CWD, &name, AtFlags::EMPTY_PATH)?;
    Ok(())
}
