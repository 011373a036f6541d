use std::ffi::OsString;

/// A command line, a word a line: it is understood, or refused with a text and the exit code that says
/// so.
///
/// # Panics
/// If it is neither.
pub fn arguments(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words = std::iter::once("dueline").chain(text.split('\n'));
    let words: Vec<OsString> = words.map(OsString::from).collect();
    match dueline_cli::fuzzing::read_arguments(words) {
        Ok(understood) => assert!(!understood.is_empty()),
        Err((code, text)) => {
            assert!(code == 0 || code == 2, "exit code {code}: {text}");
            assert!(!text.trim().is_empty(), "refused without a word");
        }
    }
}
