mod commit;
mod rules;
mod tick;
mod verb;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use commit::{Commit, EffectMark, LaneWake, Occurrence, Scan, Source};
pub use rules::{Budget, EngineRules, Recurring, Retries};
pub use tick::{Ended, KindCounts, Run, Tick};
pub use verb::{Outcome, Policy, Told, Verb, VerbName};

use crate::Octets;

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was seen, in milliseconds since 1970, by the one clock of the machine or the true time
    /// of a simulation.
    pub at_ms: u64,
    /// Who saw it or did it: `client-3`, `node-1`, `receiver`, `supervisor`. Of a commit it is the
    /// process that asked for it.
    #[serde(with = "shared_text")]
    pub actor: Arc<str>,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The first line: what the history is held to.
    Begin {
        /// What all decisions were drawn from.
        seed: u64,
        /// How long one delivery may take.
        deadline_ms: u64,
        /// How much later than it happened something may be seen on a busy machine.
        lag_ms: u64,
        /// What the history of an engine is held to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rules: Option<Box<EngineRules>>,
    },
    /// The server answers requests.
    Ready,
    /// The server was killed, ready or not.
    Killed,
    /// A client sends a request. The same request sent again is the same operation: its answer was
    /// lost.
    Invoke {
        /// The client's number for it, unique in the history.
        request: u64,
        /// What is asked for.
        operation: Operation,
    },
    /// A client got the answer of a request, or learned that it will not get one.
    Answer {
        /// The request.
        request: u64,
        /// What it was told.
        answered: Answered,
    },
    /// The receiver got a call.
    Call {
        /// The id of the timer in the call.
        timer: String,
        /// The version in its payload.
        version: u64,
        /// The `webhook-id`.
        occurrence: String,
        /// The due in the call, in milliseconds since 1970.
        due_ms: u64,
        /// What the receiver answered.
        status: u16,
    },
    /// Nobody asks for anything any more, and everything has had its time.
    Quiet {
        /// Timers that are still there.
        timers: u64,
        /// Dead letters that are there.
        dead_letters: u64,
        /// What `doctor` found wrong; empty if it is all ok.
        findings: Vec<String>,
        /// The size of the database and its log.
        file_bytes: u64,
        /// The largest size that what is left explains.
        file_bytes_max: u64,
    },
    /// A process with an engine began.
    Started {
        /// Its number.
        node: u16,
        /// Which start of an owner it is: greater than all before it.
        epoch: u64,
    },
    /// A process with an engine ended.
    Stopped {
        /// Its number.
        node: u16,
        /// Whether it was cut, and did not stop by itself.
        crashed: bool,
    },
    /// A wall clock was set.
    Clock {
        /// Whose; `None` for the store's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<u16>,
        /// What it says now, in milliseconds since 1970.
        wall_ms: u64,
        /// By how much it jumped, in milliseconds.
        jumped_ms: i64,
    },
    /// What may go wrong from now on.
    Phase {
        /// Nothing any more: faults are off, owners are healthy, and what is due is served in time.
        liveness: bool,
    },
    /// A node runs these kinds from now on, and no others.
    Registry {
        /// Its number.
        node: u16,
        /// The kinds with a handler.
        kinds: Vec<u8>,
    },
    /// A client asks for something at the level of the engine.
    Verb(Verb),
    /// A client got the answer of a verb.
    Told {
        /// The request.
        request: u64,
        /// What it was told.
        told: Told,
    },
    /// A batch became durable.
    Commit(Commit),
    /// A tick ended.
    Tick(Tick),
    /// A run of a handler ended.
    Fire(Run),
    /// A call that went out ended; its claim was committed before.
    Called(Run),
    /// Something was made to go wrong: a wake lost or late, a read or a commit that failed. A hint
    /// for whoever reads the history; no rule is derived from it.
    Fault {
        /// What: `wake_lost`, `wake_late`, `commit_unknown`.
        fault: Cow<'static, str>,
        /// Whom it met.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<u16>,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partition: Option<Octets>,
    },
    /// An image of the store was recovered, once and then once more.
    Recovered {
        /// The hash of what was there after the first recovery.
        once: u64,
        /// The hash of what was there after the second.
        twice: u64,
    },
    /// A place that tests must come by was reached.
    Mark {
        /// Its name.
        name: Cow<'static, str>,
    },
    /// A partition was read from end to end.
    Scan(Scan),
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Create the timer, or replace it, under an idempotency key of the request's own.
    Schedule {
        /// Its id.
        timer: String,
        /// A number in the payload that no other request uses.
        version: u64,
        /// When it is due, in milliseconds since 1970.
        due_ms: u64,
    },
    /// Remove the timer.
    Cancel {
        /// Its id.
        timer: String,
        /// Even while a call of it is under way.
        force: bool,
    },
    /// List every timer whose id begins with this.
    List {
        /// What the ids begin with.
        prefix: String,
    },
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// A timer was created: there was none by this id.
    Created,
    /// A timer was replaced.
    Replaced,
    /// The timer was removed and will have no effect.
    Cancelled,
    /// There is no timer by this id.
    NotFound,
    /// A call is under way; nothing was done.
    InDelivery,
    /// The timers that are there.
    Listed(Vec<ListedTimer>),
    /// No answer came: it was done, or it was not.
    Unknown,
    /// An answer that no correct server gives to this request.
    Wrong(String),
}

/// A timer in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTimer {
    /// Its id.
    pub timer: String,
    /// The version in its payload.
    pub version: u64,
    /// Its due, in milliseconds since 1970.
    pub due_ms: u64,
}

/// A text that many events share, as a string.
mod shared_text {
    use std::borrow::Cow;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Arc<str>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<str>, D::Error> {
        Cow::<'de, str>::deserialize(deserializer).map(Arc::from)
    }
}
