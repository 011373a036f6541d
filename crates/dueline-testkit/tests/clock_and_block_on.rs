//! Goal: time in a test moves only when it is told to, and a future that can never end is reported
//! instead of hanging the run. Method: sleeps are polled by hand and by `block_on`.
#![cfg(test)]

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use dueline::runtime::{Clock, Entropy, Sleep};
use dueline_testkit::{ManualClock, SequenceEntropy, block_on, test_runtime};

#[test]
fn a_sleep_until_a_time_counts_from_nothing_else() {
    let clock = ManualClock::new(0);
    let read_at = clock.monotonic();
    clock.advance_ms(7);
    let nap = clock.sleep_until(read_at + Duration::from_millis(10), &clock);
    clock.advance_ms(3);
    block_on(nap);
    block_on(clock.sleep_until(read_at, &clock));
}

#[test]
fn a_sleep_ends_at_its_time_and_not_a_nanosecond_before() {
    let clock = ManualClock::new(0);
    let mut nap = clock.sleep(Duration::from_millis(10));
    let mut context = Context::from_waker(Waker::noop());
    assert!(nap.as_mut().poll(&mut context).is_pending());
    clock.advance(Duration::from_millis(10) - Duration::from_nanos(1));
    assert!(nap.as_mut().poll(&mut context).is_pending());
    assert_eq!(clock.next_sleep_end(), Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(
        clock.sleepers(),
        0,
        "a sleep that is over is waited for no longer"
    );
    assert!(nap.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_step_of_the_wall_ends_no_sleep_and_moves_no_monotonic_time() {
    let clock = ManualClock::new(5_000);
    let mut nap = clock.sleep(Duration::from_millis(1));
    clock.set_wall_ms(-3);
    clock.jump_wall_ms(2);
    assert_eq!(clock.wall_ms(), -1);
    assert_eq!(clock.monotonic(), Duration::ZERO);
    assert!(
        nap.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    clock.advance_ms(4);
    assert_eq!(clock.wall_ms(), 3);
}

#[test]
fn a_dropped_sleep_is_forgotten() {
    let clock = ManualClock::new(0);
    let mut nap = clock.sleep(Duration::from_millis(1));
    assert!(
        nap.as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert_eq!(clock.sleepers(), 1);
    drop(nap);
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn sleeps_of_one_end_are_all_woken_by_the_advance_that_reaches_it() {
    #[derive(Default)]
    struct Count(std::sync::atomic::AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let clock = ManualClock::new(0);
    let mut naps: Vec<_> = [5, 5, 6]
        .map(|ms| clock.sleep(Duration::from_millis(ms)))
        .into();
    for nap in &mut naps {
        assert!(
            nap.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    }
    clock.advance_ms(5);
    assert_eq!(woken.0.load(std::sync::atomic::Ordering::Relaxed), 2);
    assert_eq!(clock.sleepers(), 1);
}

#[test]
fn block_on_waits_for_another_thread() {
    let clock = ManualClock::new(0);
    let nap = clock.sleep(Duration::from_secs(1));
    let mover = thread::spawn({
        let clock = clock.clone();
        move || {
            while clock.sleepers() == 0 {
                thread::yield_now();
            }
            clock.advance(Duration::from_secs(1));
        }
    });
    block_on(nap);
    mover.join().expect("the thread that moves the clock");
}

#[test]
#[should_panic(expected = "nobody has kept its waker")]
fn block_on_reports_a_future_that_nobody_can_wake() {
    block_on(pending::<()>());
}

#[test]
fn entropy_is_the_same_in_every_run() {
    // The known first outputs of SplitMix64 for this seed.
    let entropy = SequenceEntropy::new(1_234_567);
    assert_eq!(entropy.next_u64(), 6_457_827_717_110_365_317);
    assert_eq!(entropy.next_u64(), 3_203_168_211_198_807_973);
    let (one, two) = (ManualClock::new(0), ManualClock::new(0));
    assert_eq!(
        test_runtime(&one).random_u64(),
        test_runtime(&two).random_u64()
    );
}
