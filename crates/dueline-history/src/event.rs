use serde::{Deserialize, Serialize};

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was seen, in milliseconds since 1970, by the one clock of the machine.
    pub at_ms: u64,
    /// Who saw it: `client-3`, `receiver`, `supervisor`.
    pub actor: String,
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
