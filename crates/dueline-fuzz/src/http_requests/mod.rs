//! Requests to a server, with deliveries in between.

mod checks;
mod rest;
mod step;
mod world;

use std::collections::BTreeSet;

use bytes::Bytes;
use dueline_server::fuzzing::Api;
use http::{Request, Response};

use step::{BETWEEN, Step};
use world::World;

const STEPS_MAX: usize = 16;

/// How a request is answered; `None` for an answer without an end.
pub type Answering = fn(&Api, Request<Vec<u8>>) -> Option<Response<Bytes>>;

/// Requests to one server, as they are written down: a line of method and path, lines of headers, an
/// empty line, a body; `---` between two. In between time passes (`wait 60000`), the receiver of the
/// webhooks changes its mind (`answer 503 120`: a status and a `Retry-After`), and what is due is
/// delivered (`deliver`) or claimed by a process that crashes (`claim`). `{dead}`, `{etag}` and `{token}`
/// in a request stand for the latest of an answer.
///
/// Each request is answered by something sound, and never by a fault of the server's own; a timer that
/// was made is found where the answer says, as the answer shows it; what was taken can be sent; nothing
/// is accepted twice. In the end lists by small pages show what one large page shows, and once
/// everything is accepted nothing is left.
///
/// # Panics
/// If one of these is not so.
pub fn http_requests(data: &[u8]) {
    let _reached = http_requests_answered(data, Api::answer);
}

/// [`http_requests`], answered in a way that may be wrong. Returns what was reached: method, kind of
/// resource and status of every request, and the code of every problem.
///
/// # Panics
/// As [`http_requests`].
pub fn http_requests_answered(data: &[u8], answering: Answering) -> BTreeSet<String> {
    let Ok(text) = std::str::from_utf8(data) else {
        return BTreeSet::new();
    };
    let mut world = World::new(answering);
    for written in text.split(BETWEEN).take(STEPS_MAX) {
        let written = world.filled_in(written);
        match Step::read(&written) {
            Some(Step::Wait(by_ms)) => world.wait(by_ms),
            Some(Step::Answer(status, retry_after)) => world.receiver.answer(status, retry_after),
            Some(Step::Deliver) => world.deliver(),
            Some(Step::Claim) => world.claim(),
            Some(Step::Request(request)) => world.request(*request, &written),
            None => {}
        }
    }
    world.come_to_rest();
    world.reached
}
