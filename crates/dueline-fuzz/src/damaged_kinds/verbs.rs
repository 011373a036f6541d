//! Every verb, asked of the record that is damaged.

use dueline::BoxFuture;
use dueline::kinds::quota_rollup::Limits;
use dueline::kinds::test_kind::successes;
use dueline::kinds::ticket_expiry::Counted;
use dueline::store::{Batch, BatchOutcome, Key, NamespaceStore, StoreErrorKind};
use dueline::timers::TimerError;
use dueline_testkit::block_on;

use super::parts::dependencies;
use super::world::{
    DAMAGED, TERM_MS, World, decodes, hold, message, outcome, owner, partition, terms,
};
use crate::script::Script;

type Answer = Result<(), TimerError>;

/// A verb, the rows without which it can say nothing, and whether it says something if these decode.
struct Verb<'a> {
    name: &'static str,
    needs: Vec<(&'static str, Key)>,
    says_all: bool,
    asked: BoxFuture<'a, Answer>,
}

impl<'a> Verb<'a> {
    fn new<T>(
        name: &'static str,
        asked: impl Future<Output = Result<T, TimerError>> + Send + 'a,
    ) -> Self {
        Self {
            name,
            needs: Vec::new(),
            says_all: false,
            asked: Box::pin(async move { asked.await.map(|_| ()) }),
        }
    }

    fn needs(mut self, partition: &'static str, keys: impl IntoIterator<Item = Key>) -> Self {
        self.needs
            .extend(keys.into_iter().map(|key| (partition, key)));
        self
    }

    fn says_all(mut self) -> Self {
        self.says_all = true;
        self
    }
}

fn row(kind: u8, letter: u8, tail: &[u8]) -> Key {
    Key::from([&[b'b', 0, kind, letter], tail].concat())
}

fn of_name(kind: u8, letter: u8) -> Key {
    row(kind, letter, DAMAGED.as_bytes())
}

impl World {
    /// Asks a verb of the damaged record, and judges the answer.
    pub(super) fn ask(&mut self, script: &mut Script<'_>) {
        let ended = self.asked(script);
        self.reached.insert(ended);
    }

    fn asked(&self, script: &mut Script<'_>) -> String {
        let (group, which, number) = (script.next() % 6, script.next(), script.next());
        let verb = match group {
            0 => self.of_leases(which, u64::from(number % 4)),
            1 => self.of_tickets(which),
            2 => self.of_ticket_repairs(which, number),
            3 => self.of_quotas(which),
            4 => self.of_outboxes_and_tests(which, u64::from(number % 4)),
            _ => self.of_reservations_and_records(which, number),
        };
        let Verb {
            name,
            needs,
            says_all,
            asked,
        } = verb;
        let before = self.rows();
        let broken = needs.iter().any(|(of, key)| {
            let place = (partition(of), key.clone());
            before.get(&place).is_some_and(|value| !decodes(key, value))
        });
        let answer = (self.meddling.told)(block_on(asked));
        let corrupt = match &answer {
            Ok(()) => false,
            Err(TimerError::Store(error)) => {
                assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{name}: {error}");
                true
            }
            Err(TimerError::Invalid(text)) => {
                assert!(!text.is_empty(), "{name}: refused without a word");
                false
            }
            // A timer of the record may be running, or be gone.
            Err(TimerError::Claimed { .. } | TimerError::NotFound) if group == 5 => false,
            Err(error) => panic!("{name}: {error}"),
        };
        assert!(corrupt || !broken, "{name}: {answer:?} of a damaged row");
        assert!(
            !corrupt || broken || !says_all,
            "{name}: {answer:?} of rows that decode"
        );
        let told = match answer {
            Ok(()) => "done",
            Err(_) if corrupt => "corrupt",
            Err(_) => "refused",
        };
        // By hand a ticket is discarded, and what is counted is counted anew, whatever lies there.
        self.judge_kept(&before, |kind| kind != 2 || group != 2);
        format!("{name} {told}")
    }

