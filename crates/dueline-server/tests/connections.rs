//! Goal: clients that hold connections and say nothing take neither deliveries nor the server from
//! others for good. Method: silent sockets up to the limit, and a clock that the test moves.
#![cfg(test)]

mod support;

use std::time::Duration;

use dueline_testkit::{ManualClock, test_runtime};
use support::{Harness, Receiver, due, pending};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMER: &str = "/v1/partitions/tenant-7/timers/order-42";

const REQUEST: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// A request on a connection of its own, answered.
async fn pass_by(harness: &Harness) {
    let answer = harness.raw(REQUEST).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// A connection on which this much was sent and nothing follows.
async fn silent(harness: &Harness, start: &str) -> TcpStream {
    let mut socket = TcpStream::connect(harness.server.address()).await.unwrap();
    socket.write_all(start.as_bytes()).await.unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_on_which_nothing_moves_is_closed_after_a_minute() {
    let clock = ManualClock::new(1_800_000_000_000);
    let runtime = test_runtime(&clock);
    let harness = Harness::with(|config| config.runtime(runtime)).await;
    // Nothing at all, a head that breaks off, the beginning of an HTTP/2 preface, and one that was
    // used and kept.
    for start in [
        "",
        "GET /healthz HTTP/1.1\r\nhost: loc",
        "PRI * HT",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ] {
        let mut socket = silent(&harness, start).await;
        let mut seen = Vec::new();
        if start.ends_with("\r\n\r\n") {
            while !seen.ends_with(b"}") {
                assert_ne!(socket.read_buf(&mut seen).await.unwrap(), 0);
            }
        }
        // The server has the socket once it has answered somebody who came later.
        pass_by(&harness).await;
        let mut closed = std::pin::pin!(socket.read_buf(&mut seen));
        clock.advance(Duration::from_secs(50));
        tokio::select! {
            biased;
            _ = &mut closed => panic!("{start:?}: closed too early"),
            () = pass_by(&harness) => {}
        }
        let mut minutes = 0;
        loop {
            clock.advance(Duration::from_secs(61));
            tokio::select! {
                ended = &mut closed => {
                    assert!(matches!(ended, Ok(0) | Err(_)), "{start:?}: {ended:?}");
                    break;
                }
                () = pass_by(&harness) => {}
            }
            minutes += 1;
            assert!(minutes < 1_000, "{start:?} was never closed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_wait_and_deliveries_do_not() {
    let mut receiver = Receiver::start([]).await;
    let harness = Harness::with(|config| config.connections_max(2)).await;
    let mut timer = due(&receiver.url());
    timer["due_at"] = serde_json::Value::Null;
    timer["delay"] = "100ms".into();
    assert_eq!(harness.put(TIMER, &timer).await.status, 201);
    let held = [silent(&harness, "GET").await, silent(&harness, "GET").await];
    let mut waiting = silent(&harness, REQUEST).await;
    let mut answer = String::new();
    tokio::select! {
        biased;
        _ = waiting.read_to_string(&mut answer) => panic!("a third connection: {answer}"),
        _ = receiver.next() => {}
    }
    drop(held);
    waiting.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(harness.put(TIMER, &pending()).await.status, 201);
}
