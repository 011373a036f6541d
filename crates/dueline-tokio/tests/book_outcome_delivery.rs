//! Goal: the page of the outbox shows a program that runs, and what it prints. Method: the page's blocks are
//! compared with the example's source and with its output.
#![cfg(test)]

#[path = "../examples/outbox.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod outbox;

const PAGE: &str = include_str!("../../../docs/kinds/outcome_delivery.md");
const SOURCE: &str = include_str!("../examples/outbox.rs");

/// The contents of the page's blocks of this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = PAGE.split(&opening).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default())
        .collect()
}

#[test]
fn the_page_shows_the_example() {
    assert_eq!(blocks("rust"), [SOURCE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_what_the_example_prints() {
    let mut out = Vec::new();
    outbox::run(&mut out).await.unwrap();
    let printed = String::from_utf8(out).unwrap();
    assert_eq!(blocks("console"), [printed.as_str()]);
}
