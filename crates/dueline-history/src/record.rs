use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Broken, Event, Log, What};

/// A history in memory, recorded by any number of actors.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// A history without an event.
    pub fn new() -> Self {
        Self::default()
    }

    /// A history that goes on from these events.
    pub fn behind(events: Vec<Event>) -> Self {
        Self {
            events: Mutex::new(events),
        }
    }

    /// Appends what this actor did at this time.
    pub fn record(&self, at_ms: u64, actor: &Arc<str>, what: What) {
        self.events().push(Event {
            at_ms,
            actor: Arc::clone(actor),
            what,
        });
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events().len()
    }

    /// Whether nothing was recorded yet.
    pub fn is_empty(&self) -> bool {
        self.events().is_empty()
    }

    /// Takes the history out; the recorder begins anew.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events())
    }

    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a history to a new file.
///
/// # Errors
/// As [`Log::create`] and [`Log::append`].
pub fn write(path: &Path, history: &[Event]) -> io::Result<()> {
    let log = Log::create(path)?;
    history.iter().try_for_each(|event| log.append(event))
}

/// Keeps a history that broke something as `<name>.jsonl` in the folder `histories` of the target
/// folder, in place of an older one, and says in one text what it broke and where it lies.
pub fn keep(name: &str, history: &[Event], broken: &[Broken]) -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let path = target.join("histories").join(format!("{name}.jsonl"));
    let kept = (|| {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        write(&path, history)
    })();
    let place = match kept {
        Ok(()) => format!("the history is {}", path.display()),
        Err(error) => format!("the history could not be kept: {error}"),
    };
    let lines = broken.iter().map(|it| format!("{name}: {it}\n"));
    lines.collect::<String>() + &place
}
