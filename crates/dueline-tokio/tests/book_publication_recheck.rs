//! Goal: the page of the kind shows the example as it is, and what it prints. Method: the example is run with
//! its output kept; page, source and output are compared.
#![cfg(test)]

#[path = "../examples/release_gate.rs"]
#[allow(dead_code, reason = "its `main` is for `cargo run`")]
mod release_gate;

const PAGE: &str = include_str!("../../../docs/kinds/publication_recheck.md");
const SOURCE: &str = include_str!("../examples/release_gate.rs");

#[tokio::test]
async fn the_page_shows_the_example_and_what_it_prints() {
    let mut printed = Vec::new();
    release_gate::run(&mut printed).await.unwrap();
    let printed = String::from_utf8(printed).unwrap();
    for (what, text) in [("rust", SOURCE), ("text", printed.as_str())] {
        let block = format!("```{what}\n{text}```");
        assert!(PAGE.contains(&block), "the page does not show\n{block}");
    }
}
