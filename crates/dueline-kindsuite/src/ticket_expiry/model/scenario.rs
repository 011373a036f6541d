//! The same rules and requests for whoever else plays scenarios.

use std::sync::{Arc, Mutex, OnceLock};

use dueline::kinds::ticket_expiry::{Counted, TICKET_EXPIRY, TicketId};
use dueline::store::Partition;
use dueline::timers::{Registration, TimerKind, Timers};
use dueline_testkit::model::Random;

use super::checker::Checker;
use super::client::{Request, Told};
use super::process::{Aborted, tickets_over};
use crate::storm::{Ask, Change, Rows, Scenario, Tally};

/// What is drawn by the first process.
#[derive(Clone, Copy)]
struct Drawn {
    has_sessions: bool,
    damages: bool,
}

struct Counter {
    tally: Tally,
    checker: Checker,
    told: Arc<Mutex<Vec<Told>>>,
    aborted: Aborted,
    drawn: OnceLock<Drawn>,
}

/// Tickets of two resources and two actors are opened, extended and ended by clients.
pub fn scenario(tally: &Tally) -> Box<dyn Scenario> {
    Box::new(Counter {
        tally: tally.clone(),
        checker: Checker::new(),
        told: Arc::default(),
        aborted: Arc::default(),
        drawn: OnceLock::new(),
    })
}

impl Scenario for Counter {
    fn kinds(&self, timers: &Timers) -> Vec<(TimerKind, Registration)> {
        let mut random = Random::new(timers.runtime().random_u64());
        let drawn = self.drawn.get_or_init(|| Drawn {
            has_sessions: random.chance(50),
            damages: random.chance(40),
        });
        let aborted = drawn.has_sessions.then_some(&self.aborted);
        let registration = tickets_over(timers.clone(), aborted).registration();
        let registration = registration.group_max(random.pick(&[1, 2, 8, 64]));
        vec![(TICKET_EXPIRY, registration)]
    }

    /// A ticket that was found expired and is not yet closed would have time again.
    fn needs_growing_store_time(&self) -> bool {
        true
    }

    fn ask(&mut self, random: &mut Random, client: &Timers, partition: &Partition) -> Ask {
        let known: Vec<TicketId> = {
            let told = self.told.lock().unwrap();
            let opened = told.iter().filter_map(|told| match told {
                Told::Opened(id) => Some(*id),
                _ => None,
            });
            opened.collect()
        };
        let damages = self.drawn.get().is_some_and(|drawn| drawn.damages);
        let request = Request::random(random, &known, damages);
        let has_sessions = self.drawn.get().is_some_and(|drawn| drawn.has_sessions);
        let aborted = has_sessions.then_some(&self.aborted);
        let tickets = tickets_over(client.clone(), aborted);
        let (told, partition) = (Arc::clone(&self.told), partition.clone());
        Box::pin(async move {
            let said = request.send(tickets, partition).await;
            told.lock().unwrap().push(said);
        })
    }

    fn judge(&mut self, change: &Change<'_>) -> Vec<String> {
        let was_ended = self.checker.ended.len();
        let was_aside = self.checker.set_aside;
        let rows = change.after.iter().chain(change.timers);
        self.checker.committed(rows, change.now_ms);
        if self.checker.ended.len() > was_ended {
            self.tally.count("a ticket ends");
        }
        if self.checker.set_aside > was_aside {
            self.tally.count("a ticket is set aside");
        }
        std::mem::take(&mut self.checker.broken)
    }

    /// What the histories have damaged is counted anew.
    fn mend(&mut self, client: &Timers, partition: &Partition) -> Option<Ask> {
        let tickets = tickets_over(client.clone(), None);
        let partition = partition.clone();
        Some(Box::pin(async move {
            let resources = ["seat", "stall"].map(|name| Counted::Resource(name.into()));
            let actors = ["alice", "bob"].map(|name| Counted::Actor(name.into()));
            for counted in resources.into_iter().chain(actors) {
                let recounted = tickets.recount(&partition, &counted).await;
                assert!(recounted.is_ok(), "{recounted:?}");
            }
        }))
    }

    fn judge_end(&mut self, rows: &Rows) -> Vec<String> {
        self.checker.check_quiet(rows);
        let told = self.told.lock().unwrap();
        let aborted = self.aborted.lock().unwrap();
        let has_sessions = self.drawn.get().is_some_and(|drawn| drawn.has_sessions);
        self.checker.check_told(&told, &aborted, has_sessions);
        std::mem::take(&mut self.checker.broken)
    }
}
