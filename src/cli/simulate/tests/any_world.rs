//! Worlds made at random: what must hold in every run holds in all of them.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::play;

const TROUBLES: [&str; 24] = [
    "resolve unreachable",
    "dial refused",
    "dial reset",
    "dial timeout",
    "exit-tls eof",
    "handshake 403",
    "handshake 407",
    "handshake 429",
    "handshake 502",
    "handshake socks 2",
    "handshake socks 5",
    "handshake timeout",
    "tls certificate",
    "tls eof",
    "head timeout",
    "head reset",
    "head too-large",
    "answer 403",
    "answer 404",
    "answer 429",
    "answer 500",
    "body truncated",
    "body decode",
    "cancelled",
];

fn any<T: Copy, const N: usize>(rng: &mut StdRng, of: [T; N]) -> T {
    of[rng.random_range(0..N)]
}

fn troubles(rng: &mut StdRng, most: usize) -> Vec<Value> {
    let trouble = |rng: &mut StdRng| {
        let mut trouble = json!({
            "what": any(rng, TROUBLES),
            "share": any(rng, [0.02, 0.1, 0.5, 1.0]),
            "from": rng.random_range(0..20),
        });
        if rng.random_bool(0.5) {
            trouble["every"] = json!(rng.random_range(10..60));
            trouble["lasting"] = json!(rng.random_range(1..20));
        }
        if rng.random_bool(0.3) {
            trouble["headers"] = json!({"Retry-After": any(rng, ["3", "90", "3600"])});
        }
        trouble
    };
    (0..rng.random_range(0..=most))
        .map(|_| trouble(rng))
        .collect()
}

fn exits(rng: &mut StdRng, class: usize) -> Value {
    let mut exits = json!({
        "name": format!("exit-{class}"),
        "count": rng.random_range(1..8),
        "cap": rng.random_range(1..6),
        "dial": 0.02,
        "latency": {"median": rng.random_range(0.0..1.0), "sigma": 0.5},
        "route": any(rng, ["tunnel", "forward"]),
        "faults": troubles(rng, 2),
    });
    if rng.random_bool(0.3) {
        exits["group"] = json!("shared");
    }
    if rng.random_bool(0.3) {
        exits["refuses_above"] = json!(rng.random_range(1..4));
        exits["refusal"] = json!(any(rng, ["handshake 429", "dial reset"]));
    }
    exits
}

fn origins(rng: &mut StdRng, class: usize) -> Value {
    let mut origins = json!({
        "name": format!("site-{class}"),
        "count": rng.random_range(1..10),
        "jobs": rng.random_range(1..60),
        "scheme": any(rng, ["http", "https"]),
        "latency": {"median": rng.random_range(0.0..0.5), "sigma": 1.0},
        "faults": troubles(rng, 2),
    });
    if rng.random_bool(0.3) {
        origins["rate"] = json!(any(rng, ["0.5", "20", "unlimited"]));
        origins["burst"] = json!(rng.random_range(1..5));
    }
    if rng.random_bool(0.3) {
        origins["limit"] = json!({
            "rate": rng.random_range(1.0..10.0),
            "burst": rng.random_range(1..5),
            "per": any(rng, ["origin", "exit"]),
            "status": any(rng, [429, 503]),
            "retry_after": any(rng, [None, Some(2), Some(60)]),
        });
    }
    origins
}

fn world(seed: u64) -> String {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let world = json!({
        "run": {
            "rate": any(rng, ["2", "10", "unlimited"]),
            "burst": rng.random_range(1..4),
            "retries": rng.random_range(0..4),
            "seed": seed,
        },
        "groups": [{"name": "shared", "cap": rng.random_range(1..10)}],
        "exits": (0..rng.random_range(1..5)).map(|class| exits(rng, class)).collect::<Vec<_>>(),
        "origins": (0..rng.random_range(1..5)).map(|class| origins(rng, class)).collect::<Vec<_>>(),
        "jobs": {
            "order": any(rng, ["shuffled", "sorted"]),
            "method": any(rng, ["GET", "POST"]),
        },
    });
    world.to_string()
}

#[test]
fn what_must_hold_in_every_run_holds_in_any_world() {
    for seed in 0..300 {
        let text = world(seed);
        let (_, outcome) = play(&text, None);
        assert!(
            outcome.broken.is_empty(),
            "seed {seed}: {:?}\n{text}",
            outcome.broken
        );
        let figures = &outcome.figures;
        let ended = figures.get("ok") + figures.get("failed");
        assert_eq!(ended, figures.get("jobs"), "seed {seed}: {text}");
    }
}
