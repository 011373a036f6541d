//! Granting, renewing, releasing, and the fence.

use dueline::kinds::lease_sweep::{
    Fence, Grant, LEASE_NAME_BYTES_MAX, LEASE_OWNER_BYTES_MAX, LEASE_SWEEP, LeaseName, LeaseOwner,
    Release, Renewal,
};
use dueline::limits::DUE_MS_MAX;
use dueline::store::{Batch, BatchOutcome};
use dueline::timers::{Fired, Registration, Timer, TimerError, TimerKind};
use dueline_testkit::{block_on, handler};

use super::setting::{Setting, TERM_MS, vacant};
use crate::Make;
use crate::world::START_MS;

pub fn a_lease_has_one_holder(make: Make<'_>) {
    let setting = Setting::new(make);
    assert_eq!(setting.state(), vacant(0, 0));
    let anns = setting.grant("ann");
    assert_eq!((anns.epoch, anns.expires_at_ms), (1, START_MS + TERM_MS));
    assert_eq!(setting.ask("bob"), Grant::Held(anns.clone()));
    assert_eq!(
        setting.ask("ann"),
        Grant::Held(anns.clone()),
        "no second epoch"
    );
    assert_eq!(setting.held(), anns);
    assert_eq!(setting.world.timer_keys().len(), 1);
    assert_eq!(setting.world.timer_keys()[0][2], LEASE_SWEEP.0);
}

pub fn an_expired_lease_is_held_until_it_is_swept(make: Make<'_>) {
    let setting = Setting::new(make);
    let anns = setting.grant("ann");
    setting.world.advance_ms(2 * TERM_MS);
    assert!(anns.has_expired(setting.world.now_ms()));
    assert_eq!(setting.ask("bob"), Grant::Held(anns));
}

pub fn two_grants_of_one_reading_make_one_holder(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let plan = |owner: &'static str| {
        let owner = LeaseOwner::new(owner).unwrap();
        let (store, name) = (world.shared(), setting.name.clone());
        let leases = setting.leases.clone();
        let partition = world.partition.clone();
        block_on(async move {
            let plan = leases.plan_grant(&*store, &partition, &name, &owner, TERM_MS);
            plan.await.unwrap()
        })
    };
    let (first, second) = (plan("ann"), plan("bob"));
    world.commit(first.batch);
    assert!(!world.apply(second.batch).is_committed());
    assert_eq!(setting.held().owner, LeaseOwner::new("ann").unwrap());
    // After a vacancy the epoch's row decides, for the lease's is absent again.
    block_on(setting.leases.release(&world.partition, &setting.name, 1)).unwrap();
    let (third, fourth) = (plan("ann"), plan("bob"));
    world.commit(third.batch);
    block_on(setting.leases.release(&world.partition, &setting.name, 2)).unwrap();
    assert!(
        !world.apply(fourth.batch).is_committed(),
        "its epoch was given already"
    );
    assert_eq!(setting.grant("bob").epoch, 3);
}

pub fn a_grant_commits_with_the_callers_writes_or_not_at_all(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let owner = LeaseOwner::new("ann").unwrap();
    let store = world.shared();
    let plan = || {
        let plan =
            setting
                .leases
                .plan_grant(&*store, &world.partition, &setting.name, &owner, TERM_MS);
        block_on(plan).unwrap()
    };
    world.commit(Batch::new().put("job", "open"));
    let own = Batch::new().require_equals("job", "taken");
    let planned = plan();
    let BatchOutcome::PreconditionFailed { index, .. } =
        world.apply(own.append(planned.batch.clone()))
    else {
        panic!("the caller's guard does not hold");
    };
    assert!(
        !planned.owns_guard(1, index),
        "the guard that was lost is the caller's"
    );
    assert_eq!(setting.state(), vacant(0, 0));
    assert!(world.timer_keys().is_empty());

    let own = Batch::new()
        .require_equals("job", "open")
        .put("job", "taken");
    world.commit(own.append(plan().batch));
    assert_eq!(setting.held().epoch, 1);
    assert_eq!(world.get(&"job".into()), Some("taken".into()));
}

pub fn epochs_grow_over_release_and_sweep(make: Make<'_>) {
    let setting = Setting::new(make);
    let partition = &setting.world.partition;
    assert_eq!(setting.grant("ann").epoch, 1);
    let released = setting.leases.release(partition, &setting.name, 1);
    assert_eq!(block_on(released).unwrap(), Release::Released);
    assert_eq!(setting.state(), vacant(1, 0));
    assert_eq!(setting.grant("bob").epoch, 2);
    setting.world.advance_ms(TERM_MS);
    setting.world.tick_until_quiet(&setting.engine, 5);
    assert_eq!(setting.state(), vacant(2, 0));
    assert_eq!(setting.grant("ann").epoch, 3);
}

