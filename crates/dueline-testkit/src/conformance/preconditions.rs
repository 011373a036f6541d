//! Guards: the first that fails decides, shows what is there, and nothing is written.

use dueline::store::{Batch, BatchOutcome, Precondition};

use super::subject::{NOW_MS, home};
use super::{Make, Subject};

fn lost(index: usize, observed: Option<&'static str>) -> BatchOutcome {
    BatchOutcome::PreconditionFailed {
        index,
        observed: observed.map(Into::into),
    }
}

/// Each kind of guard fails with the value it has to show.
pub fn a_lost_guard_shows_what_is_there(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, Batch::new().put("held", "value").put("empty", ""));
    let check = |batch: Batch, outcome: BatchOutcome| {
        assert_eq!(subject.apply(&p, batch.clone()), outcome, "{batch:?}");
    };
    check(Batch::new().require_absent("held"), lost(0, Some("value")));
    check(Batch::new().require_absent("empty"), lost(0, Some("")));
    check(Batch::new().require_present("gone"), lost(0, None));
    check(
        Batch::new().require_equals("held", "other"),
        lost(0, Some("value")),
    );
    check(
        Batch::new().require_equals("held", ""),
        lost(0, Some("value")),
    );
    check(Batch::new().require_equals("empty", "x"), lost(0, Some("")));
    check(Batch::new().require_equals("gone", "value"), lost(0, None));
    check(Batch::new().require_equals("gone", ""), lost(0, None));
}

/// Guards that hold let the batch commit, in any number and on one key several times.
pub fn guards_that_hold_let_the_batch_commit(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, Batch::new().put("held", "value").put("empty", ""));
    let batch = Batch::new()
        .require_present("held")
        .require_equals("held", "value")
        .require_present("held")
        .require_equals("empty", "")
        .require_absent("gone")
        .require_absent("gone");
    subject.commit(&p, batch.put("written", "yes"));
    assert_eq!(subject.get(&p, "written"), Some("yes".into()));
}

/// The failure at the front of the list decides, and its index counts every precondition before it,
/// time bounds included.
pub fn the_first_failure_decides_and_the_index_counts_time_bounds(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, Batch::new().put("held", "value"));
    let sound = Batch::new()
        .require(Precondition::NotAfter(NOW_MS))
        .require_present("held")
        .require(Precondition::NotBefore(NOW_MS));
    let batch = sound.require_absent("held").require_present("gone");
    assert_eq!(subject.apply(&p, batch), lost(3, Some("value")));
    let batch = Batch::new().require_present("gone").require_absent("held");
    assert_eq!(subject.apply(&p, batch), lost(0, None));
    let contradiction = Batch::new().require_present("held").require_absent("held");
    assert_eq!(subject.apply(&p, contradiction), lost(1, Some("value")));
}

/// A guard lost anywhere in the list leaves every row as it was.
pub fn a_lost_guard_writes_nothing(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, Batch::new().put("a", "1").put("b", "2"));
    let before = subject.rows(&p);
    for loser in 0..3 {
        let mut batch = Batch::new().put("a", "new").delete("b").put("c", "new");
        for index in 0..3 {
            let key = if index == loser { "gone" } else { "a" };
            batch = batch.require_present(key);
        }
        assert_eq!(subject.apply(&p, batch), lost(loser, None));
        assert_eq!(subject.rows(&p), before);
    }
}

/// Guards look at what is committed, never at the writes of their own batch.
pub fn guards_see_committed_state_only(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(
        &p,
        Batch::new().require_absent("k").put("k", "1").put("k", "2"),
    );
    assert_eq!(subject.get(&p, "k"), Some("2".into()));
    let wants_its_own_write = Batch::new().require_equals("k", "3").put("k", "3");
    assert_eq!(subject.apply(&p, wants_its_own_write), lost(0, Some("2")));
    let wants_its_own_delete = Batch::new().require_absent("k").delete("k");
    assert_eq!(subject.apply(&p, wants_its_own_delete), lost(0, Some("2")));
    subject.commit(
        &p,
        Batch::new()
            .require_present("k")
            .require_equals("k", "2")
            .delete("k"),
    );
    assert_eq!(subject.get(&p, "k"), None);
}

/// A guard on the key that the batch writes is a guard like any other, whether it holds or not.
pub fn a_guard_on_the_written_key_is_a_guard(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let insert = Batch::new().require_absent("k").put("k", "1");
    subject.commit(&p, insert.clone());
    assert_eq!(subject.apply(&p, insert), lost(0, Some("1")));
    let update = Batch::new().require_equals("k", "1").put("k", "2");
    subject.commit(&p, update.clone());
    assert_eq!(subject.apply(&p, update), lost(0, Some("2")));
    let overwrite = Batch::new().require_present("k").put("k", "3");
    subject.commit(&p, overwrite.clone());
    let remove = Batch::new().require_present("k").delete("k");
    subject.commit(&p, remove.clone());
    assert_eq!(subject.apply(&p, remove.put("other", "x")), lost(0, None));
    assert_eq!(subject.apply(&p, overwrite), lost(0, None));
    let remove_exactly = Batch::new().require_equals("k", "1").delete("k");
    assert_eq!(subject.apply(&p, remove_exactly), lost(0, None));
    assert_eq!(subject.rows(&p), []);
}

/// A batch without writes checks and changes nothing; an empty one commits.
pub fn a_batch_without_writes_is_a_pure_check(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    subject.commit(&p, Batch::new());
    subject.commit(&p, Batch::new().require_absent("k"));
    assert_eq!(
        subject.apply(&p, Batch::new().require_present("k")),
        lost(0, None)
    );
    assert_eq!(subject.rows(&p), []);
}