    fn of_leases(&self, which: u8, epoch: u64) -> Verb<'_> {
        let (leases, home, name) = (&self.leases, &self.home, &self.damaged.lease);
        let verb = match which % 5 {
            0 => Verb::new("read a lease", leases.read(home, name)),
            1 => Verb::new("grant a lease", async move {
                leases.grant(home, name, &owner(), TERM_MS).await
            }),
            2 => Verb::new("renew a lease", leases.renew(home, name, epoch, TERM_MS)),
            3 => Verb::new("release a lease", leases.release(home, name, epoch)),
            _ => Verb::new("forget a lease", async move {
                let planned = leases.plan_forget(&*self.store, home, name).await?;
                planned.apply(&*self.store, home).await
            }),
        };
        verb.needs("p", [of_name(1, b'l'), of_name(1, b'e')])
    }

    fn of_tickets(&self, which: u8) -> Verb<'_> {
        let (tickets, home, id) = (&self.tickets, &self.home, self.damaged.ticket);
        let its_row = [row(2, b't', id.as_bytes())];
        match which % 7 {
            0 => Verb::new("read a ticket", tickets.read(home, id))
                .needs("p", its_row)
                .says_all(),
            1 => Verb::new("find a ticket", tickets.find(home, DAMAGED))
                .needs("p", [of_name(2, b'i')]),
            2 => Verb::new("open a ticket", async move {
                tickets.open(home, &hold(DAMAGED)).await
            })
            .needs("p", [of_name(2, b'i'), of_name(2, b'r'), of_name(2, b'a')]),
            3 => Verb::new("consume a ticket", tickets.consume(home, id)).needs("p", its_row),
            4 => Verb::new("release a ticket", tickets.release(home, id)).needs("p", its_row),
            5 => {
                let extend = tickets.extend(home, id, 2 * TERM_MS);
                Verb::new("extend a ticket", extend).needs("p", its_row)
            }
            _ => Verb::new("cancel a ticket", tickets.cancel(home, id)).needs("p", its_row),
        }
    }

    fn of_ticket_repairs(&self, which: u8, number: u8) -> Verb<'_> {
        let (tickets, home, id) = (&self.tickets, &self.home, self.damaged.ticket);
        let limit = 1 + usize::from(number % 3);
        let resource = Counted::Resource(DAMAGED.into());
        let counted = if number.is_multiple_of(2) {
            resource.clone()
        } else {
            Counted::Actor(DAMAGED.into())
        };
        match which % 6 {
            0 => Verb::new("list tickets", async move {
                let (mut after, mut seen) = (None, 0_usize);
                loop {
                    let page = tickets.list(home, after, limit).await?;
                    seen += page.tickets.len() + page.unreadable.len();
                    after = page.next;
                    if after.is_none() {
                        return Ok(seen);
                    }
                    assert!(seen < 1_000, "a list without an end");
                }
            })
            .says_all(),
            1 => Verb::new("list what is set aside", async move {
                tickets.set_aside(home, None, limit).await
            })
            .says_all(),
            2 => Verb::new("retry a ticket", tickets.retry(home, id)),
            3 => Verb::new("discard a ticket", tickets.discard(home, id)),
            4 => Verb::new("recount tickets", async move {
                tickets.recount(home, &counted).await
            })
            .says_all(),
            _ => Verb::new("count tickets", async move {
                tickets.open_count(home, &resource).await
            })
            .needs("p", [of_name(2, b'r')])
            .says_all(),
        }
    }

    fn of_quotas(&self, which: u8) -> Verb<'_> {
        let quotas = &self.damaged.quotas;
        let window = quotas.quota().window_at(self.timers.runtime().now_ms());
        let (length, start) = (
            window.length_ms.to_be_bytes(),
            window.start_ms.to_be_bytes(),
        );
        let name = DAMAGED.as_bytes();
        let place = [&[1], name, &length[..], &start[..]].concat();
        let limits = Limits::new([u64::MAX, 100], [u64::MAX, 10]);
        let (usage, total) = (row(5, b'u', &place), row(5, b't', &place));
        let (home, coordinator) = (&self.home, &self.coordinator);
        match which % 5 {
            0 => Verb::new("charge", quotas.charge(home, [1, 2])).needs("p", [usage]),
            1 => Verb::new("charge within limits", async move {
                quotas.charge_within(home, [1, 2], &limits).await
            })
            .needs("p", [usage]),
            2 => Verb::new("read a usage", quotas.usage(home))
                .needs("p", [usage])
                .says_all(),
            3 => Verb::new("charge the coordinator", quotas.charge(coordinator, [1]))
                .needs("c", [total]),
            _ => Verb::new("read a total", quotas.total(window))
                .needs("c", [total])
                .says_all(),
        }
    }

    fn of_outboxes_and_tests(&self, which: u8, sequence: u64) -> Verb<'_> {
        let outbox = &self.damaged.outbox;
        let (state, gone) = (of_name(8, b's'), of_name(8, b'g'));
        match which % 11 {
            0 => Verb::new("append an outcome", async move {
                let prefix = ["", "!", "?"][sequence as usize % 3];
                outbox.append(&[outcome(format!("{prefix}more"))]).await
            })
            .needs("p", [state]),
            1 => Verb::new("wake an outbox", outbox.wake()).needs("p", [state]),
            2 => Verb::new("read a backlog", outbox.backlog())
                .needs("p", [state, gone])
                .says_all(),
            3 => Verb::new("list outcomes", outbox.waiting(sequence.checked_sub(1), 1)).says_all(),
            4 => Verb::new(
                "list dead outcomes",
                outbox.dead(sequence.checked_sub(1), 1),
            )
            .says_all(),
            5 => Verb::new("requeue an outcome", outbox.requeue(sequence)),
            6 => Verb::new("purge an outcome", outbox.purge(sequence)).says_all(),
            7 => Verb::new(
                "set an outcome aside",
                outbox.set_aside(sequence, "by hand"),
            ),
            8 => Verb::new("append to a relay", async move {
                self.damaged.relay.append(&[message(DAMAGED)]).await
            })
            .needs("p", [row(8, b's', b"a-relay")]),
            9 => Verb::new("set aside of a relay", async move {
                self.damaged.relay.set_aside(sequence, "by hand").await
            }),
            _ => Verb::new("count successes", async move {
                Ok(successes(&*self.store, &self.home, DAMAGED).await?)
            })
            .needs("p", [of_name(255, b'd')])
            .says_all(),
        }
    }

    fn of_reservations_and_records(&self, which: u8, number: u8) -> Verb<'_> {
        let (reservations, home) = (&self.reservations, &self.home);
        let (id, serial) = (&self.damaged.reservation, self.damaged.serial);
        let record = Key::from(DAMAGED);
        let verb = match which % 9 {
            0 => Verb::new("read a reservation", reservations.read(home, id)).says_all(),
            1 => Verb::new("reserve", async move {
                reservations.reserve(home, id, &terms(DAMAGED)).await
            }),
            2 => Verb::new("commit", reservations.commit(home, id, serial)),
            3 => Verb::new("abort", reservations.abort(home, id, serial, "so")),
            4 => Verb::new("extend a reservation", async move {
                let detail = "more".into();
                let extended = reservations.extend(home, id, serial, detail, TERM_MS);
                extended.await
            }),
            5 => Verb::new(
                "forget a reservation",
                reservations.forget(home, id, serial),
            ),
            6 => return self.visible(number),
            7 => {
                return Verb::new("look at a record", async move {
                    let planned = self.rechecks.plan(home, &record).await?;
                    planned.apply(&*self.store, home).await
                });
            }
            _ => {
                return Verb::new("look at a record now", async move {
                    self.rechecks.look_now(home, &record).await
                });
            }
        };
        verb.needs("p", [of_name(9, b'r')])
    }

    /// What the damaged record waits for is there, or some of it.
    fn visible(&self, number: u8) -> Verb<'_> {
        Verb::new("make visible", async move {
            let all = dependencies(DAMAGED.as_bytes());
            for of in all.into_iter().take(1 + usize::from(number % 3)) {
                let there = Batch::new().put(of.key, "here");
                let outcome = NamespaceStore::apply(&*self.store, &of.partition, there);
                assert_eq!(outcome.await?, BatchOutcome::Committed);
            }
            Ok(())
        })
    }
}
