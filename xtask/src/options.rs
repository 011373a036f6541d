//! Options of the hunts: `--name N`, and at most one word beside them.

/// What was given behind a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options<'a> {
    numbers: Vec<(&'a str, u64)>,
    /// The word that is no option.
    pub(crate) word: Option<&'a str>,
}

impl<'a> Options<'a> {
    /// Reads the arguments of a command that knows these options, each with a whole number.
    pub(crate) fn read(arguments: &[&'a str], known: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if !argument.starts_with('-') {
                if options.word.replace(argument).is_some() {
                    return Err(format!("one word at a time: `{argument}` is too much"));
                }
                continue;
            }
            if !known.contains(argument) {
                let known = known.join(", ");
                return Err(format!("there is no option `{argument}`; there is {known}"));
            }
            let number = rest.next().and_then(|text| text.parse().ok());
            let number = number.filter(|number| *number > 0);
            match number {
                Some(number) => options.numbers.push((argument, number)),
                None => return Err(format!("`{argument}` takes a whole number from 1")),
            }
        }
        Ok(options)
    }

    /// The number of an option; the last one counts.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let mut given = self.numbers.iter().rev();
        given
            .find(|(given, _)| *given == name)
            .map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["--kills", "--first-seed"];

    #[test]
    fn numbers_and_a_word_are_read() {
        let options = Options::read(&["--kills", "20", "word", "--kills", "40"], KNOWN);
        let options = options.expect("sound options");
        assert_eq!(options.number("--kills"), Some(40));
        assert_eq!(options.number("--first-seed"), None);
        assert_eq!(options.word, Some("word"));
    }

    #[test]
    fn what_is_unknown_or_no_number_is_refused() {
        for wrong in [
            &["--kill", "1"][..],
            &["--kills"],
            &["--kills", "0"],
            &["--kills", "many"],
            &["a", "b"],
        ] {
            assert!(Options::read(wrong, KNOWN).is_err(), "{wrong:?}");
        }
    }
}
