//! Goal: the page about faults on demand shows a program that runs, and what it prints. Method: the example is
//! run, and its source and output compared with the page.
#![cfg(test)]

#[allow(dead_code, unreachable_pub, reason = "its main is not called")]
#[path = "../examples/retry_check.rs"]
mod retry_check;

const PAGE: &str = include_str!("../../../docs/kinds/test_kind.md");
const SOURCE: &str = include_str!("../examples/retry_check.rs");

#[tokio::test]
async fn the_page_shows_the_program_and_what_it_prints() {
    let mut out = Vec::new();
    retry_check::run(&mut out).await.unwrap();
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
