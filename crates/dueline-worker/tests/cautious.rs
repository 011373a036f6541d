//! Goal: a handler that takes its instance down ends in the dead class, and takes no other timer with it.
//! Method: a trap is a handler that never returns in an instance that is thrown away then.
#![cfg(test)]

mod home;

use std::pin::pin;

use dueline::timers::{Registration, RetryPolicy, TimerKind};
use dueline_worker::simulated::SimulatedObject;
use dueline_worker::{AlarmInfo, ObjectDriver, ObjectOptions, Start};
use home::handlers::{Seen, notes, traps};
use home::{A, B, Home, START_MS};

const ATTEMPTS: u16 = 3;

fn kinds(home: &Home, seen: &Seen) -> [(TimerKind, Registration); 2] {
    let _home = home;
    let policy = RetryPolicy {
        attempts_max: Some(ATTEMPTS),
        ..RetryPolicy::default()
    };
    [
        (A, Registration::inline(traps(seen)).retry(policy)),
        (B, Registration::inline(notes(seen)).retry(policy)),
    ]
}

fn open(home: &Home, seen: &Seen, start: Start) -> ObjectDriver {
    let driver = home.open(kinds(home, seen), start, ObjectOptions::default());
    home.run(driver.restore()).unwrap();
    driver
}

/// Serves the next alarm up to a trap, if it meets one.
fn serve(home: &Home, driver: &ObjectDriver, seen: &Seen) -> bool {
    let info = home.begin_alarm();
    serve_delivered(home, driver, seen, info)
}

fn serve_delivered(home: &Home, driver: &ObjectDriver, seen: &Seen, info: AlarmInfo) -> bool {
    let before = seen.all().iter().filter(|line| *line == "poison").count();
    {
        let mut alarm = pin!(driver.on_alarm(info));
        for _ in 0..100 {
            if home.turn(alarm.as_mut()).is_ready() {
                home.end_alarm(dueline_worker::simulated::AlarmEnd::Well);
                return false;
            }
            let runs = seen.all().iter().filter(|line| *line == "poison").count();
            if runs > before {
                let now_ms = home.now_ms();
                let trap = |object: &mut SimulatedObject| object.trap(now_ms).unwrap();
                trap(&mut home.object.borrow_mut());
                return true;
            }
        }
    }
    panic!("the alarm neither ends nor traps");
}

fn poison_ends_dead(tells: bool) {
    let home = Home::new();
    let seen = Seen::default();
    let mut driver = open(&home, &seen, Start::Fresh);
    home.schedule(&driver, A, "poison", START_MS + 1_000);
    home.schedule(&driver, B, "good", START_MS + 1_000);
    for _ in 0..60 {
        if home.alarm_ms().is_none() {
            break;
        }
        if serve(&home, &driver, &seen) {
            let start = if tells {
                Start::AfterTrap
            } else {
                Start::Fresh
            };
            driver = open(&home, &seen, start);
        }
    }
    assert_eq!(home.alarm_ms(), None);
    assert!(home.pending(&driver).is_empty());
    let runs = |name: &str| seen.all().iter().filter(|line| *line == name).count();
    assert_eq!(runs("good"), 1);
    // The first run was not counted: nobody knew.
    assert_eq!(runs("poison"), usize::from(ATTEMPTS) + 1);
    let dead = home
        .run(driver.timers().dead(&home.partition, None, None, 10))
        .unwrap();
    assert_eq!(dead.dead.len(), 1);
}

#[test]
fn a_handler_that_traps_ends_in_the_dead_class() {
    poison_ends_dead(true);
}

#[test]
fn it_does_so_too_if_no_instance_is_told_of_the_trap_before_it() {
    poison_ends_dead(false);
}

/// The object is not in memory when its alarm comes, as is usual. Its constructor misses the alarm that is
/// being delivered and sets another, which takes the place of the retry: so no try was ever called one, and a
/// handler that trapped did so again at each millisecond, for ever.
#[test]
fn it_does_so_too_if_every_alarm_makes_its_instance() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = open(&home, &seen, Start::Fresh);
    home.schedule(&driver, A, "poison", START_MS + 1_000);
    let mut last = driver;
    for _ in 0..60 {
        if home.alarm_ms().is_none() {
            break;
        }
        let info = home.begin_alarm();
        last = open(&home, &seen, Start::Fresh);
        serve_delivered(&home, &last, &seen, info);
    }
    assert_eq!(home.alarm_ms(), None);
    assert_eq!(seen.all().len(), usize::from(ATTEMPTS) + 1);
    let dead = last.timers().dead(&home.partition, None, None, 10);
    assert_eq!(home.run(dead).unwrap().dead.len(), 1);
}

#[test]
fn a_retry_runs_each_timer_claimed_and_counted_first() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = open(&home, &seen, Start::Fresh);
    home.schedule(&driver, B, "b", START_MS + 1_000);
    home.begin_alarm();
    let before = home.storage().counts();
    let info = AlarmInfo {
        is_retry: true,
        retry_count: 1,
        scheduled_at_ms: None,
    };
    assert_eq!(home.run(driver.on_alarm(info)).unwrap().total.fired, 1);
    let after = home.storage().counts();
    // The claim, which is durable before the handler runs, and the end.
    assert!(after.transactions - before.transactions >= 2);
    assert!(after.syncs > before.syncs);
}

#[test]
fn an_alarm_that_ends_well_leaves_nothing_to_be_cautious_about() {
    let home = Home::new();
    let seen = Seen::default();
    let driver = open(&home, &seen, Start::Fresh);
    home.schedule(&driver, B, "b", START_MS + 1_000);
    assert!(!serve(&home, &driver, &seen));
    let newer = open(&home, &seen, Start::Fresh);
    home.schedule(&newer, B, "c", START_MS + 2_000);
    let before = home.storage().counts();
    assert!(!serve(&home, &newer, &seen));
    let after = home.storage().counts();
    assert_eq!(after.syncs, before.syncs);
    assert_eq!(after.transactions, before.transactions + 1);
}
