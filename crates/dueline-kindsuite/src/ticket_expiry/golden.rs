//! The bytes of the rows: those of `FORMAT.md`, in every release.

use dueline::kinds::ticket_expiry::{Hold, TICKET_EXPIRY};
use dueline_testkit::block_on;

use super::{Rig, body_of};
use crate::Make;

const FORMAT: &str = include_str!("../../../../FORMAT.md");

/// Each row of one table as FORMAT.md writes it: hexadecimal digits, fields apart.
fn shown(rig: &Rig, letter: u8) -> String {
    let rows = rig.kind_rows(TICKET_EXPIRY.0, letter);
    let (key, value) = &rows[0];
    format!("key {}\nvalue {}", hex(key), hex(value))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The golden rows, written with this clock and these draws, are the ones that FORMAT.md shows.
pub fn the_rows_are_those_of_the_format(make: Make<'_>) {
    let rig = Rig::new(make);
    let hold = Hold::new("seat-12A", 600_000)
        .actor("alice")
        .idempotency_key("request-77")
        .session("upload-9")
        .data("row 12");
    let ticket = rig.open(&hold);
    let partition = &rig.world.partition;
    assert!(
        block_on(rig.tickets.extend(partition, ticket.id(), 600_001))
            .unwrap()
            .is_done()
    );
    let resource = rig.kind_rows(TICKET_EXPIRY.0, b'r').remove(0);
    let mut rows: Vec<String> = [b't', b'i', b'r', b'a']
        .iter()
        .map(|letter| shown(&rig, *letter))
        .collect();
    // The extended ticket's timer goes on first, then finds a counter that does not decode.
    rig.world.advance_ms(600_000);
    rig.tick();
    rig.damage(&resource.0, "\u{2}");
    rig.world.advance_ms(1);
    rig.tick();
    rows.push(shown(&rig, b'x'));
    rig.damage(&resource.0, resource.1);
    rig.world.advance_ms(60_000);
    rig.tick();
    let outcome = rig.world.kind_rows();
    let outcome = outcome.iter().find(|(key, _)| key[3] == b'o').unwrap();
    rows.push(body_of(&outcome.1).to_owned());
    let compact: String = FORMAT
        .lines()
        .map(|line| match line.split_once(' ') {
            Some((name @ ("key" | "value"), digits)) => {
                format!("{name} {}\n", digits.replace(' ', ""))
            }
            _ => format!("{line}\n"),
        })
        .collect();
    for row in rows {
        assert!(compact.contains(&row), "FORMAT.md does not show\n{row}");
    }
}
