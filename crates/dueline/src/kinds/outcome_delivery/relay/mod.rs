//! The relay: outcomes that are writes to other partitions.

mod groups;
mod message;
mod run;
mod target;

pub(super) use message::MESSAGE_FORM;
pub use message::{RELAY_WRITES_MAX, RelayMessage};
pub(super) use run::RelayRun;
pub(super) use target::WATERMARK_FORM;

use std::fmt;
use std::sync::Arc;

use super::DeliveryOptions;
use crate::store::NamespaceStore;

/// Applies outcomes to other partitions, each exactly once and in order.
///
/// The body of an outcome is a [`RelayMessage`]: a target partition and writes to it. With them the target
/// stores how far it has absorbed this outbox, its watermark, so a delivery that is repeated adds nothing.
/// A target that fails keeps its own outcomes back, in order, and nobody else's.
#[derive(Clone)]
pub struct Relay {
    pub(super) store: Arc<dyn NamespaceStore>,
    pub(super) options: DeliveryOptions,
}

impl Relay {
    /// A relay into the partitions of this store. It must not be the handle of the driver itself, which
    /// owns its handlers.
    pub fn new(store: Arc<dyn NamespaceStore>) -> Self {
        Self {
            store,
            options: DeliveryOptions::default(),
        }
    }

    /// With other figures than the default ones.
    #[must_use]
    pub fn options(mut self, options: DeliveryOptions) -> Self {
        self.options = options.clamped();
        self
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
