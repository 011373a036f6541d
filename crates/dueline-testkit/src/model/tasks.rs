use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

type Task<T> = Pin<Box<dyn Future<Output = T>>>;

/// What is under way, polled one step at a time in any order. Nothing is woken: a task that waits
/// for a clock is simply polled in vain until the clock has moved.
pub struct Tasks<T> {
    running: Vec<(usize, Task<T>)>,
}

impl<T> Tasks<T> {
    /// An executor with nothing under way.
    pub fn new() -> Self {
        Self {
            running: Vec::new(),
        }
    }

    /// Begins a task of this owner.
    pub fn spawn(&mut self, owner: usize, task: impl Future<Output = T> + 'static) {
        self.running.push((owner, Box::pin(task)));
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// How many of this owner are under way.
    pub fn of(&self, owner: usize) -> usize {
        self.running.iter().filter(|(of, _)| *of == owner).count()
    }

    /// Drops every task of this owner, as a crash or a clean stop does.
    pub fn drop_all_of(&mut self, owner: usize) {
        self.running.retain(|(of, _)| *of != owner);
    }

    /// Polls the task of this place once; its owner and output if it has ended.
    pub fn step(&mut self, place: usize) -> Option<(usize, T)> {
        let mut context = Context::from_waker(Waker::noop());
        let (owner, task) = self.running.get_mut(place)?;
        let owner = *owner;
        match task.as_mut().poll(&mut context) {
            Poll::Ready(output) => {
                drop(self.running.remove(place));
                Some((owner, output))
            }
            Poll::Pending => None,
        }
    }
}

impl<T> Default for Tasks<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Tasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners: Vec<usize> = self.running.iter().map(|(owner, _)| *owner).collect();
        f.debug_struct("Tasks").field("owners", &owners).finish()
    }
}
