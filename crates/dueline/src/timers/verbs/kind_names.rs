use super::commit::{Commit, Tries};
use super::named::corrupt;
use crate::limits::KIND_NAME_BYTES_MAX;
use crate::rows::{KindNameKey, KindNameRow, NEXT_KIND_KEY, class, class_end, class_start};
use crate::store::{Batch, Partition, ScanRange, Value};
use crate::timers::{TimerError, TimerKind, Timers};

/// As many names as kinds can be allotted, and the row of the next kind.
const NAMES_PAGE_ROWS: usize = 256;

impl Timers {
    /// The kind of this name in this partition, allotted at first use: 16 to 239, each once, never
    /// reused. For callers that register handlers by name instead of by number.
    ///
    /// # Errors
    /// `Invalid` for a name of no or more than 128 bytes, and once all 224 are allotted; `Contended`;
    /// what the store says.
    pub async fn kind_for_name(
        &self,
        partition: &Partition,
        name: &str,
    ) -> Result<TimerKind, TimerError> {
        if name.is_empty() || name.len() > KIND_NAME_BYTES_MAX {
            return Err(TimerError::invalid(format!(
                "the name of a kind has 1 to {KIND_NAME_BYTES_MAX} bytes, this one has {}",
                name.len()
            )));
        }
        let key = KindNameKey {
            name: name.to_owned(),
        }
        .encode();
        let mut tries = Tries::default();
        loop {
            let keys = [key.clone(), NEXT_KIND_KEY];
            let mut values = self.store().get_many(partition, &keys).await?.into_iter();
            if let Some(value) = values.next().flatten() {
                return kind_of(&value);
            }
            let observed = values.next().flatten();
            let (kind, next) = allot(observed.as_ref())?;
            let batch = Batch::new()
                .require_absent(key.clone())
                .require_unchanged(NEXT_KIND_KEY, observed)
                .put(key.clone(), KindNameRow { kind }.encode())
                .put(NEXT_KIND_KEY, KindNameRow { kind: next }.encode());
            match self.commit(partition, batch).await? {
                Commit::Written => return Ok(kind),
                Commit::Lost { .. } => tries.changed()?,
            }
        }
    }

    /// The names that kinds were allotted to in this partition, in the order of the names.
    ///
    /// # Errors
    /// `Corrupt` if a row does not decode; what the store says.
    pub async fn kind_names(
        &self,
        partition: &Partition,
    ) -> Result<Vec<(String, TimerKind)>, TimerError> {
        let mut names = Vec::new();
        let mut cursor = None;
        loop {
            let (start, end) = (class_start(class::KIND_NAME), class_end(class::KIND_NAME));
            let range = ScanRange::new(start, end, NAMES_PAGE_ROWS).after(cursor);
            let page = self.store().scan(partition, &range).await?;
            for (key, value) in page.rows.iter().filter(|(key, _)| *key != NEXT_KIND_KEY) {
                let key = KindNameKey::decode(key)
                    .map_err(|error| corrupt("the name of a kind", error))?;
                names.push((key.name, kind_of(value)?));
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(names);
            }
        }
    }
}

fn kind_of(value: &Value) -> Result<TimerKind, TimerError> {
    KindNameRow::decode(value)
        .map(|row| row.kind)
        .map_err(|error| corrupt("the name of a kind", error))
}

/// The kind to allot and the one after it.
fn allot(next: Option<&Value>) -> Result<(TimerKind, TimerKind), TimerError> {
    let kind = match next {
        Some(value) => kind_of(value)?,
        None => TimerKind::APPLICATION_FIRST,
    };
    if kind > TimerKind::APPLICATION_LAST {
        return Err(TimerError::invalid(
            "all 224 kinds of this partition are allotted; kinds are never reused, so register \
             fewer names",
        ));
    }
    Ok((kind, TimerKind(kind.0.saturating_add(1))))
}
