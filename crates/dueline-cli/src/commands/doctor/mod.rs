//! `dueline doctor`: looks a data directory over and says what a person should know.

mod clock;
mod findings;
mod report;

use std::process::ExitCode;
use std::sync::Arc;

use dueline_sqlite::Options;
use dueline_sqlite::inspect::{inspect, repair_wakes};

use crate::arguments::Doctor;
use crate::failure::Failure;
use crate::output::Output;
use clock::WallClock;
use findings::{Level, findings};

/// The database in a data directory.
const DATABASE: &str = "dueline.db";
/// Its log.
const LOG: &str = "dueline.db-wal";

pub(crate) fn run(doctor: &Doctor, output: &Output) -> Result<ExitCode, Failure> {
    if !doctor.data.is_dir() {
        return Err(Failure::NoDataDirectory {
            path: doctor.data.clone(),
        });
    }
    let database = doctor.data.join(DATABASE);
    // A log without its database is a finding, which inspecting it says.
    if !database.exists() && !doctor.data.join(LOG).exists() {
        return Err(Failure::NoDatabase { path: database });
    }
    let mut repaired = None;
    if doctor.repair {
        let options = Options::new(Arc::new(WallClock));
        repaired = Some(
            repair_wakes(&database, &options)
                .map_err(Failure::Database)?
                .count,
        );
    }
    let now_ms = WallClock::now_ms();
    let inspection = inspect(&database, now_ms).map_err(Failure::Database)?;
    let findings = findings(&inspection, now_ms, repaired);
    report::show(&database, &inspection, &findings, output)?;
    let worried = findings
        .iter()
        .any(|finding| finding.level == Level::Problem);
    Ok(if worried {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
