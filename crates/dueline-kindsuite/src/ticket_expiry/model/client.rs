//! What a client of a history asks, and what it was told.

use bytes::Bytes;
use dueline::kinds::ticket_expiry::{
    Changed, Counted, Hold, Opened, TICKET_EXPIRY, TicketId, Tickets,
};
use dueline::store::{Batch, Key, Partition};
use dueline::timers::TimerError;
use dueline_testkit::model::Random;

use super::process::{ACTOR_MAX, RESOURCE_MAX};

/// A request.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Open(Hold),
    Consume(TicketId),
    Release(TicketId),
    Extend(TicketId, u64),
    Cancel(TicketId),
    Damage(Key),
    Recount(Counted),
    RetryAll,
}

/// What a client was told for certain.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Opened(TicketId),
    Ended(TicketId, &'static str),
    Nothing,
}

fn resource(random: &mut Random) -> Bytes {
    random.pick(&["seat", "stall"]).into()
}

fn actor(random: &mut Random) -> Bytes {
    random.pick(&["alice", "bob"]).into()
}

pub(super) fn counted(random: &mut Random) -> Counted {
    if random.chance(50) {
        Counted::Resource(resource(random))
    } else {
        Counted::Actor(actor(random))
    }
}

impl Request {
    /// A request about one of the tickets that were opened so far.
    pub(super) fn random(random: &mut Random, known: &[TicketId], damages: bool) -> Self {
        let last = known.len().saturating_sub(4);
        let recent = &known[last..];
        match random.below(100) {
            _ if recent.is_empty() => Self::open(random),
            0..34 => Self::open(random),
            34..56 => Self::Consume(random.pick(recent)),
            56..68 => Self::Release(random.pick(recent)),
            68..82 => Self::Extend(random.pick(recent), random.pick(&[1, 300, 1_000, 5_000])),
            82..90 => Self::Cancel(random.pick(recent)),
            90..93 if damages => {
                let (letter, name) = match counted(random) {
                    Counted::Resource(name) => (b'r', name),
                    Counted::Actor(name) => (b'a', name),
                };
                let key = [&[0x62, 0, TICKET_EXPIRY.0, letter], name.as_ref()].concat();
                Self::Damage(key.into())
            }
            90..97 => Self::Recount(counted(random)),
            _ => Self::RetryAll,
        }
    }

    fn open(random: &mut Random) -> Self {
        let ttl_ms = random.pick(&[1, 700, 3_000, 20_000]);
        let mut hold = Hold::new(resource(random), ttl_ms)
            .resource_max(RESOURCE_MAX)
            .actor_max(ACTOR_MAX);
        if random.chance(80) {
            hold = hold.actor(actor(random));
        }
        if random.chance(70) {
            hold = hold.idempotency_key(random.pick(&["1", "2", "3", "4"]));
        }
        if random.chance(50) {
            hold = hold.session("upload");
        }
        Self::Open(hold)
    }

    pub(super) async fn send(self, tickets: Tickets, partition: Partition) -> Told {
        let told = self.ask(&tickets, &partition).await;
        told.unwrap_or(Told::Nothing)
    }

    async fn ask(self, tickets: &Tickets, partition: &Partition) -> Result<Told, TimerError> {
        let ended = |id: TicketId, changed: &Changed, end: &'static str| match changed {
            Changed::Done(_) => Told::Ended(id, end),
            _ => Told::Nothing,
        };
        Ok(match self {
            Self::Open(hold) => match tickets.open(partition, &hold).await? {
                Opened::New(ticket) | Opened::Existing(ticket) => Told::Opened(ticket.id()),
                Opened::Refused(_) => Told::Nothing,
            },
            Self::Consume(id) => ended(id, &tickets.consume(partition, id).await?, "consumed"),
            Self::Release(id) => ended(id, &tickets.release(partition, id).await?, "released"),
            Self::Cancel(id) => ended(id, &tickets.cancel(partition, id).await?, "cancelled"),
            Self::Extend(id, ttl_ms) => {
                tickets.extend(partition, id, ttl_ms).await?;
                Told::Nothing
            }
            Self::Damage(key) => {
                let damage = Batch::new().require_present(key.clone()).put(key, "junk");
                let store = tickets_store(tickets);
                drop(store.apply(partition, damage).await?);
                Told::Nothing
            }
            Self::Recount(counted) => {
                tickets.recount(partition, &counted).await?;
                Told::Nothing
            }
            Self::RetryAll => {
                let page = tickets.set_aside(partition, None, 100).await?;
                for ticket in page.tickets {
                    tickets.retry(partition, ticket.id).await?;
                }
                Told::Nothing
            }
        })
    }
}

fn tickets_store(tickets: &Tickets) -> &dyn dueline::store::NamespaceStore {
    tickets.timers().store().as_ref()
}
