//! Goal: every command does against a real server what its help says, in a table for people and as JSON for
//! programs. Method: the real binary on both ends, a receiver where a webhook has to go somewhere.
#![cfg(test)]

mod support;

use serde_json::{Value, json};
use support::receiver::Receiver;
use support::server::Server;
use support::wait_for;

struct World {
    _folder: tempfile::TempDir,
    server: Server,
    receiver: Receiver,
}

fn world() -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path());
    World {
        _folder: folder,
        server,
        receiver: Receiver::start(),
    }
}

impl World {
    fn create(&self, id: &str, flags: &[&str]) -> Value {
        let mut arguments = vec!["timer", "create", "orders", id, "--url", &self.receiver.url];
        arguments.extend(flags);
        arguments.extend(["--output", "json"]);
        self.server.run(&arguments).json()
    }

    fn get(&self, id: &str) -> Value {
        self.server
            .run(&["timer", "get", "orders", id, "--output", "json"])
            .json()
    }

    /// The ids of the dead letters of the partition, once there are this many.
    fn dead_ids(&self, count: usize) -> Vec<String> {
        let list = ["dead", "list", "orders", "--output", "json"];
        wait_for("dead letters", || {
            let letters = self.server.run(&list).json()["dead_letters"].clone();
            let ids: Vec<String> = letters
                .as_array()?
                .iter()
                .map(|dead| dead["dead_id"].as_str().expect("an id").to_owned())
                .collect();
            (ids.len() == count).then_some(ids)
        })
    }
}

#[test]
fn a_timer_is_created_with_every_field_and_shown() {
    let world = world();
    let created = world.create(
        "a",
        &[
            "--at",
            "2099-01-31T09:00:00+01:00",
            "--header",
            "x-tenant: 42",
            "--payload",
            r#"{"n": 12345678901234567890123}"#,
            "--attempts-max",
            "3",
            "--retry-initial",
            "1s",
            "--retry-max",
            "1m",
            "--deadline",
            "7s",
            "--envelope",
            "raw",
            "--if-absent",
        ],
    );
    assert_eq!(created["due_at"], "2099-01-31T08:00:00.000Z");
    assert_eq!(created["target"]["headers"], json!({"x-tenant": "42"}));
    assert_eq!(
        created["retry"],
        json!({"attempts_max": 3, "initial": "1s", "max": "1m"})
    );
    assert_eq!(
        (&created["deadline"], &created["state"]),
        (&"7s".into(), &"pending".into())
    );
    assert_eq!(created["envelope"], "raw");
    let shown = world.server.run(&["timer", "get", "orders", "a"]).ok();
    for line in [
        r#"payload {"n":12345678901234567890123}"#.to_owned(),
        format!("target.url {}", world.receiver.url),
        "target.headers.x-tenant 42".to_owned(),
        "retry.attempts_max 3".to_owned(),
        "retry.initial 1s".to_owned(),
        "retry.max 1m".to_owned(),
    ] {
        let found = shown.lines().any(|shown| {
            let words: Vec<&str> = shown.split_whitespace().collect();
            words.join(" ") == line
        });
        assert!(found, "{line}: {shown}");
    }
}

