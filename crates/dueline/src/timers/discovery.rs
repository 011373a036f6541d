//! Finding the lanes of a partition and their due rows.

use super::lane::{Lane, PAGE_ROWS};
use super::tick::TickRun;
use super::{KindSet, TimerKind};
use crate::limits::SCAN_RANGES_MAX;
use crate::mutants::{Mutant, planted};
use crate::ordered::sort_by;
use crate::rows::{PauseKey, TimerKey, class, class_end, class_start, lane_head};
use crate::store::{Key, LaneWake, ScanPage, ScanRange, StoreError};

impl<'a> TickRun<'a> {
    /// Reads the pause rows and the due rows of the lanes that were woken: one read for all, a
    /// range each.
    pub(super) async fn discover_woken(&mut self, wakes: &[LaneWake]) -> Result<(), StoreError> {
        let most = usize::try_from(self.state.fires_left()).unwrap_or(usize::MAX);
        for wake in wakes {
            if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.kind == wake.kind) {
                lane.served_ms.push(wake.at_ms);
                continue;
            }
            let registration = self.engine.registry.get(wake.kind);
            if registration.is_none() && wake.kind != TimerKind::INVALID {
                continue;
            }
            if self.lanes.len() >= most {
                // Their wakes stand, so they are ahead of these lanes next time.
                self.report.stopped_on_budget = true;
                continue;
            }
            let mut lane = Lane::new(wake.kind, registration);
            lane.cautious = self
                .cautious_until_ms
                .is_some_and(|until_ms| wake.at_ms <= until_ms);
            lane.served_ms.push(wake.at_ms);
            self.lanes.push(lane);
        }
        self.deal_rows(self.lanes.len());
        let mut ranges = vec![pause_range()];
        ranges.extend(self.lanes.iter().map(|lane| self.lane_range(lane)));
        let mut pages = self.scan_all(&ranges).await?.into_iter();
        self.note_paused(pages.next().unwrap_or_default()).await?;
        let ranges = ranges.into_iter().skip(1);
        for (lane, (range, page)) in self.lanes.iter_mut().zip(ranges.zip(pages)) {
            if self.paused.contains(lane.kind) {
                self.report.paused_lanes += 1;
            } else {
                lane.take_page(range, page);
            }
        }
        sort_by(&mut self.lanes, |one, other| one.kind.cmp(&other.kind));
        Ok(())
    }

    /// Reads the pause rows and a page of the timer class: for a small partition that is all. Only
    /// if the page came back full the lanes are sought one by one.
    pub(super) async fn discover_all(&mut self) -> Result<(), StoreError> {
        let limit = PAGE_ROWS.min(self.scan_rows_left()).max(1);
        let whole = ScanRange::new(class_start(class::TIMER), class_end(class::TIMER), limit);
        let mut pages = self.scan_all(&[pause_range(), whole]).await?.into_iter();
        self.note_paused(pages.next().unwrap_or_default()).await?;
        let page = pages.next().unwrap_or_default();
        let mut kinds = KindSet::new();
        for (key, _) in &page.rows {
            if let Some(head) = lane_head(key) {
                kinds.insert(head.kind);
            }
        }
        if page.next.is_none() || planted(Mutant::UnknownRowsHideKinds) {
            for kind in kinds.iter() {
                if let Some(mut lane) = self.open_lane(kind) {
                    let rows = page
                        .rows
                        .iter()
                        .filter(|(key, _)| self.takes(kind, key))
                        .cloned();
                    lane.take_page(
                        ScanRange::new(Key::new(), Key::new(), 1),
                        ScanPage {
                            rows: rows.collect(),
                            next: None,
                        },
                    );
                    self.lanes.push(lane);
                }
            }
            return Ok(());
        }
        self.seek_lanes(&mut kinds).await?;
        for kind in kinds.iter() {
            if let Some(lane) = self.open_lane(kind) {
                self.lanes.push(lane);
            }
        }
        self.deal_rows(self.lanes.len());
        let ranges: Vec<ScanRange> = self
            .lanes
            .iter()
            .map(|lane| self.lane_range(lane))
            .collect();
        let pages = self.scan_all(&ranges).await?;
        for (lane, (range, page)) in self.lanes.iter_mut().zip(ranges.into_iter().zip(pages)) {
            lane.take_page(range, page);
        }
        Ok(())
    }

    /// Deals the rows that may still be read out to the lanes, at least one each.
    fn deal_rows(&mut self, lanes: usize) {
        self.rows_share = (self.scan_rows_left() / lanes.max(1)).max(1);
    }

    /// Notes which kinds are paused, page by page.
    async fn note_paused(&mut self, mut page: ScanPage) -> Result<(), StoreError> {
        loop {
            for (key, _) in &page.rows {
                if let Ok(key) = PauseKey::decode(key)
                    && !planted(Mutant::PauseIgnored)
                {
                    self.paused.insert(key.kind);
                }
            }
            let Some(next) = page.next else {
                return Ok(());
            };
            page = self.scan(&pause_range().after(Some(next))).await?;
        }
    }

    /// Reads the next page of a lane.
    pub(super) async fn read_page(&mut self, index: usize) -> Result<(), StoreError> {
        let limit = self.page_limit(index);
        let Some(mut range) = self.lanes.get_mut(index).and_then(|lane| lane.more.take()) else {
            return Ok(());
        };
        range.limit = limit;
        let page = self.scan(&range).await?;
        if let Some(lane) = self.lanes.get_mut(index) {
            lane.take_page(range, page);
        }
        Ok(())
    }

    /// Adds the kinds behind those that are known: one seek per kind present.
    async fn seek_lanes(&mut self, kinds: &mut KindSet) -> Result<(), StoreError> {
        let end = class_end(class::TIMER);
        let mut from = kinds
            .iter()
            .last()
            .map_or_else(|| class_start(class::TIMER), TimerKey::lane_end);
        while from < end {
            let page = self.scan(&ScanRange::new(from, end.clone(), 1)).await?;
            let Some(head) = page.rows.first().and_then(|(key, _)| lane_head(key)) else {
                break;
            };
            kinds.insert(head.kind);
            from = TimerKey::lane_end(head.kind);
        }
        Ok(())
    }

    /// The lane of a kind that was found, unless it is unknown here or paused.
    fn open_lane(&mut self, kind: TimerKind) -> Option<Lane<'a>> {
        let registration = self.engine.registry.get(kind);
        if registration.is_none() && kind.is_valid() {
            self.report.unknown_lanes += 1;
            if !planted(Mutant::UnknownKindWritten) {
                return None;
            }
        }
        if self.paused.contains(kind) {
            self.report.paused_lanes += 1;
            return None;
        }
        let mut lane = Lane::new(kind, registration);
        lane.cautious = self.cautious_until_ms.is_some();
        Some(lane)
    }

    /// Whether a row of the timer class is one of this lane to be dealt with now: due, or malformed
    /// whatever its due.
    fn takes(&self, kind: TimerKind, key: &Key) -> bool {
        lane_head(key).is_some_and(|head| {
            head.kind == kind && (head.due_ms <= self.cutoff_ms || TimerKey::decode(key).is_err())
        })
    }

    /// The due range of a lane, with the size of its first page.
    fn lane_range(&self, lane: &Lane<'_>) -> ScanRange {
        let start = TimerKey::lane_start(lane.kind);
        let end = TimerKey::lane_due_end(lane.kind, self.cutoff_ms);
        ScanRange::new(start, end, self.rows_wanted(lane))
    }

    fn page_limit(&self, index: usize) -> usize {
        self.lanes
            .get(index)
            .map_or(1, |lane| self.rows_wanted(lane))
    }

    /// Rows worth reading: no more than may still be run or read, and at least one.
    fn rows_wanted(&self, lane: &Lane<'_>) -> usize {
        let per_tick_max = lane
            .registration
            .and_then(|registration| registration.per_tick_max);
        let runs = self
            .state
            .kind_left(lane.kind, per_tick_max)
            .min(self.state.fires_left());
        lane.page_rows()
            .min(usize::try_from(runs).unwrap_or(usize::MAX))
            .min(self.rows_share)
            .min(self.scan_rows_left())
            .max(1)
    }

    fn scan_rows_left(&self) -> usize {
        usize::try_from(self.state.scans_left()).unwrap_or(usize::MAX)
    }

    async fn scan(&mut self, range: &ScanRange) -> Result<ScanPage, StoreError> {
        let page = self.store.scan(self.partition, range).await?;
        self.charge(page.rows.len());
        Ok(page)
    }

    /// A page of each range, charged to the tick.
    async fn scan_all(&mut self, ranges: &[ScanRange]) -> Result<Vec<ScanPage>, StoreError> {
        let pages = self.read_all(ranges).await?;
        self.charge(pages.iter().map(|page| page.rows.len()).sum());
        Ok(pages)
    }

    /// A page of each range, however few the store serves in one call.
    pub(super) async fn read_all(&self, ranges: &[ScanRange]) -> Result<Vec<ScanPage>, StoreError> {
        let mut pages: Vec<ScanPage> = Vec::with_capacity(ranges.len());
        while let Some(rest) = ranges.get(pages.len()..).filter(|rest| !rest.is_empty()) {
            let rest = rest.get(..SCAN_RANGES_MAX).unwrap_or(rest);
            let served = self.store.scan_many(self.partition, rest).await?;
            if served.is_empty() {
                return Err(StoreError::corrupt(
                    "the store served none of the ranges asked for",
                ));
            }
            pages.extend(served);
        }
        Ok(pages)
    }

    fn charge(&mut self, rows: usize) {
        self.state.charge_scan(rows);
        self.report.scanned += u64::try_from(rows).unwrap_or(u64::MAX);
    }
}

fn pause_range() -> ScanRange {
    ScanRange::new(class_start(class::PAUSE), class_end(class::PAUSE), 256)
}
