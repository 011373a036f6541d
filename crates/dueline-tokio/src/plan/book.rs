use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use dueline::store::{LaneWake, Partition, Wake};
use dueline::timers::TimerKind;

use super::hold;

/// Most partitions held back in memory; a further one is left to the store.
const HELD_MAX: usize = 4_096;

/// The partitions whose wakes are due: one turn each at a time, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Book {
    turns: BTreeMap<Partition, Turn>,
    queue: VecDeque<Partition>,
    held: BTreeSet<(Duration, Partition)>,
    /// Partitions whose latest turn the store refused, by when it first did.
    refused: BTreeSet<(Duration, Partition)>,
    running: usize,
    /// Wakes in all turns.
    kept: usize,
    /// Those of them that turns under way serve.
    served: usize,
}

#[derive(Debug)]
struct Turn {
    state: State,
    /// Due and waiting for the next turn.
    wakes: Vec<LaneWake>,
    /// Being served by the turn under way.
    served: Vec<LaneWake>,
    /// Whether a wake that it serves was read from the store meanwhile. The turn may have settled it
    /// already, and a later put may have set it anew for the same moment.
    seen_again: bool,
    /// Turns in a row that the store refused.
    refused: u32,
    /// When it refused the first of them, by the monotonic clock.
    refused_since: Option<Duration>,
    /// Turns in a row that did nothing and left a wake that is due.
    fruitless: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Running,
    /// Held back until this moment of the monotonic clock.
    Held(Duration),
}

/// A turn to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NextTurn {
    pub(crate) partition: Partition,
    /// The wakes to serve, in the order of their times.
    pub(crate) wakes: Vec<LaneWake>,
}

/// How a turn ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Lanes whose wakes were settled.
    pub(crate) settled: Vec<TimerKind>,
    /// Lanes that found no slot: their wakes stand.
    pub(crate) without_slot: Vec<TimerKind>,
    /// Whether the store refused a read or a write.
    pub(crate) refused: bool,
    /// Whether it did so for want of room.
    pub(crate) full: bool,
    /// Whether it did nothing and left a wake that is due.
    pub(crate) fruitless: bool,
}

/// What is left of a turn that has ended.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// How long the partition is held back.
    pub(crate) held: Option<Duration>,
    /// Wakes that wait for a slot.
    pub(crate) without_slot: Vec<LaneWake>,
    /// Lanes to be read again, because a wake of theirs was read while it was being served.
    pub(crate) look_again: Vec<TimerKind>,
    /// Wakes that are left to the store because too many partitions are held back.
    pub(crate) to_store: Vec<LaneWake>,
}