pub fn a_renewal_keeps_the_epoch_and_never_shortens(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let first = setting.grant("ann");
    world.advance_ms(10_000);
    let Renewal::Renewed(renewed) = setting.renew(first.epoch) else {
        panic!("held by its owner");
    };
    assert_eq!(renewed.epoch, first.epoch);
    assert_eq!(renewed.expires_at_ms, START_MS + 10_000 + TERM_MS);
    assert_eq!(setting.held(), renewed);
    assert_eq!(
        world.timer_keys().len(),
        2,
        "the new end has a timer of its own"
    );

    let shorter = setting
        .leases
        .renew(&world.partition, &setting.name, first.epoch, 1);
    assert_eq!(
        block_on(shorter).unwrap(),
        Renewal::Renewed(renewed.clone())
    );
    world.clock.jump_wall_ms(-60_000);
    assert_eq!(setting.renew(first.epoch), Renewal::Renewed(renewed));
    assert_eq!(world.timer_keys().len(), 2, "nothing was written");
}

pub fn an_old_epoch_neither_renews_nor_releases(make: Make<'_>) {
    let setting = Setting::new(make);
    let partition = &setting.world.partition;
    let anns = setting.grant("ann");
    block_on(setting.leases.release(partition, &setting.name, anns.epoch)).unwrap();
    assert_eq!(setting.renew(anns.epoch), Renewal::Lost(None));
    let again = setting.leases.release(partition, &setting.name, anns.epoch);
    assert_eq!(block_on(again).unwrap(), Release::Lost(None));

    let bobs = setting.grant("bob");
    assert_eq!(setting.renew(anns.epoch), Renewal::Lost(Some(bobs.clone())));
    let late = setting.leases.release(partition, &setting.name, anns.epoch);
    assert_eq!(block_on(late).unwrap(), Release::Lost(Some(bobs.clone())));
    assert_eq!(setting.held(), bobs);
}

pub fn a_stale_holders_writes_lose_at_the_fence(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let write = |fence: &Fence| world.apply(fence.guard(Batch::new()).put("state", "x"));

    let anns = setting.grant("ann");
    let fence = anns.fence();
    assert!(write(&fence).is_committed());
    world.advance_ms(10_000);
    setting.renew(anns.epoch);
    assert!(
        write(&fence).is_committed(),
        "a renewal does not disturb it"
    );

    world.advance_ms(TERM_MS);
    assert!(
        write(&fence).is_committed(),
        "expired, but nobody else has it"
    );
    let until = anns.fence().until(anns.expires_at_ms);
    let outcome = write(&until);
    assert!(
        matches!(outcome, BatchOutcome::DeadlinePassed { .. }),
        "{outcome:?}"
    );

    world.tick_until_quiet(&setting.engine, 5);
    assert!(!write(&fence).is_committed(), "swept");
    let bobs = setting.grant("bob");
    assert!(!write(&fence).is_committed(), "somebody else's");
    assert!(write(&bobs.fence()).is_committed());
    block_on(
        setting
            .leases
            .release(&world.partition, &setting.name, bobs.epoch),
    )
    .unwrap();
    assert!(!write(&bobs.fence()).is_committed(), "released");
}

pub fn what_is_forgotten_begins_anew(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let store = world.shared();
    let forget = || {
        let plan = setting
            .leases
            .plan_forget(&*store, &world.partition, &setting.name);
        block_on(plan).unwrap()
    };
    setting.grant("ann");
    assert!(!forget().outcome, "somebody holds it");
    block_on(setting.leases.release(&world.partition, &setting.name, 1)).unwrap();
    let planned = forget();
    assert!(planned.outcome);
    world.commit(planned.batch);
    assert!(world.kind_rows().is_empty());
    assert_eq!(setting.grant("ann").epoch, 1);
}

