//! The command line of the simulator.
use dueline_sim::{Plan, run};
fn main() {
    let a: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let (first, count) = (a[0], a[1]);
    let began = std::time::Instant::now();
    let mut bad = 0;
    let mut marks = std::collections::BTreeMap::new();
    let mut events = 0;
    for seed in first..first + count {
        let outcome = run(&Plan::of(seed));
        events += outcome.events.len();
        let mut outcome = outcome;
        for b in dueline_history::check_all(&outcome.events) {
            outcome.broken.push(b.to_string());
        }
        for (mark, n) in outcome.marks {
            *marks.entry(mark).or_insert(0) += n;
        }
        if !outcome.broken.is_empty() {
            bad += 1;
            if bad < 10 {
                println!("seed {seed}: {:?}", outcome.broken);
            }
        }
        if count == 1 {
            for e in &outcome.events {
                println!("{}", serde_json::to_string(e).unwrap());
            }
        }
    }
    let s = began.elapsed().as_secs_f64();
    println!(
        "{bad} bad of {count}, {:.1} seeds/s, {events} events, {marks:#?}",
        count as f64 / s
    );
}
