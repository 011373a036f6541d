//! The writer's queue and the way of an answer.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::driver::signal::block_on;
use super::explore;
use super::store::inbox::{Inbox, Push, Refused, Woken};
use super::store::oneshot::oneshot;
use super::sync::{Arc, Mutex, PoisonError};
use super::thread;
use crate::model::Model;

pub(crate) const AN_ANSWER_OR_ITS_END_ARRIVES: Model = Model {
    name: "an_answer_or_its_end_arrives",
    bugs: &["answer_takes_the_waker_first"],
    explore: |effort| {
        explore(4, effort, || answer_arrives(true)) + explore(4, effort, || answer_arrives(false))
    },
};

/// One thread answers, or drops the way back; the other has polled before with another waker.
fn answer_arrives(sent: bool) {
    let (answer, awaited) = oneshot();
    let thread = thread::spawn(move || {
        if sent {
            answer.send(7);
        }
    });
    let expected = sent.then_some(7);
    let mut awaited = pin!(awaited);
    let before = awaited
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    let came = match before {
        Poll::Ready(came) => came,
        Poll::Pending => block_on(awaited, &Arc::default()),
    };
    assert_eq!(came, expected);
    assert!(thread.join().is_ok());
}

/// Pushes, waiting for room; whether it was taken.
fn push(inbox: &Inbox<u32>, item: u32) -> bool {
    let pushed = poll_fn(
        |context| match inbox.push(item, Push::Eager, context.waker()) {
            Ok(()) => Poll::Ready(true),
            Err(Refused::Closed(_)) => Poll::Ready(false),
            Err(Refused::Full(_)) => Poll::Pending,
        },
    );
    block_on(pushed, &Arc::default())
}

/// Serves one item at a time until the queue is closed.
fn serve(inbox: &Inbox<u32>) -> Vec<u32> {
    let mut served = Vec::new();
    loop {
        let woken = inbox.wait(None);
        let mut left = 1;
        served.extend(inbox.take(|_| {
            left -= 1;
            left >= 0
        }));
        if woken == Woken::Closed {
            return served;
        }
    }
}

pub(crate) const WHAT_IS_QUEUED_IS_SERVED: Model = Model {
    name: "what_is_queued_is_served",
    bugs: &[
        "what_is_left_in_the_queue_is_forgotten",
        "push_wakes_without_saying_why",
        "close_wakes_nobody",
    ],
    explore: |effort| {
        explore(3, effort, || what_is_queued_is_served(1))
            + explore(3, effort, || what_is_queued_is_served(2))
    },
};

/// Two threads push; each item is served before anybody closes the queue.
fn what_is_queued_is_served(capacity: usize) {
    let inbox = Arc::new(Inbox::new(capacity));
    let of_server = Arc::clone(&inbox);
    let done = Arc::new(super::driver::signal::Signal::default());
    let (told, served) = (Arc::clone(&done), Arc::new(Mutex::new(Vec::new())));
    let of_pushes = Arc::clone(&served);
    let server = thread::spawn(move || {
        loop {
            if of_server.wait(None) == Woken::Closed {
                break;
            }
            let mut left = 1;
            let taken = of_server.take(|_| {
                left -= 1;
                left >= 0
            });
            let mut served = of_pushes.lock().unwrap_or_else(PoisonError::into_inner);
            served.extend(taken);
            if served.len() == 2 {
                told.raise();
            }
        }
    });
    let of_other = Arc::clone(&inbox);
    let other = thread::spawn(move || assert!(push(&of_other, 1)));
    assert!(push(&inbox, 2));
    done.wait();
    inbox.close();
    assert!(other.join().is_ok() && server.join().is_ok());
    let mut served = std::mem::take(&mut *served.lock().unwrap_or_else(PoisonError::into_inner));
    served.sort_unstable();
    assert_eq!(served, [1, 2]);
}

pub(crate) const A_CLOSED_QUEUE_SERVES_OR_REFUSES: Model = Model {
    name: "a_closed_queue_serves_or_refuses",
    bugs: &["close_wakes_nobody"],
    explore: |effort| explore(3, effort, a_closed_queue_serves_or_refuses),
};

/// A queue with room for one is closed while a thread pushes twice: each item is served once, or
/// refused.
fn a_closed_queue_serves_or_refuses() {
    let inbox = Arc::new(Inbox::new(1));
    let (of_server, of_pushes) = (Arc::clone(&inbox), Arc::clone(&inbox));
    let pushes = thread::spawn(move || [1, 2].map(|item| push(&of_pushes, item).then_some(item)));
    let closing = thread::spawn(move || inbox.close());
    let served = serve(&of_server);
    assert!(closing.join().is_ok());
    let taken = pushes.join().unwrap_or_default();
    let taken: Vec<u32> = taken.into_iter().flatten().collect();
    assert_eq!(served, taken);
}
