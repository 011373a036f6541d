//! A Durable Object without a platform: its database in memory, its alarm, and what can go wrong.
//!
//! [`SimulatedObject`] is one object as the outside sees it, over all its instances: what is durable,
//! when its alarm is delivered, tried again, given up. [`SimulatedStorage`] is what an instance is
//! given. Nothing here waits or draws at random: whoever simulates decides when a turn ends, when
//! turns become durable, what is lost in a crash and when an alarm comes.
//!
//! ```text
//! poll a task of the instance     writes, sets the alarm
//! object.end_turn()               both are one commit now; an earlier alarm is told to the scheduler
//! object.sync()                   ... durable: answers may leave; a later alarm is told
//! object.crash(lost)              the last un-synced turns are gone, and the instance with them
//! ```

mod database;
mod faults;
mod object;
mod scheduler;
mod storage;
mod turns;

pub use faults::{StorageCall, StorageFaults};
pub use object::{AlarmEnd, Delivery, SimulatedObject};
pub use scheduler::RETRIES_MAX;
pub use storage::{SimulatedEffects, SimulatedStorage, StorageCounts};
pub use turns::TurnRecord;
