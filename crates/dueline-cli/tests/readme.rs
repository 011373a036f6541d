//! Goal: the transcript in the README, typed as written, gives the output it shows. Method: each command of
//! it is run by the binary itself; times and generations are compared by their shape.
#![cfg(test)]

mod support;

use support::server::Server;

const README: &str = include_str!("../../../README.md");

/// A command of the transcript, as arguments, and the lines it shows.
struct Step {
    arguments: Vec<String>,
    shown: Vec<String>,
}

fn transcript() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_console = false;
    for line in README.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        } else if in_console && let Some(command) = line.strip_prefix("$ ") {
            let (_, arguments) = command
                .split_once(" -- ")
                .expect("cargo run ... -- arguments");
            steps.push(Step {
                arguments: words(arguments),
                shown: Vec::new(),
            });
        } else if in_console {
            steps
                .last_mut()
                .expect("a command comes first")
                .shown
                .push(line.to_owned());
        }
    }
    steps
}

/// Splits as a shell does, as far as the transcript needs it: blanks, and single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Every digit as `0`: times, generations and addresses keep their shape.
fn shape(text: &str) -> String {
    text.trim_end()
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect()
}

#[test]
fn the_transcript_gives_the_output_it_shows() {
    let steps = transcript();
    assert_eq!(steps.len(), 3, "serve, create, list");
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path());
    let (serve, commands) = steps.split_first().expect("a first step");
    assert_eq!(serve.arguments, ["serve"]);
    let started = server.log().join("\n");
    let shown = serve
        .shown
        .join("\n")
        .replace("./dueline-data", &folder.path().to_string_lossy());
    let address = server.address.clone();
    assert_eq!(started, shown.replace("127.0.0.1:7431", &address));
    for step in commands {
        let arguments: Vec<&str> = step.arguments.iter().map(String::as_str).collect();
        let output = server.run(&arguments).ok();
        let lines: Vec<String> = output.lines().map(shape).collect();
        let expected: Vec<String> = step.shown.iter().map(|line| shape(line)).collect();
        assert_eq!(lines, expected, "{arguments:?}");
    }
}
