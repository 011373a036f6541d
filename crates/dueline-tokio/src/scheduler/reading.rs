use std::time::Duration;

use dueline::store::{StoreError, Wake, WakeCursor};
use dueline::timers::KindSet;

use super::Scheduler;
use crate::plan::{Book, Window, refused_for};
use crate::wall::Reading;

/// The store is read while fewer partitions than this wait for their turn, or an eighth of the
/// window if that is less: what it would bring goes behind them anyway.
const READ_BELOW: usize = 512;
/// More overdue wakes than this are a backlog.
const BACKLOG: usize = 1_024;
/// How many times the usual number of wakes a backlog is read in, to be worked in partition order.
const BACKLOG_FACTOR: usize = 8;
/// Most wakes asked for in one page.
const PAGE_MAX: usize = 4_096;
/// A page is not asked to be shorter than this, so that known wakes are soon read past.
const PAGE_MIN: usize = 512;
/// Most pages in a row of one reading that bring nothing new: more than can be known.
const STALE_PAGES_MAX: usize = 16;
/// How often a store that others write too is asked.
const POLL: Duration = Duration::from_secs(1);

/// When the store may be read.
#[derive(Debug)]
pub(super) struct Reads {
    shared_store: bool,
    next_poll: Duration,
    refused: u32,
    not_before: Duration,
}

impl Reads {
    pub(super) fn new(shared_store: bool) -> Self {
        Self {
            shared_store,
            next_poll: Duration::ZERO,
            refused: 0,
            not_before: Duration::ZERO,
        }
    }

    /// When the driver must be awake to read, by the monotonic clock, if the queue lets it.
    pub(super) fn next(&self, now: Duration) -> Option<Duration> {
        let retry = (self.not_before > now).then_some(self.not_before);
        let poll = self.shared_store.then_some(self.next_poll);
        retry.or(poll)
    }
}

/// What one reading found.
struct Found {
    wakes: Vec<Wake>,
    /// Up to where the store was read; `None` if to the end of what was asked for.
    ended_at_ms: Option<u64>,
}

impl Scheduler {
    /// Whether so few partitions wait that the store is to be asked for more.
    pub(super) fn has_few_queued(&self) -> bool {
        self.book.queued() < READ_BELOW.min(self.settings.window_max / 8).max(1)
    }

    /// Whether the store may be read now.
    pub(super) fn may_read(&self, now: Duration) -> bool {
        self.has_few_queued() && now >= self.reads.not_before
    }

    /// Reads what the windows do not hold: what was put since, and what lies behind their end.
    pub(super) async fn read_store(&mut self, reading: Reading) {
        if !self.may_read(reading.monotonic) {
            return;
        }
        let mut news = KindSet::new();
        match self.read_all(&mut news, reading).await {
            Ok(()) => self.reads.refused = 0,
            Err(error) => {
                let again = news.iter().map(|kind| (kind, reading.now_ms));
                self.shared.looks.lower(again);
                self.reads_refused(&error, reading.monotonic);
            }
        }
    }

    /// After the clock was set back: the wake of a lane that was overdue lies where the clock was,
    /// ahead of now, though its timers may be due still. So all up to there is looked at once; what
    /// is not due any more has its wake set anew.
    pub(super) async fn look_past_set_back(&mut self, reading: Reading) {
        let Some(was_ms) = self.set_back_from_ms else {
            return;
        };
        if !self.may_read(reading.monotonic) {
            return;
        }
        for index in 0..self.windows.len() {
            self.shared.looks.close(index, 0);
        }
        self.read_store(reading).await;
        if self.reads.refused == 0 {
            self.set_back_from_ms = None;
            self.collect_due(was_ms);
        }
    }

    async fn read_all(&mut self, news: &mut KindSet, reading: Reading) -> Result<(), StoreError> {
        let polls = self.reads.shared_store && reading.monotonic >= self.reads.next_poll;
        if polls {
            self.reads.next_poll = reading.monotonic.saturating_add(POLL);
        }
        for index in 0..self.windows.len() {
            if !self.has_room_for_window(index) {
                continue;
            }
            let (_, horizon_ms) = self.shared.looks.next(index);
            if horizon_ms <= reading.now_ms {
                self.refill(index, reading).await?;
            } else if (self.shared.looks.take_due(index, reading.now_ms) || polls)
                && let Some(window) = self.windows.get(index)
            {
                window.kinds.iter().for_each(|kind| news.insert(kind));
            }
        }
        if news.is_empty() {
            return Ok(());
        }
        self.read_news(news, reading).await
    }

