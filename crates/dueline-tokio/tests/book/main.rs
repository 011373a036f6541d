//! Goal: each page about a built-in kind shows a program that runs, and what it prints. Method: the example is
//! run with its output kept; source and output are compared with the page's blocks.
#![cfg(test)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the `main` of an example is for `cargo run`"
)]

#[path = "../../examples/api_quota.rs"]
mod api_quota;
#[path = "../../examples/leader_lease.rs"]
mod leader_lease;
#[path = "../../examples/outbox.rs"]
mod outbox;
#[path = "../../examples/release_gate.rs"]
mod release_gate;
#[path = "../../examples/retry_check.rs"]
mod retry_check;
#[path = "../../examples/seat_payment.rs"]
mod seat_payment;
#[path = "../../examples/seat_shop.rs"]
mod seat_shop;

/// The contents of a page's blocks of this language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let opening = format!("```{language}\n");
    let blocks = page.split(&opening).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default())
        .collect()
}

/// A test that the page of a kind shows this example and, in a block of this language, what it prints.
macro_rules! page_shows {
    ($kind:ident, $example:ident, $printed_as:literal) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $kind() {
            let page = include_str!(concat!("../../../../docs/kinds/", stringify!($kind), ".md"));
            let source = include_str!(concat!("../../examples/", stringify!($example), ".rs"));
            let mut printed = Vec::new();
            $example::run(&mut printed).await.unwrap();
            let printed = String::from_utf8(printed).unwrap();
            assert_eq!(blocks(page, "rust"), [source], "another program");
            assert!(
                blocks(page, $printed_as).contains(&printed.as_str()),
                "it prints\n{printed}"
            );
        }
    };
}

page_shows!(lease_sweep, leader_lease, "text");
page_shows!(ticket_expiry, seat_shop, "text");
page_shows!(quota_rollup, api_quota, "text");
page_shows!(outcome_delivery, outbox, "console");
page_shows!(reservation_reconcile, seat_payment, "text");
page_shows!(publication_recheck, release_gate, "text");
page_shows!(test_kind, retry_check, "text");

#[test]
fn the_page_of_the_outbox_shows_one_output_alone() {
    let page = include_str!("../../../../docs/kinds/outcome_delivery.md");
    assert_eq!(blocks(page, "console").len(), 1);
}
