//! Goal: plans of the built-in kinds share a batch only if none undoes another. Method: the cases of the
//! suite on the store in memory and on SQLite; with the check left out, each of those that expect a refusal
//! fails.
#![cfg(test)]

mod support;

dueline_kindsuite::on_stores!(plans;
    two_tickets_of_one_actor_are_not_opened_in_one_batch,
    two_tickets_of_one_resource_do_not_end_in_one_batch,
    two_ends_are_not_told_to_one_outbox_in_one_batch,
    a_lease_is_not_granted_twice_in_one_batch,
);

#[cfg(dueline_mutants)]
#[test]
fn plans_that_overwrite_each_other_are_caught() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use dueline::mutants::{Mutant, with_planted};
    use dueline_kindsuite::{Make, plans, world};

    let cases: [fn(Make<'_>); 4] = [
        plans::two_tickets_of_one_actor_are_not_opened_in_one_batch,
        plans::two_tickets_of_one_resource_do_not_end_in_one_batch,
        plans::two_ends_are_not_told_to_one_outbox_in_one_batch,
        plans::a_lease_is_not_granted_twice_in_one_batch,
    ];
    for case in cases {
        let run = AssertUnwindSafe(|| case(&world::memory));
        let broken = with_planted(Mutant::PlansOverwriteEachOther, || catch_unwind(run));
        assert!(broken.is_err());
    }
}
