use std::fmt::Write;

use dueline::timers::OccurrenceId;
use sha2::{Digest, Sha256};

/// The `webhook-id` of an occurrence: `msg_` and 128 bits of a hash of (partition, kind, reference,
/// generation), in hexadecimal. The same for every attempt and after a requeue, another for every
/// new scheduling: the receiver's idempotency key.
pub(super) fn message_id(occurrence: &OccurrenceId) -> String {
    let mut hash = Sha256::new();
    hash.update(b"dueline webhook 1");
    for part in [
        occurrence.partition.as_bytes(),
        occurrence.reference.as_ref(),
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update([occurrence.kind.0]);
    hash.update(occurrence.generation.to_be_bytes());
    let mut id = "msg_".to_owned();
    for byte in hash.finalize().iter().take(16) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use dueline::Bytes;
    use dueline::store::Partition;
    use dueline::timers::TimerKind;

    fn occurrence(partition: &'static str, reference: &'static str) -> OccurrenceId {
        OccurrenceId {
            partition: Partition::new(partition).unwrap(),
            kind: TimerKind(16),
            reference: Bytes::from(reference),
            generation: 7,
        }
    }

    #[test]
    fn every_part_of_the_occurrence_counts() {
        let first = message_id(&occurrence("ab", "c"));
        assert_eq!(first.len(), "msg_".len() + 32);
        assert_eq!(first, message_id(&occurrence("ab", "c")));
        let mut later = occurrence("ab", "c");
        later.generation = 8;
        let mut other_kind = occurrence("ab", "c");
        other_kind.kind = TimerKind(18);
        for other in [
            occurrence("a", "bc"),
            occurrence("ab", "d"),
            later,
            other_kind,
        ] {
            assert_ne!(first, message_id(&other), "{other:?}");
        }
    }

    #[test]
    fn the_id_of_an_occurrence_never_changes_between_versions() {
        assert_eq!(
            message_id(&occurrence("ab", "c")),
            "msg_fd37714cd5cd7dbaefefb4ebf134a4b5"
        );
    }
}