impl Turn {
    /// Keeps the first of refusals in a row among those of all partitions; `None` ends the row.
    fn note_refusal(
        &mut self,
        partition: &Partition,
        at: Option<Duration>,
        all: &mut BTreeSet<(Duration, Partition)>,
    ) {
        match (self.refused_since, at) {
            (None, Some(at)) => {
                self.refused_since = Some(at);
                all.insert((at, partition.clone()));
            }
            (Some(since), None) => {
                self.refused_since = None;
                all.remove(&(since, partition.clone()));
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    fn knows(&mut self, lane: LaneWake) -> bool {
        if self.wakes.contains(&lane) {
            return true;
        }
        let is_served = self.served.contains(&lane);
        self.seen_again |= is_served;
        is_served
    }
}

impl Turn {
    /// Counts how the turn ended, and says how long the partition is held back for it.
    fn count(&mut self, ended: &Ended) -> Option<Duration> {
        self.refused = if ended.refused { self.refused + 1 } else { 0 };
        self.fruitless = if ended.fruitless {
            self.fruitless + 1
        } else {
            0
        };
        match (self.refused, self.fruitless) {
            (0, 0) => None,
            (0, times) => Some(hold::fruitless(times)),
            (times, _) if ended.full => Some(hold::without_room(times)),
            (times, _) => Some(hold::refused(times)),
        }
    }
}

impl Book {
    /// Notes a due wake; says whether it is news.
    pub(crate) fn add(&mut self, wake: &Wake) -> bool {
        let lane = LaneWake {
            kind: wake.kind,
            at_ms: wake.at_ms,
        };
        let Some(turn) = self.turns.get_mut(&wake.partition) else {
            let turn = Turn {
                state: State::Queued,
                wakes: vec![lane],
                served: Vec::new(),
                seen_again: false,
                refused: 0,
                refused_since: None,
                fruitless: 0,
            };
            self.turns.insert(wake.partition.clone(), turn);
            self.queue.push_back(wake.partition.clone());
            self.kept += 1;
            return true;
        };
        if turn.knows(lane) {
            return false;
        }
        turn.wakes.push(lane);
        self.kept += 1;
        true
    }

    /// Whether a wake that was read waits for its turn or is being served.
    pub(crate) fn knows(&mut self, wake: &Wake) -> bool {
        let lane = LaneWake {
            kind: wake.kind,
            at_ms: wake.at_ms,
        };
        self.turns
            .get_mut(&wake.partition)
            .is_some_and(|turn| turn.knows(lane))
    }

    /// The next turn whose lanes have room. Wakes of lanes without go to `without_room`.
    pub(crate) fn next(
        &mut self,
        has_room: impl Fn(TimerKind) -> bool,
        without_room: &mut Vec<Wake>,
    ) -> Option<NextTurn> {
        while let Some(partition) = self.queue.pop_front() {
            let Some(turn) = self.turns.get_mut(&partition) else {
                continue;
            };
            let wakes = std::mem::take(&mut turn.wakes);
            let (mut wakes, waiting): (Vec<_>, Vec<_>) =
                wakes.into_iter().partition(|wake| has_room(wake.kind));
            self.kept = self.kept.saturating_sub(waiting.len());
            without_room.extend(waiting.into_iter().map(|wake| Wake {
                at_ms: wake.at_ms,
                partition: partition.clone(),
                kind: wake.kind,
            }));
            if wakes.is_empty() {
                turn.note_refusal(&partition, None, &mut self.refused);
                self.turns.remove(&partition);
                continue;
            }
            wakes.sort_by_key(|wake| (wake.at_ms, wake.kind));
            turn.state = State::Running;
            turn.served.clone_from(&wakes);
            self.running += 1;
            self.served += wakes.len();
            return Some(NextTurn { partition, wakes });
        }
        None
    }

    /// Ends the turn of a partition.
    pub(crate) fn end(&mut self, partition: &Partition, ended: &Ended, now: Duration) -> Left {
        let mut left = Left::default();
        let Some(turn) = self
            .turns
            .get_mut(partition)
            .filter(|turn| turn.state == State::Running)
        else {
            return left;
        };
        self.running = self.running.saturating_sub(1);
        let before = turn.served.len() + turn.wakes.len();
        self.served = self.served.saturating_sub(turn.served.len());
        let seen_again = std::mem::take(&mut turn.seen_again);
        for wake in std::mem::take(&mut turn.served) {
            if seen_again {
                left.look_again.push(wake.kind);
            }
            if ended.settled.contains(&wake.kind) {
                continue;
            }
            if ended.without_slot.contains(&wake.kind) {
                left.without_slot.push(wake);
            } else if !turn.wakes.contains(&wake) {
                turn.wakes.push(wake);
            }
        }
        self.kept = self.kept.saturating_sub(before - turn.wakes.len());
        left.held = turn.count(ended);
        let refused_now = ended.refused.then_some(now);
        turn.note_refusal(partition, refused_now, &mut self.refused);
        match left.held {
            None if turn.wakes.is_empty() => {
                self.turns.remove(partition);
            }
            None => {
                turn.state = State::Queued;
                self.queue.push_back(partition.clone());
            }
            Some(_) if self.held.len() >= HELD_MAX => {
                turn.note_refusal(partition, None, &mut self.refused);
                left.to_store = std::mem::take(&mut turn.wakes);
                self.kept = self.kept.saturating_sub(left.to_store.len());
                self.turns.remove(partition);
            }
            Some(delay) => {
                let until = now.saturating_add(delay);
                turn.state = State::Held(until);
                self.held.insert((until, partition.clone()));
            }
        }
        left
    }

    /// Gives partitions their turn again whose time of being held back is over.
    pub(crate) fn end_holds(&mut self, now: Duration) {
        while let Some((until, partition)) = self.held.pop_first() {
            if until > now {
                self.held.insert((until, partition));
                break;
            }
            if let Some(turn) = self.turns.get_mut(&partition)
                && turn.state == State::Held(until)
            {
                turn.state = State::Queued;
                self.queue.push_back(partition);
            }
        }
    }

    /// When the first time of being held back ends.
    pub(crate) fn first_hold_end(&self) -> Option<Duration> {
        self.held.first().map(|(until, _)| *until)
    }

    /// Since when the store has refused the partition that it has refused longest.
    pub(crate) fn refused_since(&self) -> Option<Duration> {
        self.refused.first().map(|(since, _)| *since)
    }

    /// Partitions waiting for their turn.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Turns under way.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// Partitions held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Wakes that wait for a turn.
    pub(crate) fn waiting(&self) -> usize {
        self.kept.saturating_sub(self.served)
    }

    /// Wakes kept in memory.
    pub(crate) fn wakes(&self) -> usize {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(name: &'static str, kind: u8, at_ms: u64) -> Wake {
        Wake {
            at_ms,
            partition: Partition::new(name).expect("a name"),
            kind: TimerKind(kind),
        }
    }

    fn next(book: &mut Book) -> Option<String> {
        let turn = book.next(|_| true, &mut Vec::new())?;
        Some(turn.partition.to_string())
    }

    fn done(kinds: &[u8]) -> Ended {
        Ended {
            settled: kinds.iter().copied().map(TimerKind).collect(),
            ..Ended::default()
        }
    }

    #[test]
    fn a_partition_that_is_due_again_at_once_goes_behind_the_others() {
        let mut book = Book::default();
        for name in ["a", "b", "c"] {
            book.add(&wake(name, 16, 5));
        }
        assert_eq!(next(&mut book).as_deref(), Some("a"));
        book.end(&wake("a", 16, 5).partition, &done(&[16]), Duration::ZERO);
        book.add(&wake("a", 16, 6));
        let order: Vec<_> = std::iter::from_fn(|| next(&mut book)).collect();
        assert_eq!(order, ["b", "c", "a"]);
    }

    #[test]
    fn wakes_of_one_partition_are_served_together_in_order_and_never_by_two_turns() {
        let mut book = Book::default();
        assert!(book.add(&wake("a", 17, 9)));
        assert!(book.add(&wake("a", 16, 7)));
        assert!(!book.add(&wake("a", 16, 7)));
        let turn = book.next(|_| true, &mut Vec::new()).expect("a turn");
        let served: Vec<_> = turn.wakes.iter().map(|wake| wake.at_ms).collect();
        assert_eq!(served, [7, 9]);
        assert!(book.add(&wake("a", 16, 8)));
        assert_eq!(next(&mut book), None, "one turn at a time");
        let left = book.end(&turn.partition, &done(&[16, 17]), Duration::ZERO);
        assert!(left.look_again.is_empty());
        assert_eq!(next(&mut book).as_deref(), Some("a"));
    }

    #[test]
    fn a_wake_that_is_read_while_it_is_served_is_read_again_behind_the_turn() {
        let mut book = Book::default();
        book.add(&wake("a", 16, 7));
        assert_eq!(next(&mut book).as_deref(), Some("a"));
        assert!(
            book.knows(&wake("a", 16, 7)),
            "no news, but perhaps set anew"
        );
        let partition = wake("a", 16, 7).partition;
        let left = book.end(&partition, &done(&[16]), Duration::ZERO);
        assert_eq!(left.look_again, [TimerKind(16)]);
        assert!(!book.knows(&wake("a", 16, 7)));
    }

    #[test]
    fn lanes_without_room_are_handed_back_and_the_others_run() {
        let mut book = Book::default();
        book.add(&wake("a", 16, 1));
        book.add(&wake("a", 17, 2));
        book.add(&wake("b", 17, 3));
        let mut waiting = Vec::new();
        let has_room = |kind| kind == TimerKind(16);
        let turn = book.next(has_room, &mut waiting).expect("a turn");
        assert_eq!(turn.wakes.len(), 1);
        assert_eq!(book.next(has_room, &mut waiting), None);
        assert_eq!(waiting, [wake("a", 17, 2), wake("b", 17, 3)]);
        assert_eq!(book.wakes(), 1);
    }

    #[test]
    fn a_refused_turn_comes_back_with_its_wakes_later_and_later_until_it_succeeds() {
        let mut book = Book::default();
        let refused = Ended {
            refused: true,
            ..Ended::default()
        };
        let partition = wake("a", 16, 1).partition;
        book.add(&wake("a", 16, 1));
        let mut now = Duration::ZERO;
        assert_eq!(book.refused_since(), None);
        for seconds in [1, 2, 4] {
            assert_eq!(next(&mut book).as_deref(), Some("a"));
            let left = book.end(&partition, &refused, now);
            let expected = Some(Duration::from_secs(seconds));
            assert_eq!((left.held, left.to_store.len()), (expected, 0));
            assert_eq!(book.refused_since(), Some(Duration::ZERO), "the first time");
            now += Duration::from_secs(seconds);
            book.end_holds(now - Duration::from_nanos(1));
            assert_eq!(next(&mut book), None);
            book.end_holds(now);
        }
        assert_eq!(next(&mut book).as_deref(), Some("a"));
        book.end(&partition, &done(&[16]), now);
        assert_eq!((book.wakes(), book.held()), (0, 0));
        assert_eq!(book.refused_since(), None, "it ended");
        book.add(&wake("a", 16, 1));
        next(&mut book);
        let left = book.end(&partition, &refused, now);
        assert_eq!(left.held, Some(Duration::from_secs(1)), "success forgets");
        assert_eq!(book.refused_since(), Some(now));
    }

    #[test]
    fn held_partitions_are_bounded_and_the_rest_is_left_to_the_store() {
        let mut book = Book::default();
        let refused = Ended {
            refused: true,
            ..Ended::default()
        };
        let mut left_to_store = 0;
        for number in 0..HELD_MAX + 10 {
            let partition = Partition::new(format!("p{number}")).expect("a name");
            book.add(&Wake {
                at_ms: 1,
                partition: partition.clone(),
                kind: TimerKind(16),
            });
            book.next(|_| true, &mut Vec::new());
            left_to_store += book
                .end(&partition, &refused, Duration::ZERO)
                .to_store
                .len();
        }
        assert_eq!((book.held(), left_to_store), (HELD_MAX, 10));
        assert_eq!(book.wakes(), HELD_MAX);
        assert_eq!(
            book.refused.len(),
            HELD_MAX,
            "none is remembered for nothing"
        );
    }
}
