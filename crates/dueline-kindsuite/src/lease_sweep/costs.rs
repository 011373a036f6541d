//! What leases cost, counted, and the bytes of their rows.

use dueline::kinds::lease_sweep::{Drain, Release};
use dueline_testkit::block_on;

use super::setting::{Answer, Setting, TERM_MS, vacant};
use crate::Make;
use crate::format::assert_shown;

pub fn what_leases_cost_is_as_documented(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let sweep = || drop(world.tick(&setting.engine));
    assert_eq!(
        setting.world.spent(|| drop(setting.grant("ann"))),
        [1, 1, 3, 0],
        "grant"
    );
    assert_eq!(
        setting.world.spent(|| drop(setting.ask("bob"))),
        [1, 0, 0, 0],
        "refused"
    );
    world.advance_ms(10_000);
    assert_eq!(
        setting.world.spent(|| drop(setting.renew(1))),
        [1, 1, 2, 0],
        "renewal"
    );
    let release = || {
        let released = setting.leases.release(&world.partition, &setting.name, 1);
        assert_eq!(block_on(released).unwrap(), Release::Released);
    };
    assert_eq!(setting.world.spent(release), [1, 1, 1, 1], "release");
    // The two timers of a lease that has gone: each is claimed, finds nothing, and goes.
    world.advance_ms(TERM_MS - 10_000);
    assert_eq!(
        setting.world.spent(sweep),
        [2, 2, 1, 2],
        "a timer that drains"
    );
    world.advance_ms(10_000);
    assert_eq!(
        setting.world.spent(sweep),
        [2, 2, 1, 2],
        "a timer that drains"
    );

    setting.grant("bob");
    setting
        .source
        .says(Answer::Drain(Drain::Working { watermark: 7 }));
    world.advance_ms(TERM_MS);
    assert_eq!(setting.world.spent(sweep), [2, 2, 3, 2], "kept");
    setting.source.says(Answer::Drain(Drain::Drained));
    world.advance_ms(10_000);
    assert_eq!(setting.world.spent(sweep), [2, 2, 2, 3], "swept");
    assert_eq!(setting.state(), vacant(2, 7));
    let (ops, _) = world.largest_batch();
    assert!(ops <= 10, "{ops} operations");
}

pub fn rows_of_leases_are_as_documented(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    setting.grant("ann");
    assert_eq!(world.kind_rows().len(), 2);
    assert_shown(&world.kind_rows());
    setting
        .source
        .says(Answer::Drain(Drain::Working { watermark: 7 }));
    world.advance_ms(TERM_MS);
    world.tick(&setting.engine);
    assert_shown(&world.kind_rows());
    setting.source.says(Answer::Drain(Drain::Drained));
    world.advance_ms(10_000);
    world.tick(&setting.engine);
    assert_eq!(world.kind_rows().len(), 1);
    assert_shown(&world.kind_rows());
}
