//! Copies the product's sources to where they are compiled for the model checkers.
//!
//! A copy is the file as it is outside of tests, but for three things: `std::sync` and `std::thread` become
//! the checker's, `crate` becomes the module the copy lies in, and at the places listed in `src/bugs.rs` a
//! switch chooses between the line as it is and a bug.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/bugs.rs"]
#[allow(
    unreachable_pub,
    reason = "public in the library, which shows its bugs to tests"
)]
mod bugs;

/// Some files of one crate, for one checker.
struct Copy {
    checker: &'static str,
    /// The name of the module and of the folder of the copy.
    part: &'static str,
    package: &'static str,
    files: Files,
}

enum Files {
    /// These alone; each folder's `mod.rs` is what is given here.
    Some(
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
    ),
    All,
}

const COPIES: &[Copy] = &[
    Copy {
        checker: "under_loom",
        part: "driver",
        package: "dueline-tokio",
        files: Files::Some(
            &[
                "busy.rs",
                "looks.rs",
                "mutants.rs",
                "signal.rs",
                "work/executor.rs",
                "work/pool.rs",
            ],
            &[
                (
                    "lib.rs",
                    "pub(crate) mod busy; pub(crate) mod looks; pub(crate) mod mutants; pub(crate) mod signal; pub(crate) mod work;",
                ),
                (
                    "work/mod.rs",
                    "mod executor; mod pool; pub(crate) use pool::{Pool, Stage};",
                ),
            ],
        ),
    },
    Copy {
        checker: "under_loom",
        part: "store",
        package: "dueline-sqlite",
        files: Files::Some(
            &[
                "error.rs",
                "foreign.rs",
                "gate.rs",
                "inbox.rs",
                "oneshot.rs",
            ],
            &[(
                "lib.rs",
                "pub(crate) mod error; pub(crate) mod foreign; pub(crate) mod gate; pub(crate) mod inbox; \
                 pub(crate) mod oneshot;",
            )],
        ),
    },
    Copy {
        checker: "under_shuttle",
        part: "driver",
        package: "dueline-tokio",
        files: Files::All,
    },
    Copy {
        checker: "under_shuttle",
        part: "store",
        package: "dueline-sqlite",
        files: Files::All,
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/bugs.rs");
    let mut unplaced: Vec<&str> = bugs::BUGS
        .iter()
        .chain(bugs::SEAMS)
        .map(|bug| bug.name)
        .collect();
    for copy in COPIES {
        let from = here.join("..").join(copy.package).join("src");
        println!("cargo::rerun-if-changed={}", from.display());
        let to = out.join(copy.checker).join(copy.part);
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        let names = match copy.files {
            Files::All => sources(&from, Path::new(""))?,
            Files::Some(names, written) => {
                for (name, text) in written {
                    write(&to.join(name), text)?;
                }
                names.iter().map(PathBuf::from).collect()
            }
        };
        for name in names {
            let text = fs::read_to_string(from.join(&name))?;
            let path = format!("{}/src/{}", copy.package, name.display());
            let text = with_bugs(&path, text, &mut unplaced);
            write(&to.join(&name), &moved(&text, copy))?;
        }
    }
    write(&out.join("unplaced.rs"), &format!("&{unplaced:?}"))?;
    Ok(())
}

/// The Rust files under a folder, named from it.
fn sources(root: &Path, folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(sources(root, &name)?);
        } else if name.extension().is_some_and(|ending| ending == "rs") {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// The text with a switch at the place of each bug of this file. A bug whose place is not found once
/// is left out, which a test reports.
fn with_bugs(path: &str, mut text: String, unplaced: &mut Vec<&str>) -> String {
    for bug in bugs::BUGS
        .iter()
        .chain(bugs::SEAMS)
        .filter(|bug| bug.file == path)
    {
        if text.matches(bug.place).count() == 1 {
            text = text.replace(bug.place, bug.switch);
            unplaced.retain(|name| *name != bug.name);
        }
    }
    text
}

/// The text as it must be to compile as a part of this crate under a checker.
fn moved(text: &str, copy: &Copy) -> String {
    let Copy { checker, part, .. } = copy;
    // What is written for a whole crate cannot stand inside of another.
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("//!") && !line.starts_with("#!["))
        .map(|line| {
            // What is static outlives a schedule, and tests beside each other share it: it stays `std`'s.
            if line.trim_start().starts_with("static ") {
                line.replace("Atomic", "WEAVE::statics::Atomic")
            } else {
                line.to_owned()
            }
        });
    let text: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    text.replace("#[cfg(test)]", "#[cfg(any())]")
        .replace("#[cfg(not(test))]", "")
        .replace("crate::", &format!("crate::{checker}::{part}::"))
        .replace("std::sync::", &format!("crate::{checker}::sync::"))
        .replace("std::thread", &format!("crate::{checker}::thread"))
        .replace(
            "thread_local! {",
            &format!("crate::{checker}::thread_local! {{"),
        )
        .replace("WEAVE::", "crate::")
}

fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(())
}
