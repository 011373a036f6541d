use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use dueline::memory::MemoryStore;
use dueline::store::{LaneWake, NamespaceStore, Partition, WakeStore};
use dueline::timers::{ClaimedCall, Engine, TickBudget, TickRequest};
use dueline_server::fuzzing::{Api, Receiver, handlers};
use dueline_testkit::{ManualClock, block_on, test_runtime};
use http::header::{ETAG, HOST, HeaderValue, LOCATION};
use http::{Method, Request, Response, Uri};
use serde_json::Value;

use super::Answering;
use super::checks::{answer_is_sound, deliveries_are_sound, found_is_what_was_made, json};

/// 2027-01-31T09:00:00Z.
const NOW_MS: i64 = 1_801_386_000_000;

/// A server without a socket, and the receiver of its webhooks.
pub(super) struct World {
    api: Api,
    engine: Engine,
    pub(super) store: Arc<MemoryStore>,
    clock: ManualClock,
    pub(super) receiver: Receiver,
    answering: Answering,
    latest: BTreeMap<&'static str, String>,
    pub(super) reached: BTreeSet<String>,
}

impl World {
    pub(super) fn new(answering: Answering) -> Self {
        let clock = ManualClock::new(NOW_MS);
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let verbs = Arc::clone(&store) as Arc<dyn NamespaceStore>;
        let receiver = Receiver::default();
        let handlers = handlers(receiver.clone()).expect("a handler for each kind");
        let engine = Engine::new(verbs, test_runtime(&clock), handlers);
        let api = Api::new(engine.timers().clone(), Arc::clone(&store) as _);
        Self {
            api: api.expect("a runtime"),
            engine,
            store,
            clock,
            receiver,
            answering,
            latest: BTreeMap::new(),
            reached: BTreeSet::new(),
        }
    }

    /// A step with the latest id of a dead letter, entity tag and page token put in.
    pub(super) fn filled_in(&self, written: &str) -> String {
        let mut filled_in = written.to_owned();
        for (place, latest) in &self.latest {
            filled_in = filled_in.replace(place, latest);
        }
        filled_in
    }

    pub(super) fn wait(&self, by_ms: u64) {
        self.clock.advance_ms(by_ms);
    }

    pub(super) fn wait_until(&self, at_ms: u64) {
        let now_ms = self.engine.runtime().now_ms();
        self.wait(at_ms.saturating_sub(now_ms));
    }

    /// Sends a request and holds its answer to what is promised.
    pub(super) fn request(&mut self, request: Request<Vec<u8>>, written: &str) {
        let makes_a_timer = [Method::PUT, Method::PATCH, Method::POST].contains(request.method());
        let has_body = request.method() != Method::HEAD;
        let what = format!("{} {}", request.method(), resource(request.uri()));
        let answer = self.answer_to(request, written);
        self.reached
            .insert(format!("{what} {}", answer.status().as_u16()));
        if let Some(code) = answer_is_sound(&answer, has_body, written) {
            self.reached.insert(code);
        }
        self.remember(&answer, written);
        if makes_a_timer && answer.status().is_success() && answer.headers().contains_key(ETAG) {
            let Some(location) = answer.headers().get(LOCATION) else {
                return;
            };
            let found = self.read(location.to_str().expect("a path"));
            found_is_what_was_made(&found, &answer, written);
        }
        self.wait(1);
    }

    fn answer_to(&self, request: Request<Vec<u8>>, written: &str) -> Response<Bytes> {
        (self.answering)(&self.api, request)
            .unwrap_or_else(|| panic!("an answer without an end: {written:?}"))
    }

    /// Reads a resource.
    pub(super) fn read(&self, path: &str) -> Response<Bytes> {
        let mut request = Request::new(Vec::new());
        *request.uri_mut() = path.parse().expect("a path");
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        self.answer_to(request, path)
    }

    fn remember(&mut self, answer: &Response<Bytes>, written: &str) {
        if let Some(tag) = answer.headers().get(ETAG) {
            let tag = tag.to_str().expect("a tag").to_owned();
            self.latest.insert("{etag}", tag);
        }
        if !answer.status().is_success() || answer.body().is_empty() {
            return;
        }
        let shown = json(answer, written);
        let dead = &shown["dead_letters"][0]["dead_id"];
        for (place, found) in [("{dead}", dead), ("{token}", &shown["next_page_token"])] {
            if let Value::String(text) = found {
                self.latest.insert(place, text.clone());
            }
        }
    }

    /// Delivers what is due.
    pub(super) fn deliver(&mut self) {
        for call in self.tick() {
            let finished = block_on(call.run());
            let _counts = block_on(self.engine.settle(finished));
        }
        let unsendable = self.receiver.unsendable();
        assert!(unsendable.is_empty(), "taken, but not sent: {unsendable:?}");
        deliveries_are_sound(&self.receiver.deliveries());
    }

    /// Claims what is due, and crashes.
    pub(super) fn claim(&self) {
        drop(self.tick());
    }

    fn tick(&self) -> Vec<ClaimedCall> {
        let kinds = self.engine.registry().kinds();
        let now_ms = self.engine.runtime().now_ms();
        let page = block_on(self.store.due_wakes(&kinds, now_ms, None, 1_000));
        let mut partitions: BTreeMap<Partition, Vec<LaneWake>> = BTreeMap::new();
        for wake in page.expect("a sound store").wakes {
            let (kind, at_ms) = (wake.kind, wake.at_ms);
            let lanes = partitions.entry(wake.partition).or_default();
            lanes.push(LaneWake { kind, at_ms });
        }
        let mut calls = Vec::new();
        for (partition, wakes) in &partitions {
            let request = TickRequest {
                partition,
                wakes: Some(wakes),
                cautious_until_ms: None,
            };
            let mut state = self.engine.start_tick(TickBudget::native());
            calls.extend(block_on(self.engine.tick(request, &mut state)).calls);
        }
        calls
    }
}

/// The kind of resource that a path names: its fixed words, and a star for each name.
fn resource(uri: &Uri) -> String {
    let path = uri.path().trim_start_matches('/');
    let mut words: Vec<String> = Vec::new();
    for (place, word) in path.split('/').enumerate() {
        let verb = word.rsplit_once(':').map(|(_, verb)| verb);
        words.push(match (place, verb) {
            (2, _) => "*".to_owned(),
            (4, Some(verb)) => format!("*:{verb}"),
            (4, None) => "*".to_owned(),
            _ => word.to_owned(),
        });
    }
    words.join("/")
}
