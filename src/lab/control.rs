//! The control address: what the lab counted, as JSON, and ways to change it while it runs.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /stats` | `{"exits": [ExitStats…], "origin": OriginStats}` |
//! | `GET /exits`, `GET /origin`, `GET /log` | parts of it; the requests remembered |
//! | `GET /exits.txt`, `GET /urls.txt`, `GET /lab-ca.pem` | the files that [`super::Lab::write`] writes |
//! | `POST /exits/NAME/behaviour` | the body, a word of [`super::Behaviour`], is how it behaves from now on |
//! | `POST /reset` | all counts, peaks, visits and the log start anew |

use std::sync::Arc;

use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Parts;
use super::exit::ExitStats;
use super::gauge::Gauge;
use super::origin::OriginStats;
use super::reply::{After, Reply, Sending};
use super::request::{Head, Verb};
use super::serve::{end, turn_away};
use super::wire::{Gone, Wire};

/// Everything a lab counted.
#[derive(Clone, Debug, Serialize, serde::Deserialize)]
pub struct LabStats {
    /// In the order of the configuration.
    pub exits: Vec<ExitStats>,
    /// What came through them, and straight.
    pub origin: OriginStats,
}

/// Serves the control address until dropped.
pub(super) async fn listen(listener: TcpListener, parts: Arc<Parts>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(serve(stream, Arc::clone(&parts)));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, parts: Arc<Parts>) {
    let mut wire = Wire::new(stream, Arc::new(Gauge::default()).enter_owned());
    loop {
        let Ok(head) = wire.head().await else { return };
        let Ok(head) = head else {
            return turn_away(wire, Reply::status(400)).await;
        };
        let after = answer(&mut wire, &head, &parts).await;
        if !matches!(after, Ok(After::Keep)) {
            return end(wire, after).await;
        }
    }
}

async fn answer(wire: &mut Wire, head: &Head, parts: &Parts) -> Result<After, Gone> {
    let body = wire.body(head).await?;
    let method = wire.text(&head.method).to_owned();
    let target = wire.text(&head.target).to_owned();
    let reply = match &*method {
        "GET" | "HEAD" => read(&target, parts),
        _ => change(&target, &String::from_utf8_lossy(&body), parts).await,
    };
    let sending = Sending {
        seed: 0,
        head_only: head.verb == Verb::Head,
        persistent: head.persistent,
    };
    let after = reply.send(wire, sending, ()).await?;
    wire.use_up(head.whole.end);
    Ok(after)
}

fn read(target: &str, parts: &Parts) -> Reply {
    match target {
        "/stats" => json(&parts.stats()),
        "/exits" => json(&parts.stats().exits),
        "/origin" => json(&parts.stats().origin),
        "/log" => json(&parts.origin.seen()),
        "/exits.txt" => Reply::text(200, parts.exits_txt()),
        "/urls.txt" => Reply::text(200, super::files::urls_txt()),
        "/lab-ca.pem" => Reply::text(200, parts.authority.pem().to_owned()),
        _ => Reply::text(
            404,
            "ask for /stats, /exits, /origin, /log, /exits.txt, /urls.txt or /lab-ca.pem\n",
        ),
    }
}

fn json(value: &impl Serialize) -> Reply {
    match serde_json::to_string_pretty(value) {
        Ok(text) => Reply::text(200, text + "\n").field("Content-Type", "application/json"),
        Err(error) => Reply::text(500, format!("{error}\n")),
    }
}

async fn change(target: &str, word: &str, parts: &Parts) -> Reply {
    if target == "/reset" {
        parts.reset();
        return Reply::text(200, "reset\n");
    }
    let name = target
        .strip_prefix("/exits/")
        .and_then(|rest| rest.strip_suffix("/behaviour"));
    let exit = name.and_then(|name| parts.exits.iter().find(|exit| &*exit.name == name));
    let Some(exit) = exit else {
        return Reply::text(404, "post to /reset or /exits/NAME/behaviour\n");
    };
    match word.trim().parse() {
        Ok(behaviour) => {
            exit.behave(behaviour).await;
            Reply::text(200, format!("{name}: {word}\n", name = exit.name))
        }
        Err(error) => Reply::text(400, error + "\n"),
    }
}
