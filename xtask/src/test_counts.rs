//! Reads how many tests ran from the output of `cargo nextest run` and of `cargo test`.

use std::fmt;

/// How many tests passed, failed and were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl TestCounts {
    /// Adds up every summary line found. Both tools print numbers before the words they belong to:
    /// `Summary [0.1s] 3 tests run: 3 passed (1 slow), 0 skipped` and `test result: ok. 3 passed; 0 failed; ...`.
    pub(crate) fn read(lines: &[String]) -> Self {
        lines
            .iter()
            .map(String::as_str)
            .filter(|line| is_summary(line))
            .map(Self::read_line)
            .fold(Self::default(), Self::plus)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }

    fn read_line(line: &str) -> Self {
        let mut counts = Self::default();
        let mut number = 0;
        for word in line
            .split([' ', ',', ';', ':', '.', '(', ')'])
            .filter(|word| !word.is_empty())
        {
            match word {
                "passed" => counts.passed += number,
                "failed" | "timed" | "exec" => counts.failed += number,
                "ignored" | "skipped" => counts.ignored += number,
                _ => {}
            }
            number = word.parse().unwrap_or(0);
        }
        counts
    }
}

/// nextest repeats the output of a failed test, its inner summary included, but indents it.
fn is_summary(line: &str) -> bool {
    line.trim_start().starts_with("Summary [") || line.starts_with("test result:")
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tests: {} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} left out", self.ignored)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (u64, u64, u64) {
        let counts = TestCounts::read(&[line.to_owned()]);
        (counts.passed, counts.failed, counts.ignored)
    }

    #[test]
    fn the_summary_of_nextest_is_read() {
        let line = "     Summary [   1.204s] 12 tests run: 9 passed (1 slow), 2 failed, 1 timed out, 4 skipped";
        assert_eq!(read(line), (9, 3, 4));
        let repeated = "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured";
        assert_eq!(read(repeated), (0, 0, 0));
    }

    #[test]
    fn the_result_lines_of_cargo_test_are_added_up() {
        let line = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s";
        assert_eq!(read(line), (5, 0, 1));
        let twice = [
            line.to_owned(),
            "noise: 7 passed".to_owned(),
            line.to_owned(),
        ];
        assert_eq!(TestCounts::read(&twice).passed, 10);
    }
}
