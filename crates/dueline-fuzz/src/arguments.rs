use std::ffi::OsString;

/// What reads a command line: what was understood, or an exit code and the text that is shown.
pub type ArgumentsReader = fn(Vec<OsString>) -> Result<String, (i32, String)>;

/// A command line, a word a line: it is understood, or refused with a text and the exit code that says
/// so. Words need not be UTF-8 where the system's are not.
///
/// # Panics
/// If it is neither.
pub fn arguments(data: &[u8]) {
    let _shown = arguments_read_by(data, dueline_cli::fuzzing::read_arguments);
}

/// [`arguments`], with a reader that may be wrong. Returns what was understood or shown.
///
/// # Panics
/// As [`arguments`].
pub fn arguments_read_by(data: &[u8], read: ArgumentsReader) -> String {
    let words = data.split(|byte| *byte == b'\n').map(word);
    let words = std::iter::once(OsString::from("dueline")).chain(words);
    match read(words.collect()) {
        Ok(understood) => {
            assert!(!understood.is_empty(), "understood as nothing");
            understood
        }
        Err((code, text)) => {
            assert!(code == 0 || code == 2, "exit code {code}: {text}");
            assert!(!text.trim().is_empty(), "refused without a word");
            let is_complaint = text.starts_with("error: ");
            // The help of a command without its verb is an error too, but no complaint.
            assert!(!is_complaint || code == 2, "exit code {code}: {text}");
            text
        }
    }
}

#[cfg(unix)]
fn word(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn word(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}