pub fn limits_of_leases_are_refused_with_their_figures(make: Make<'_>) {
    let setting = Setting::new(make);
    for (len, fits) in [
        (0, false),
        (1, true),
        (LEASE_NAME_BYTES_MAX, true),
        (LEASE_NAME_BYTES_MAX + 1, false),
    ] {
        assert_eq!(
            LeaseName::new(vec![b'n'; len]).is_ok(),
            fits,
            "name of {len}"
        );
    }
    for (len, fits) in [
        (0, false),
        (1, true),
        (LEASE_OWNER_BYTES_MAX, true),
        (LEASE_OWNER_BYTES_MAX + 1, false),
    ] {
        assert_eq!(
            LeaseOwner::new(vec![b'o'; len]).is_ok(),
            fits,
            "owner of {len}"
        );
    }
    let owner = LeaseOwner::new("ann").unwrap();
    for term_ms in [0, DUE_MS_MAX - START_MS + 1, u64::MAX] {
        let grant = setting
            .leases
            .grant(&setting.world.partition, &setting.name, &owner, term_ms);
        let error = block_on(grant).unwrap_err();
        assert!(
            matches!(error, TimerError::Invalid(_)),
            "{term_ms}: {error}"
        );
    }
    let longest = setting.leases.grant(
        &setting.world.partition,
        &setting.name,
        &owner,
        DUE_MS_MAX - START_MS,
    );
    assert!(matches!(block_on(longest).unwrap(), Grant::Granted(_)));
}

pub fn a_verb_that_loses_starts_over_and_gives_up_after_eight(make: Make<'_>) {
    let setting = Setting::new(make);
    let world = &setting.world;
    let rival = setting.leases.clone();
    let batch = {
        let owner = LeaseOwner::new("bob").unwrap();
        let store = world.shared();
        let plan = rival.plan_grant(&*store, &world.partition, &setting.name, &owner, TERM_MS);
        block_on(plan).unwrap().batch
    };
    let partition = world.partition.clone();
    world.store.before_commit(1, move |store, _, _| {
        assert!(
            block_on(store.apply(&partition, batch))
                .unwrap()
                .is_committed()
        );
    });
    let Grant::Held(bobs) = setting.ask("ann") else {
        panic!("Bob was first");
    };

    // A writer that renews before each commit of Ann's.
    for nth in 1..=8 {
        let (partition, key, end_ms) = (
            world.partition.clone(),
            world.kind_rows()[1].0.clone(),
            bobs.expires_at_ms + nth,
        );
        world.store.before_commit(nth, move |store, _, _| {
            let value = block_on(store.get(&partition, &key)).unwrap().unwrap();
            let mut value = value.to_vec();
            value[9..17].copy_from_slice(&end_ms.to_be_bytes());
            let put = store.apply(&partition, Batch::new().put(key, value));
            assert!(block_on(put).unwrap().is_committed());
        });
    }
    world.advance_ms(5_000);
    let renewal = setting
        .leases
        .renew(&world.partition, &setting.name, bobs.epoch, TERM_MS);
    let error = block_on(renewal).unwrap_err();
    assert!(matches!(error, TimerError::Contended), "{error}");
}

/// Two timers of one group ask for one lease; the second sees what the first has not committed yet.
pub fn a_handler_grants_through_the_reads_of_its_context(make: Make<'_>) {
    const ASK: TimerKind = TimerKind(16);
    let setting = Setting::new(make);
    let world = &setting.world;
    let (leases, name) = (setting.leases.clone(), setting.name.clone());
    let ask = handler(move |ctx, timer| {
        let (leases, name) = (leases.clone(), name.clone());
        Box::pin(async move {
            let owner = LeaseOwner::new(timer.reference().clone())?;
            let plan = leases.plan_grant(ctx.reads(), ctx.partition(), &name, &owner, TERM_MS);
            let planned = plan.await?;
            let key = [b"answer/", timer.reference().as_ref()].concat();
            let answer = match planned.outcome {
                Grant::Granted(lease) => format!("epoch {}", lease.epoch),
                Grant::Held(_) => "held".to_owned(),
            };
            Ok(Fired::Done(planned.batch.put(key, answer)))
        })
    });
    let engine = world.engine(ASK, Registration::inline(ask).group_max(8));
    for owner in ["ann", "bob"] {
        let timer = Timer::new(ASK, owner).due_at(world.now_ms());
        world.commit(world.timers.plan_new(&timer).unwrap().batch);
    }
    let [_, commits, ..] = world.spent(|| {
        assert_eq!(world.tick(&engine).total.fired, 2);
    });
    assert_eq!(commits, 1, "one group");
    assert_eq!(world.get(&"answer/ann".into()), Some("epoch 1".into()));
    assert_eq!(world.get(&"answer/bob".into()), Some("held".into()));
    assert_eq!(setting.held().owner, LeaseOwner::new("ann").unwrap());
}
