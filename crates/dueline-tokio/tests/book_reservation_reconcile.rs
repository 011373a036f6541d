//! Goal: the page about reservations shows a program that runs, and what it prints. Method: the example is run, and
//! its source and output compared with the page.
#![cfg(test)]

#[allow(dead_code, unreachable_pub, reason = "its main is not called")]
#[path = "../examples/seat_payment.rs"]
mod seat_payment;

const PAGE: &str = include_str!("../../../docs/kinds/reservation_reconcile.md");
const SOURCE: &str = include_str!("../examples/seat_payment.rs");

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_the_program_and_what_it_prints() {
    let mut out = Vec::new();
    seat_payment::run(&mut out).await.unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(
        PAGE.contains(&format!("```rust\n{SOURCE}```")),
        "another program"
    );
    assert!(
        PAGE.contains(&format!("```text\n{out}```")),
        "it prints\n{out}"
    );
}
