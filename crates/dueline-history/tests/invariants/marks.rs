//! I18 and I19: what is held of many histories.

use dueline_history::{Event, HISTORIES_PER_MARK, Invariant, Marks, What, check_all};

use super::story::{Story, then};

fn marked(name: &'static str) -> Vec<Event> {
    let story = then(&Story::plain(), |it| {
        it.push(What::Mark { name: name.into() });
    });
    story.events
}

#[test]
fn i18_a_history_says_what_it_was_drawn_from() {
    let broken = check_all(&marked("any")[1..]);
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(broken[0].invariant, Invariant::I18);
}

#[test]
fn i19_each_mark_is_reached_once_in_a_thousand_histories() {
    let mut marks = Marks::new(["often", "never"]);
    for _ in 1..HISTORIES_PER_MARK {
        marks.take(&marked("often"));
    }
    assert_eq!(marks.broken(), []);
    marks.take(&marked("often"));
    let broken = marks.broken();
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(broken[0].invariant, Invariant::I19);
    assert!(
        broken[0]
            .text
            .contains("reached 0 times in 1000 histories: never")
    );
    // Another thread reached it.
    let mut others = Marks::new(["often", "never"]);
    others.take(&marked("never"));
    marks.add(&others);
    assert_eq!(marks.broken(), []);
    assert_eq!(marks.histories(), HISTORIES_PER_MARK + 1);
    assert_eq!(marks.counts().get("often"), Some(&HISTORIES_PER_MARK));
}

#[test]
fn i19_a_mark_that_is_in_no_list_is_named() {
    let mut marks = Marks::new(["often"]);
    marks.take(&marked("oftne"));
    let broken = marks.broken();
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].text.contains("in no list of marks: oftne"));
}
