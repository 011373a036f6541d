//! On whose behalf the task at hand works.

use std::cell::Cell;

/// On whose behalf a commit is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    /// The engine's, outside of a tick.
    #[default]
    Engine,
    /// The engine's, in the tick of this number.
    Turn(u64),
    /// A client's, by this request; 0 for one that holds many.
    Request(u64),
}

thread_local! {
    static CURRENT: Cell<Tag> = const { Cell::new(Tag::Engine) };
}

impl Tag {
    /// That of the task that is being polled.
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// Polls a task of this tag.
    pub fn during<T>(self, poll: impl FnOnce() -> T) -> T {
        let before = CURRENT.replace(self);
        let output = poll();
        CURRENT.set(before);
        output
    }
}
