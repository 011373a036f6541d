//! Names in the path. The path is taken apart as it was sent, so that an encoded character never
//! passes for one of the path's own.

use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::problem::Problem;
use crate::service::{PartitionName, TimerId};

/// Everything but what never needs encoding in a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Where the partition lies in `/v1/partitions/{partition}/...`.
const PARTITION_AT: usize = 3;
/// Where the id lies in `/v1/partitions/{partition}/timers/{id}`.
const ID_AT: usize = 5;

/// The partition of a path.
pub(super) fn partition(uri: &Uri) -> Result<PartitionName, Problem> {
    Ok(PartitionName::new(&decoded(segment(uri, PARTITION_AT)?)?)?)
}

/// The partition and the timer of a path.
pub(super) fn timer(uri: &Uri) -> Result<(PartitionName, TimerId), Problem> {
    let id = TimerId::new(&decoded(segment(uri, ID_AT)?)?)?;
    Ok((partition(uri)?, id))
}

/// The last segment of a path as it was sent, split at its last colon: `id:verb`. An id may hold
/// colons itself; to call a verb on one that ends like a verb, encode its colon as `%3A`.
pub(super) fn id_and_verb(uri: &Uri) -> Result<Option<(String, &str)>, Problem> {
    match segment(uri, ID_AT)?.rsplit_once(':') {
        Some((id, verb)) => Ok(Some((decoded(id)?, verb))),
        None => Ok(None),
    }
}

/// The path of a timer.
pub(super) fn timer_path(partition: &str, id: &str) -> String {
    let partition = utf8_percent_encode(partition, SEGMENT);
    format!(
        "/v1/partitions/{partition}/timers/{}",
        utf8_percent_encode(id, SEGMENT)
    )
}

fn segment(uri: &Uri, at: usize) -> Result<&str, Problem> {
    uri.path()
        .split('/')
        .nth(at)
        .ok_or_else(|| Problem::no_route("the path is too short"))
}

/// A segment with its percent-encoding taken off.
fn decoded(segment: &str) -> Result<String, Problem> {
    let mut rest = segment;
    while let Some((_, after)) = rest.split_once('%') {
        let is_escape = after
            .get(..2)
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !is_escape {
            return Err(Problem::name(
                "a % in a path is followed by two hexadecimal digits",
            ));
        }
        rest = after;
    }
    percent_decode_str(segment)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| Problem::name("a name is UTF-8 once its percent-encoding is taken off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn every_name_that_is_allowed_reads_back_from_its_path(
            place in "\\PC{1,60}",
            name in "\\PC{1,120}",
        ) {
            let (Ok(place), Ok(name)) = (PartitionName::new(&place), TimerId::new(&name)) else {
                return Ok(());
            };
            let path = timer_path(place.as_str(), name.as_str());
            let uri: Uri = path.parse().unwrap();
            let (partition, id) = timer(&uri).unwrap();
            proptest::prop_assert_eq!(partition.as_str(), place.as_str());
            proptest::prop_assert_eq!(&id, &name);
            let verb: Uri = format!("{path}:fire-now").parse().unwrap();
            let (id, verb) = id_and_verb(&verb).unwrap().unwrap();
            proptest::prop_assert_eq!((id.as_str(), verb), (name.as_str(), "fire-now"));
        }
    }
}
