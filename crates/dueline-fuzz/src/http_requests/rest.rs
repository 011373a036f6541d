//! The end of a history: what the lists say, and that nothing is left once everything is accepted.

use http::StatusCode;
use serde_json::Value;

use super::checks::json;
use super::world::World;

/// More than any history needs: a timer that is accepted is gone.
const LOOKS_MAX: usize = 4_000;
const PAGES_MAX: usize = 4_000;
/// The clock does not pass this time: in the last moments of the calendar no claim has room for its end.
const END: &str = "9999-12-01T00:00:00.000Z";
const END_MS: u64 = 253_399_622_400_000;

impl World {
    /// Lists agree with one another and with what is read alone. Then every delivery is accepted, and
    /// all that is left is dead.
    pub(super) fn come_to_rest(&mut self) {
        let partitions = self.all("/v1/partitions?", "partitions", 1);
        let paths: Vec<String> = partitions.iter().map(path_of).collect();
        for path in &paths {
            self.lists_agree(path);
        }
        self.receiver.answer(StatusCode::OK, None);
        self.work_off();
        for path in &paths {
            let mut left = self.all(&format!("{path}/timers?"), "timers", 1_000);
            left.retain(|timer| timer["state"] != "dead" && is_before_the_end(timer));
            assert!(left.is_empty(), "never delivered: {left:?}");
        }
    }

    fn lists_agree(&self, partition: &str) {
        for (list, of) in [
            ("timers?", "timers"),
            ("timers?state=pending,retrying,claimed&", "timers"),
            ("dead-letters?", "dead_letters"),
        ] {
            let path = format!("{partition}/{list}");
            let by_small_pages = self.all(&path, of, 1);
            assert_eq!(by_small_pages, self.all(&path, of, 1_000), "{path}");
            for timer in by_small_pages.iter().filter(|_| of == "timers") {
                let path = format!("{partition}/timers/{}", encoded(&timer["id"]));
                let alone = json(&self.read(&path), &path);
                assert_eq!(alone, *timer, "{path}");
            }
        }
    }

    /// Every row of a list, read by pages of this size.
    fn all(&self, list: &str, of: &str, page_size: usize) -> Vec<Value> {
        let first = format!("{list}page_size={page_size}");
        let mut path = first.clone();
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = self.read(&path);
            assert_eq!(answer.status(), StatusCode::OK, "{path}");
            let mut page = json(&answer, &path);
            let rows = page[of].as_array_mut().expect("a list");
            assert!(rows.len() <= page_size, "{path}");
            found.append(rows);
            match page["next_page_token"].as_str() {
                Some(token) => path = format!("{first}&page_token={token}"),
                None => return found,
            }
        }
        panic!("{first} has no end");
    }

    fn work_off(&mut self) {
        for _ in 0..LOOKS_MAX {
            match self.store.wakes().first() {
                Some(wake) if wake.at_ms < END_MS => self.wait_until(wake.at_ms),
                _ => return,
            }
            self.deliver();
        }
        panic!("there is always another wake: {:?}", self.store.wakes());
    }
}

fn is_before_the_end(timer: &Value) -> bool {
    timer["due_at"].as_str().is_some_and(|due| due < END)
}

fn path_of(partition: &Value) -> String {
    format!("/v1/partitions/{}", encoded(&partition["partition"]))
}

/// A name with every byte percent-encoded.
fn encoded(name: &Value) -> String {
    let name = name.as_str().expect("a name");
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
