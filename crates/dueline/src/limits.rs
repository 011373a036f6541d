//! Every limit of the contract, in one place.
//!
//! A request over a limit is refused before anything is read, with the figure in the error.

/// Longest partition name, in bytes.
pub const PARTITION_BYTES_MAX: usize = 256;
/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Longest value, in bytes (512 KiB).
pub const VALUE_BYTES_MAX: usize = 512 * 1_024;
/// Longest timer payload, in bytes (480 KiB): what is left of a value beside the header.
pub const PAYLOAD_BYTES_MAX: usize = 480 * 1_024;
/// Longest timer reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 512;
/// Longest error text kept in a row, in bytes; a longer one is cut at a character.
pub const ERROR_TEXT_BYTES_MAX: usize = 255;
/// Longest kind name, in bytes.
pub const KIND_NAME_BYTES_MAX: usize = 128;
/// Most preconditions and writes of one batch, together.
pub const BATCH_OPS_MAX: usize = 100;
/// Most bytes of keys and values in one batch, preconditions included (1 MiB).
pub const BATCH_BYTES_MAX: usize = 1_024 * 1_024;
/// Operations the core keeps for itself in the batch of a fire.
pub const BATCH_OPS_RESERVED: usize = 8;
/// Bytes the core keeps for itself in the batch of a fire, beside the timer's own row.
pub const BATCH_BYTES_RESERVED: usize = 8 * 1_024;
/// Most operations a handler may return.
pub const HANDLER_OPS_MAX: usize = BATCH_OPS_MAX - BATCH_OPS_RESERVED;
/// Most ranges of one `scan_many`.
pub const SCAN_RANGES_MAX: usize = 256;
/// Most rows a store returns in one page, whatever limit was asked for.
pub const SCAN_PAGE_ROWS_MAX: usize = 4_096;
/// Most timers that commit together in one group.
pub const GROUP_TIMERS_MAX: usize = 1_024;
/// Latest due time: 9999-12-31T23:59:59.999Z, in milliseconds since 1970.
pub const DUE_MS_MAX: u64 = 253_402_300_799_999;

// A retry move carries the old key, the name row twice, the new key and the value once.
const _: () = assert!(PAYLOAD_BYTES_MAX + 4 * KEY_BYTES_MAX + 1_024 <= VALUE_BYTES_MAX);
const _: () = assert!(VALUE_BYTES_MAX + 8 * KEY_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(HANDLER_OPS_MAX == 92);
