//! The package for Durable Objects: its WebAssembly module, its TypeScript, and its tests in a real workerd.
//!
//! What it needs beside a compiler for the target (see `wasm`): Node 20 or newer with npm, which fetches the
//! TypeScript compiler and workerd as the package's lock file names them; and the wasm-bindgen tool, which is
//! built under `$HOME/.cache/dueline-tools` unless the one in the path has the version of the crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checks::Note;
use crate::process::{Failure, command, output_of, root, run, run_and_keep};
use crate::test_counts::TestCounts;
use crate::wasm::{Compiler, tools_folder};

const PACKAGE: &str = "packages/durable-object";
const MODULE: &str = "dueline_object";
/// The build that has the engine's built-in kinds, for the package's entry `kinds`.
const MODULE_WITH_KINDS: &str = "dueline_object_kinds";
const PROFILE: &str = "object";
/// The optimizer weighs a call as it would on a processor; here only its bytes count, and with a threshold of
/// 0 the module is a tenth smaller.
const MODULE_BUILD: &[&str] = &[
    "--profile",
    PROFILE,
    "--package",
    "dueline-object",
    "--crate-type",
    "cdylib",
    "--",
    "-Cllvm-args=-inline-threshold=0",
];
/// The engine's suites, to be run in an object: built for the tests alone.
const SUITE: &str = "dueline_objectsuite";
const SUITE_PROFILE: &str = "suite";
const SUITE_BUILD: &[&str] = &[
    "--profile",
    SUITE_PROFILE,
    "--package",
    "dueline-objectsuite",
];
/// Test files that run beside each other: most of them wait for alarms.
const FILES_AT_A_TIME: &str = "--test-concurrency=4";
/// What an object loads at a cold start, at most, after gzip.
const GZIP_BYTES_MAX: u64 = 150_000;
/// The same with the built-in kinds.
const GZIP_BYTES_MAX_WITH_KINDS: u64 = 250_000;
const NODE_MIN: u32 = 20;
/// What is compiled against the package: each by the `tsconfig.json` in its folder, or by the file.
const PROJECTS: &[&str] = &[
    "test/worker",
    "test/node",
    "test/clock",
    "test/types",
    "test/consumer",
    "bench/worker",
    "bench/node",
    "examples",
    "examples/tsconfig.test.json",
];
/// What Node's test runner runs in plain Node, where a loader stands in for the platform's modules.
const CLOCK_TESTS: &[&str] = &["dist-test/clock", "dist-examples"];

pub(crate) const USAGE: &str = "object --bench";

pub(crate) fn check() -> Result<Note, Failure> {
    let size = build()?;
    let tests = test()?;
    // Its figures say nothing at this size; it must only not rot.
    bench(&["--tiny"])?;
    Ok(Note {
        text: format!("{size}; node --test; {tests}"),
        warning: None,
        tests: Some(tests),
    })
}

/// The package beside an alarm loop written by hand, in one workerd: `--bench`.
pub(crate) fn measure(options: &[&str]) -> Result<Note, Failure> {
    let ["--bench", options @ ..] = options else {
        return Err(format!("usage: cargo xtask {USAGE}").into());
    };
    let size = build()?;
    bench(options)?;
    Ok(Note::text(size))
}

fn bench(options: &[&str]) -> Result<(), Failure> {
    let main = package().join("dist-bench/bench/node/main.js");
    let main = main.to_string_lossy();
    let mut words = vec![&*main];
    words.extend(options);
    run(in_package(command("node", &words)))
}

/// Builds module and package; says how large the module is.
fn build() -> Result<String, Failure> {
    node()?;
    packages()?;
    let bindgen = bindgen()?;
    let compiler = Compiler::find()?;
    let plain = module(&bindgen, &compiler, MODULE, &[], GZIP_BYTES_MAX)?;
    let kinds = &["--features", "kinds"];
    let kinds = module(
        &bindgen,
        &compiler,
        MODULE_WITH_KINDS,
        kinds,
        GZIP_BYTES_MAX_WITH_KINDS,
    )?;
    let size = format!("module {plain}; with the built-in kinds {kinds}");
    // A test whose source is gone would run on from its compiled form.
    for folder in
        ["dist", "dist-test", "dist-bench", "dist-examples"].map(|name| package().join(name))
    {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|error| format!("{} could not be emptied: {error}", folder.display()))?;
        }
    }
    compile(".")?;
    compile("testing")?;
    for module in [MODULE, MODULE_WITH_KINDS] {
        for end in [".js", ".d.ts", "_bg.wasm"] {
            copy(
                &package().join("src/generated"),
                &package().join("dist/generated"),
                &format!("{module}{end}"),
            )?;
        }
    }
    // What npm packs lies in the package's folder.
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root(), &package(), licence)?;
    }
    compiler.cargo("build", SUITE_BUILD)?;
    let built = compiler.artefacts(SUITE_PROFILE);
    bind(
        &bindgen,
        &built.join(format!("{SUITE}.wasm")),
        SUITE,
        "dist-test/suite",
    )?;
    for project in PROJECTS {
        compile(project)?;
    }
    Ok(size)
}

