//! What the lab counts, serves at its control address and writes to files.

use super::super::{LabStats, Level, sample_urls};
use super::*;

const BASE: Duration = Duration::from_millis(40);

#[tokio::test]
async fn peaks_are_those_of_requests_and_of_sockets() {
    let lab = lab([ExitConfig::http(), ExitConfig::socks5()]).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(Peer::dial(lab.exits()[0].address()).await);
    }
    for peer in &mut idle[..2] {
        peer.send(get("http://a.test/silent")).await;
    }
    until(&lab, |stats| {
        stats.exits[0].sockets == Level { now: 4, peak: 4 }
    })
    .await;
    until(&lab, |stats| {
        stats.exits[0].in_flight == Level { now: 2, peak: 2 }
    })
    .await;
    assert_eq!(lab.origin_stats().host("a.test").in_flight.peak, 2);
    assert_eq!(lab.exits()[1].stats().sockets.peak, 0);
    drop(idle);
    until(&lab, |stats| {
        stats.exits[0].sockets == Level { now: 0, peak: 4 }
    })
    .await;
    until(&lab, |stats| {
        stats.origin.in_flight == Level { now: 0, peak: 2 }
    })
    .await;
    lab.reset();
    assert_eq!(lab.exits()[0].stats().sockets.peak, 0);
    assert_eq!(lab.exits()[0].stats().requests, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_keep_a_cap_are_never_seen_above_it() {
    let lab = Arc::new(lab([ExitConfig::http()]).await);
    let address = lab.exits()[0].address();
    let slots = Arc::new(tokio::sync::Semaphore::new(3));
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..300 {
        let slots = Arc::clone(&slots);
        clients.spawn(async move {
            let slot = slots.acquire_owned().await.unwrap();
            let mut peer = Peer::dial(address).await;
            let path = ["ok/10", "last/10", "chunked/100000", "http10/10"][n % 4];
            let answer = peer.forward(&format!("http://a.test/{path}")).await;
            assert_eq!(answer.status(), 200);
            // The client's own close, and the lab's answer to it, before the slot is free.
            let _ = peer.stream.shutdown().await;
            peer.rest().await;
            drop(slot);
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    let stats = lab.exits()[0].stats();
    assert!(stats.in_flight.peak <= 3, "{stats:#?}");
    assert_eq!(stats.sockets.peak, 3);
    assert_eq!((stats.requests, stats.unfinished), (300, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_has_read_the_last_byte_is_not_in_flight() {
    let lab = Arc::new(lab([ExitConfig::http()]).await);
    let address = lab.exits()[0].address();
    let slots = Arc::new(tokio::sync::Semaphore::new(2));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let slots = Arc::clone(&slots);
        clients.spawn(async move {
            let mut peer = Peer::dial(address).await;
            for n in 0..100 {
                let slot = slots.acquire().await.unwrap();
                let path = ["ok/10", "chunked/10", "chunked/100000"][n % 3];
                peer.forward(&format!("http://a.test/{path}")).await;
                drop(slot);
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    let stats = lab.exits()[0].stats();
    assert!(stats.in_flight.peak <= 2, "{stats:#?}");
    assert_eq!((stats.requests, stats.sockets.peak), (600, 6));
}

#[tokio::test]
async fn a_hang_up_is_seen_while_the_lab_waits_or_writes() {
    for path in [
        "delay/60000",
        "drip?ms=60000",
        "drip-head?ms=60000",
        "endless",
        "endless?ms=9999",
    ] {
        let lab = lab([ExitConfig::http()]).await;
        let mut peer = Peer::dial(lab.exits()[0].address()).await;
        peer.send(get(&format!("http://a.test/{path}"))).await;
        until(&lab, |stats| stats.exits[0].in_flight.now == 1).await;
        // Half-close: the lab may not wait for its next write, which never comes.
        peer.stream.shutdown().await.unwrap();
        until(&lab, |stats| stats.exits[0].sockets.now == 0).await;
        until(&lab, |stats| stats.exits[0].in_flight.now == 0).await;
        peer.rest().await;
    }
}

#[tokio::test]
async fn an_exit_above_its_capacity_is_slower() {
    let lab = lab([ExitConfig::http().capacity(1).base(BASE)]).await;
    let mut crowd = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::dial(lab.exits()[0].address()).await;
        peer.send(get("http://a.test/silent")).await;
        crowd.push(peer);
    }
    until(&lab, |stats| stats.exits[0].in_flight.now == 3).await;
    let clock = super::super::clock();
    let mut peer = Peer::dial(lab.exits()[0].address()).await;
    let start = clock.now();
    peer.forward("http://a.test/ok/1").await;
    assert!(clock.now() - start >= 4 * BASE);
    let mut other = Peer::dial(lab.origin_http()).await;
    other.send(get_at("a.test", "/ok/1")).await;
    assert_eq!(other.answer().await.status(), 200);
}

#[tokio::test]
async fn the_control_address_tells_and_changes() {
    let lab = lab([ExitConfig::http().named("one")]).await;
    let mut peer = Peer::dial(lab.exits()[0].address()).await;
    peer.forward("http://a.test/ok/1").await;
    let mut control = Peer::dial(lab.control()).await;
    control.send(get("/stats")).await;
    let stats: LabStats = serde_json::from_slice(&control.answer().await.body).unwrap();
    assert_eq!((stats.exits[0].requests, stats.origin.requests), (1, 1));
    assert_eq!(stats.origin.hosts["a.test"].at_ns.len(), 1);

    for (word, status) in [("502", 200), ("nonsense", 400)] {
        let length = word.len();
        control
            .send(format!(
                "POST /exits/one/behaviour HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{word}"
            ))
            .await;
        assert_eq!(control.answer().await.status(), status);
    }
    assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 502);
    assert_eq!(lab.exits()[0].stats().behaviour, "all:502");
    control.send("POST /reset HTTP/1.1\r\n\r\n").await;
    control.answer().await;
    assert!(no_requests(&lab.origin_stats()));
    for path in [
        "/exits.txt",
        "/urls.txt",
        "/lab-ca.pem",
        "/log",
        "/exits",
        "/origin",
    ] {
        control.send(get(path)).await;
        assert_eq!(control.answer().await.status(), 200, "{path}");
    }
    control.send(get("/other")).await;
    assert_eq!(control.answer().await.status(), 404);
}

#[tokio::test]
async fn the_files_name_what_runs() {
    let lab = lab([
        ExitConfig::http()
            .login("u", "p")
            .attributes("tier=static cap=4"),
        ExitConfig::socks5(),
    ])
    .await;
    let dir = tempfile::tempdir().unwrap();
    lab.write(&dir.path().join("new")).unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.path().join("new").join(name)).unwrap();
    let exits: Vec<String> = read("exits.txt")
        .lines()
        .skip(1)
        .map(str::to_owned)
        .collect();
    let [http, socks] = [0, 1].map(|n| lab.exits()[n].address());
    assert_eq!(
        exits,
        [
            format!("http://u:p@{http} name=lab-1 tier=static cap=4"),
            format!("socks5://{socks} name=lab-2"),
        ]
    );
    let urls: Vec<String> = read("urls.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    assert_eq!(urls, sample_urls(60));
    assert_eq!(read("lab-ca.pem"), lab.ca_pem());
}

#[tokio::test]
async fn a_dropped_lab_leaves_nothing_open() {
    let lab = lab([ExitConfig::http()]).await;
    let addresses = [lab.exits()[0].address(), lab.origin_http(), lab.control()];
    let mut peer = Peer::dial(addresses[0]).await;
    peer.send(get("http://a.test/silent")).await;
    until(&lab, |stats| stats.exits[0].in_flight.now == 1).await;
    drop(lab);
    peer.rest().await;
    for address in addresses {
        // The runtime drops what was aborted at its next turn.
        let refused = async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, refused).await.unwrap();
    }
}

#[tokio::test]
async fn a_base_port_is_counted_up_from_and_a_taken_one_is_named() {
    let lab = lab([]).await;
    let taken = lab.origin_http().port();
    let config = LabConfig {
        base_port: Some(taken),
        ..LabConfig::default()
    };
    let error = Lab::start(config).await.err().unwrap();
    assert!(
        format!("{error:#}").contains(&taken.to_string()),
        "{error:#}"
    );
    let config = LabConfig {
        base_port: Some(65_535),
        ..LabConfig::default()
    };
    assert!(Lab::start(config).await.is_err());
}
