use bytes::Bytes;
use dueline::kinds::fuzzing::{Form, forms};
use dueline::rows::Malformed;

/// Reads bytes as one form, and writes again what they say.
pub type Reread = fn(&Form, &Bytes) -> Result<Bytes, Malformed>;

/// The version that every row and payload of a built-in kind begins with.
const VERSION: u8 = 1;

/// Any form of bytes that a built-in kind stores, each table and what timers carry: what is read is written
/// again as the same bytes, and what is not is refused with a word.
///
/// # Panics
/// If it is not.
pub fn kind_rows(data: &[u8]) {
    let _read = kind_rows_reread(data, |form, bytes| (form.reread)(bytes));
}

/// [`kind_rows`], read in a way that may be wrong. Returns the forms that the bytes have.
///
/// # Panics
/// As [`kind_rows`].
pub fn kind_rows_reread(data: &[u8], reread: Reread) -> Vec<&'static Form> {
    let value = Bytes::copy_from_slice(data);
    let mut read = Vec::new();
    for form in forms() {
        match reread(form, &value) {
            Ok(again) => {
                assert_eq!(again, value, "{}", form.what);
                let has_version = form.letter.is_none() || value.first() == Some(&VERSION);
                assert!(has_version, "{} without a version", form.what);
                read.push(form);
            }
            Err(malformed) => assert!(!malformed.0.is_empty(), "refused without a word"),
        }
    }
    read
}