/// One build of the module, its size within the limit.
fn module(
    bindgen: &Path,
    compiler: &Compiler,
    name: &str,
    features: &[&str],
    gzip_bytes_max: u64,
) -> Result<String, Failure> {
    compiler.cargo("rustc", &[features, MODULE_BUILD].concat())?;
    let built = compiler.artefacts(PROFILE).join(format!("{MODULE}.wasm"));
    bind(bindgen, &built, name, "src/generated")?;
    let bound = package().join(format!("src/generated/{name}_bg.wasm"));
    shrink(&bound)?;
    size(&bound, gzip_bytes_max)
}

fn test() -> Result<TestCounts, Failure> {
    let register = "--import=@dueline/durable-object/testing/register";
    let mut tests = run_tests(register, CLOCK_TESTS)?;
    let in_workerd = run_tests("--no-warnings", &["dist-test/node"])?;
    tests.passed += in_workerd.passed;
    tests.ignored += in_workerd.ignored;
    Ok(tests)
}

fn run_tests(word: &str, folders: &[&str]) -> Result<TestCounts, Failure> {
    let mut words = vec![word, "--test", "--test-reporter=spec", FILES_AT_A_TIME];
    words.extend(folders);
    let (lines, success) = run_and_keep(in_package(command("node", &words)))?;
    let counts = counts(&lines);
    if !success || counts.failed > 0 {
        return Err(Failure {
            text: format!("node --test failed; {counts}"),
            tests: Some(counts),
        });
    }
    if counts.passed == 0 {
        return Err("node --test ran no test: its summary was not found"
            .to_owned()
            .into());
    }
    Ok(counts)
}

fn package() -> PathBuf {
    root().join(PACKAGE)
}

fn in_package(mut command: Command) -> Command {
    command.current_dir(package());
    command
}

fn node() -> Result<(), Failure> {
    let version = output_of("node", &["--version"]).unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= NODE_MIN => Ok(()),
        _ => Err(format!("needs Node {NODE_MIN} or newer, found {version:?}").into()),
    }
}

/// The tools of the package, once for each state of its lock file. None of them needs its install script.
fn packages() -> Result<(), Failure> {
    let lock = read(&package().join("package-lock.json"))?;
    let installed = package().join("node_modules/.dueline-lock.json");
    if fs::read_to_string(&installed).is_ok_and(|text| text == lock) {
        return Ok(());
    }
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    run(in_package(command("npm", &words)))?;
    write(&installed, &lock)
}

/// The tool of the crate's version: from the path, or built.
fn bindgen() -> Result<PathBuf, Failure> {
    let lock = read(&root().join("Cargo.lock"))?;
    let mut lines = lock.lines();
    lines.find(|line| *line == "name = \"wasm-bindgen\"");
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix("version = \""))
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or_else(|| Failure::from("Cargo.lock does not name wasm-bindgen".to_owned()))?;
    let tools = tools_folder()?;
    let built = tools.join("bin/wasm-bindgen");
    for tool in [PathBuf::from("wasm-bindgen"), built.clone()] {
        let found = output_of(&tool.to_string_lossy(), &["--version"]);
        if found.is_some_and(|found| found.trim() == format!("wasm-bindgen {version}")) {
            return Ok(tool);
        }
    }
    let folder = tools.to_string_lossy();
    let words = ["install", "wasm-bindgen-cli", "--version", version];
    let features = ["--no-default-features", "--bin", "wasm-bindgen", "--force"];
    let mut install = command("cargo", &words);
    install.args(features).args(["--root", &folder]);
    install.env("CARGO_TARGET_DIR", tools.join("wasm-bindgen-target"));
    run(install)?;
    Ok(built)
}