#[test]
fn a_timer_is_changed_by_its_generation_and_cancelled_once() {
    let world = world();
    let created = world.create("a", &["--in", "2h", "--payload", "[1]"]);
    let generation = created["generation"].as_str().expect("a generation");
    let update = [
        "timer",
        "update",
        "orders",
        "a",
        "--in",
        "1h",
        "--if-match",
        generation,
    ];
    let table = world.server.run(&update).ok();
    assert!(
        table.starts_with("ID") && table.lines().count() == 2,
        "{table}"
    );
    let updated = world.get("a");
    assert_eq!(updated["payload"], created["payload"]);
    assert_ne!(updated["due_at"], created["due_at"]);
    let stale = world.server.run(&update);
    assert_eq!(stale.code, Some(1));
    assert!(
        stale.stderr.starts_with("error: ") && stale.stderr.contains("(412 "),
        "{}",
        stale.stderr
    );

    let cancelled = world.server.run(&["timer", "cancel", "orders", "a"]).ok();
    assert_eq!(cancelled, "cancelled a\n");
    let again = world.server.run(&["timer", "cancel", "orders", "a"]);
    assert_eq!(again.code, Some(1));
    assert!(
        again.stderr.contains("(404 timer_not_found)"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_timer_without_an_id_gets_one_and_an_id_that_exists_is_not_created_twice() {
    let world = world();
    let create = [
        "timer",
        "create",
        "orders",
        "--in",
        "1h",
        "--url",
        &world.receiver.url,
    ];
    let mut as_json = create.to_vec();
    as_json.extend(["--idempotency-key", "k", "--output", "json"]);
    let first = world.server.run(&as_json).json();
    assert!(
        first["id"].as_str().is_some_and(|id| !id.is_empty()),
        "{first}"
    );
    assert_eq!(
        world.server.run(&as_json).json()["id"],
        first["id"],
        "the key makes a repeat safe"
    );

    world.create("a", &["--in", "1h"]);
    let url = &world.receiver.url;
    let taken = [
        "timer",
        "create",
        "orders",
        "a",
        "--in",
        "1h",
        "--url",
        url,
        "--if-absent",
    ];
    assert_eq!(world.server.run(&taken).code, Some(1));
}

#[test]
fn ids_and_payloads_of_every_script_pass_through_unharmed() {
    let world = world();
    let long = "\u{1f600}".repeat(128);
    let ids = [
        "\u{1f422} turtle",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "100%2F5",
        "a:fire-now",
        "?q=1&x#y",
        &long,
    ];
    for id in ids {
        let payload = json!({ "id": id }).to_string();
        let created = world.create(id, &["--in", "1h", "--payload", &payload]);
        assert_eq!(created["id"], id);
        assert_eq!(world.get(id)["payload"], json!({ "id": id }));
        let fired = world
            .server
            .run(&["timer", "fire", "orders", id, "--output", "json"])
            .json();
        assert_eq!(
            (&fired["id"], &fired["generation"]),
            (&json!(id), &created["generation"])
        );
    }
    let deliveries = world.receiver.wait_for_deliveries(ids.len());
    let mut delivered: Vec<String> = deliveries.iter().map(|d| d.timer_id()).collect();
    delivered.sort_unstable();
    let mut expected = ids.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(delivered, expected);
}

#[test]
fn a_list_follows_pages_up_to_its_limit_and_says_where_to_go_on() {
    let world = world();
    for number in 0..5 {
        world.create(&format!("t{number}"), &["--in", "1h"]);
    }
    let list = |flags: &[&str]| {
        let mut arguments = vec!["timer", "list", "orders"];
        arguments.extend(flags);
        world.server.run(&arguments)
    };
    let ids = |page: &Value| -> Vec<String> {
        let timers = page["timers"].as_array().expect("a list");
        timers
            .iter()
            .map(|timer| timer["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let first = list(&["--prefix", "t", "--limit", "3", "--output", "json"]).json();
    assert_eq!(ids(&first), ["t0", "t1", "t2"]);
    let token = first["next_page_token"].as_str().expect("a token");
    let rest = ["--prefix", "t", "--page-token", token, "--output", "json"];
    let second = list(&rest).json();
    assert_eq!(
        (ids(&second), second.get("next_page_token")),
        (vec!["t3".into(), "t4".into()], None)
    );

    let table = list(&["--prefix", "t", "--limit", "3"]);
    assert!(table.stderr.contains("--page-token"), "{}", table.stderr);
    assert_eq!(table.ok().lines().count(), 4);
    let none = list(&["--prefix", "nothing"]);
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "no timers\n")
    );
    let waiting = list(&[
        "--state",
        "pending",
        "--due-before",
        "2000-01-01T00:00:00Z",
        "--output",
        "json",
    ]);
    assert_eq!(waiting.json(), json!({ "timers": [] }));
    let partitions = world
        .server
        .run(&["partition", "list", "--output", "json"])
        .json();
    assert_eq!(
        partitions,
        json!({ "partitions": [{ "partition": "orders" }] })
    );
}

#[test]
fn dead_letters_are_listed_requeued_one_by_one_and_all_and_purged() {
    let world = world();
    world.receiver.answer(410);
    for id in ["a", "b", "c"] {
        world.create(id, &["--in", "0s"]);
    }
    let ids = world.dead_ids(3);
    let table = world.server.run(&["dead", "list", "orders"]).ok();
    assert!(
        table.contains("LAST ERROR") && table.contains("410"),
        "{table}"
    );

    world.receiver.answer(200);
    let requeued = world
        .server
        .run(&["dead", "requeue", "orders", &ids[0]])
        .ok();
    assert_eq!(requeued, format!("requeued {}\n", ids[0]));
    world.receiver.wait_for_deliveries(4);
    let purged = world.server.run(&["dead", "purge", "orders", &ids[1]]).ok();
    assert_eq!(purged, format!("purged {}\n", ids[1]));
    let all = world
        .server
        .run(&["dead", "requeue", "orders", "--all", "--output", "json"])
        .json();
    assert_eq!(all, json!({ "done": 1, "left": 0 }));
    world.receiver.wait_for_deliveries(5);
    world.dead_ids(0);
    let gone = world.server.run(&["dead", "purge", "orders", &ids[1]]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("(404 "), "{}", gone.stderr);
}

#[test]
fn a_refusal_names_each_field_and_programs_get_the_document() {
    let world = world();
    let wrong = [
        "timer",
        "create",
        "orders",
        "a",
        "--in",
        "soon",
        "--url",
        "http://user:secret@example.com/",
    ];
    let people = world.server.run(&wrong);
    assert_eq!((people.code, people.stdout.as_str()), (Some(1), ""));
    for flag in ["--in: ", "--url: "] {
        assert!(people.stderr.contains(flag), "{}", people.stderr);
    }
    let mut for_programs = wrong.to_vec();
    for_programs.extend(["--output", "json"]);
    let refusal = world.server.run(&for_programs).stderr;
    let document: Value = serde_json::from_str(&refusal).expect("a document");
    assert_eq!(document["status"], 422);
    assert_eq!(
        document["errors"].as_array().map(Vec::len),
        Some(2),
        "{document:#}"
    );
}

#[test]
fn a_url_without_a_scheme_is_told_how_it_begins() {
    let world = world();
    for url in ["example.com/hook", "localhost:3000", "example.com:80/hook"] {
        let create = ["timer", "create", "orders", "a", "--in", "1h", "--url", url];
        let refused = world.server.run(&create);
        assert_eq!(refused.code, Some(1), "{url}");
        let told = refused.stderr.contains("--url: ");
        assert!(
            told && refused.stderr.contains("begin it with https://"),
            "{url}: {}",
            refused.stderr
        );
    }
}
