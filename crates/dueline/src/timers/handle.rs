use std::sync::Arc;

use crate::runtime::Runtime;
use crate::store::NamespaceStore;

/// The verbs of scheduling, over one store. Cheap to clone.
///
/// | to | call |
/// |---|---|
/// | schedule | [`schedule`](Self::schedule), [`schedule_if_match`](Self::schedule_if_match), [`schedule_many`](Self::schedule_many) |
/// | schedule together with state of your own | [`plan`](Self::plan), [`plan_new`](Self::plan_new), [`plan_again`](Self::plan_again), [`plan_all`](Self::plan_all) |
/// | read | [`get`](Self::get), [`list`](Self::list), [`lanes`](Self::lanes) |
/// | change | [`reschedule`](Self::reschedule), [`update`](Self::update), [`fire_now`](Self::fire_now) |
/// | cancel | [`cancel`](Self::cancel), [`cancel_unless_claimed`](Self::cancel_unless_claimed) |
/// | look after the dead | [`dead`](Self::dead), [`requeue`](Self::requeue), [`requeue_page`](Self::requeue_page), [`purge`](Self::purge) |
/// | hold a kind | [`pause`](Self::pause), [`resume`](Self::resume), [`paused`](Self::paused) |
/// | name a kind | [`kind_for_name`](Self::kind_for_name), [`kind_names`](Self::kind_names) |
///
/// Verbs by name find the timer wherever a retry or a claim has moved it. One that loses to another
/// writer starts over, and says `Contended` after eight times; it never says that a timer is not
/// there because it was just being moved.
#[derive(Clone, Debug)]
pub struct Timers {
    store: Arc<dyn NamespaceStore>,
    runtime: Runtime,
}

impl Timers {
    /// The verbs over this store. All writers of one process share one runtime.
    pub fn new(store: Arc<dyn NamespaceStore>, runtime: Runtime) -> Self {
        Self { store, runtime }
    }

    /// The store the verbs read and write.
    pub fn store(&self) -> &Arc<dyn NamespaceStore> {
        &self.store
    }

    /// The injected clocks, sleep and entropy.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}