/// Writes the JavaScript beside the module, for a platform that gives a module for a plain import.
fn bind(bindgen: &Path, module: &Path, name: &str, out: &str) -> Result<(), Failure> {
    let out = package().join(out);
    let words = [
        "--target",
        "module",
        "--out-name",
        name,
        "--remove-name-section",
        "--remove-producers-section",
        "--experimental-reset-state-function",
        "--out-dir",
        &out.to_string_lossy(),
        &module.to_string_lossy(),
    ];
    run(command(&bindgen.to_string_lossy(), &words))?;
    let script = out.join(format!("{name}.js"));
    let text = read(&script)?;
    if !text.contains("import source ") {
        return Err("the import of the module was not found".to_owned().into());
    }
    write(&script, &text.replacen("import source ", "import ", 1))?;
    // Only a library newer than ES2024 knows this name, and a project that checks its libraries would not compile.
    let types = out.join(format!("{name}.d.ts"));
    let lines = read(&types)?;
    let known = lines
        .lines()
        .filter(|line| !line.contains("[Symbol.dispose]"));
    let known: String = known.flat_map(|line| [line, "\n"]).collect();
    write(&types, &known)
}

/// What the compiler and wasm-bindgen make use of. With all that the optimizer knows it would write what only
/// the newest engines read.
const FEATURES: &[&str] = &[
    "--mvp-features",
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-multivalue",
    "--enable-reference-types",
];

/// What the optimizer of modules still finds. It must leave traps alone: the package recovers from them.
fn shrink(module: &Path) -> Result<(), Failure> {
    let tool = package().join("node_modules/binaryen/bin/wasm-opt");
    let (tool, module) = (tool.to_string_lossy(), module.to_string_lossy());
    let words = [&*tool, "-Os", "--strip-target-features"];
    let mut shrink = command("node", &words);
    shrink.args(FEATURES).args([&*module, "-o", &module]);
    run(shrink)
}

fn size(module: &Path, gzip_bytes_max: u64) -> Result<String, Failure> {
    let bytes = fs::metadata(module).map_or(0, |found| found.len());
    let gzip = "const { readFileSync } = require('fs'); const { gzipSync } = require('zlib'); \
                console.log(gzipSync(readFileSync(process.argv[1]), { level: 9 }).length)";
    let gzipped = output_of("node", &["-e", gzip, &module.to_string_lossy()])
        .and_then(|text| text.trim().parse::<u64>().ok())
        .ok_or_else(|| Failure::from("the size of the module could not be taken".to_owned()))?;
    let size = format!("{bytes} bytes, {gzipped} after gzip");
    if gzipped > gzip_bytes_max {
        return Err(format!(
            "{} has {size}: more than {gzip_bytes_max}",
            module.display()
        )
        .into());
    }
    Ok(size)
}

fn compile(project: &str) -> Result<(), Failure> {
    let compiler = package().join("node_modules/typescript/bin/tsc");
    let words = [&*compiler.to_string_lossy(), "--project", project];
    run(in_package(command("node", &words)))
}

/// The summary of Node's test runner: `pass 27`, `fail 0`, each behind a sign.
fn counts(lines: &[String]) -> TestCounts {
    let mut counts = TestCounts::default();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, what, number] = words.as_slice() else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match *what {
            "pass" => counts.passed += number,
            "fail" | "cancelled" => counts.failed += number,
            "skipped" | "todo" => counts.ignored += number,
            _ => {}
        }
    }
    counts
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| format!("{} could not be read: {error}", path.display()).into())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| format!("{} could not be written: {error}", path.display()).into())
}

fn copy(from: &Path, to: &Path, file: &str) -> Result<(), Failure> {
    let done = fs::create_dir_all(to).and_then(|()| fs::copy(from.join(file), to.join(file)));
    done.map(drop)
        .map_err(|error| format!("{file} could not be copied to {}: {error}", to.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_nodes_test_runner_is_read() {
        let lines =
            "i tests 9\ni pass 5\ni fail 1\ni cancelled 1\ni skipped 2\ni todo 0\nok all pass 7";
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        let counts = counts(&lines);
        assert_eq!((counts.passed, counts.failed, counts.ignored), (5, 2, 2));
    }
}