    /// Fills a window anew from its first wake on.
    async fn refill(&mut self, index: usize, reading: Reading) -> Result<(), StoreError> {
        let Some(window) = self.windows.get_mut(index) else {
            return Ok(());
        };
        window.clear();
        let (kinds, wakes_max) = (window.kinds, window.wakes_max);
        let backlog_max = if window.detached.is_none() {
            wakes_max.saturating_mul(BACKLOG_FACTOR)
        } else {
            wakes_max
        };
        // From here on commits are noted: what the reading does not see, they tell.
        self.shared.looks.open(index);
        let found = self
            .read(&kinds, u64::MAX, wakes_max, backlog_max, reading.now_ms)
            .await;
        let found = found.inspect_err(|_| self.shared.looks.close(index, 0))?;
        let mut horizon_ms = found.ended_at_ms.unwrap_or(u64::MAX);
        if found.wakes.is_empty() {
            // Nothing but what is known already: some of it must end before more can be seen.
            horizon_ms = horizon_ms.max(reading.now_ms.saturating_add(1_000));
        }
        self.shared.looks.close(index, horizon_ms);
        for wake in found.wakes {
            self.keep(wake);
        }
        Ok(())
    }

    /// Reads what is due of kinds that were told to have news.
    async fn read_news(&mut self, kinds: &KindSet, reading: Reading) -> Result<(), StoreError> {
        let wakes_max = self.settings.window_max;
        let now_ms = reading.now_ms;
        let found = self
            .read(kinds, now_ms, wakes_max, wakes_max, now_ms)
            .await?;
        if let Some(ended_at_ms) = found.ended_at_ms {
            for (index, window) in self.windows.iter_mut().enumerate() {
                if kinds.iter().any(|kind| window.kinds.contains(kind)) {
                    window.forget_from(ended_at_ms);
                    self.shared.looks.close(index, ended_at_ms);
                }
            }
        }
        for wake in found.wakes {
            self.keep(wake);
        }
        Ok(())
    }

    /// Reads wakes that are not known yet: `wakes_max` of them, or if more than a few are overdue,
    /// up to `backlog_max` overdue ones.
    async fn read(
        &mut self,
        kinds: &KindSet,
        until_ms: u64,
        wakes_max: usize,
        backlog_max: usize,
        now_ms: u64,
    ) -> Result<Found, StoreError> {
        let mut wakes = Vec::new();
        let mut after: Option<WakeCursor> = None;
        let mut stale_pages = 0;
        loop {
            let limit = wakes_max.clamp(PAGE_MIN, PAGE_MAX);
            let page = self
                .store
                .due_wakes(kinds, until_ms, after.as_ref(), limit)
                .await?;
            let before = wakes.len();
            let last_ms = page.wakes.last().map(|wake| wake.at_ms);
            let (book, windows) = (&mut self.book, &self.windows);
            wakes.extend(
                page.wakes
                    .into_iter()
                    .filter(|wake| !knows(book, windows, wake)),
            );
            stale_pages = if wakes.len() == before {
                stale_pages + 1
            } else {
                0
            };
            let is_backlog =
                wakes.len() > BACKLOG && last_ms.is_some_and(|last_ms| last_ms <= now_ms);
            let enough = if is_backlog { backlog_max } else { wakes_max };
            if let Some(first_left) = wakes.get(enough) {
                let ended_at_ms = Some(first_left.at_ms);
                wakes.truncate(enough);
                return Ok(Found { wakes, ended_at_ms });
            }
            after = match page.next {
                Some(next) if wakes.len() == enough || stale_pages >= STALE_PAGES_MAX => {
                    let ended_at_ms = Some(next.position().at_ms);
                    return Ok(Found { wakes, ended_at_ms });
                }
                Some(next) => Some(next),
                None => {
                    return Ok(Found {
                        wakes,
                        ended_at_ms: None,
                    });
                }
            };
        }
    }

    /// Puts a wake that was read where its time will find it.
    pub(super) fn keep(&mut self, wake: Wake) {
        if let Some(window) = self.window_of(wake.kind) {
            window.insert(wake);
        }
    }

    fn reads_refused(&mut self, error: &StoreError, now: Duration) {
        self.reads.refused = self.reads.refused.saturating_add(1);
        self.status.reads_refused += 1;
        let delay = refused_for(self.reads.refused);
        self.reads.not_before = now.saturating_add(delay);
        tracing::warn!(
            %error,
            retry_in_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            "the store refused to say what is due",
        );
    }
}

/// Whether a wake waits for its turn or for a slot, or is being served.
fn knows(book: &mut Book, windows: &[Window], wake: &Wake) -> bool {
    book.knows(wake) || windows.iter().any(|window| window.is_waiting(wake))
}
