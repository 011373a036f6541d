//! Goal: the page of the kind shows the example as it is, and what it prints. Method: the example is run with
//! its output kept; page, source and output are compared.
#![cfg(test)]

#[path = "../examples/api_quota.rs"]
#[allow(dead_code, reason = "its `main` is for `cargo run`")]
mod api_quota;

const PAGE: &str = include_str!("../../../docs/kinds/quota_rollup.md");
const SOURCE: &str = include_str!("../examples/api_quota.rs");

#[tokio::test]
async fn the_page_shows_the_example_and_what_it_prints() {
    let mut printed = Vec::new();
    api_quota::run(&mut printed).await.unwrap();
    let printed = String::from_utf8(printed).unwrap();
    for (what, text) in [("rust", SOURCE), ("text", printed.as_str())] {
        let block = format!("```{what}\n{text}```");
        assert!(PAGE.contains(&block), "the page does not show\n{block}");
    }
}
