use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::Event;

/// A history that is being written, by any number of threads, a line at a time.
///
/// Lines are not synced: whoever writes them outlives the server that is killed.
#[derive(Debug)]
pub struct Log {
    file: Mutex<File>,
}

impl Log {
    /// Begins a history in a new file.
    ///
    /// # Errors
    /// The file exists already, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        Ok(Self {
            file: Mutex::new(file),
        })
    }

    /// Appends an event.
    ///
    /// # Errors
    /// What the file system says: the history is not whole then, and proves nothing.
    pub fn append(&self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// Reads a history.
///
/// # Errors
/// A file that cannot be read, or a line that is no event; the line's number is in the text.
pub fn read(path: &Path) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    for (index, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        let event = serde_json::from_str(&line?).map_err(|error| {
            let text = format!("line {} is no event: {error}", index + 1);
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        events.push(event);
    }
    Ok(events)
}
