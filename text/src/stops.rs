//! Texts that end what a model writes, found while it writes.

/// Texts that end an answer. What may be the beginning of one is held back until it is sure what it is.
#[derive(Clone, Debug, Default)]
pub struct StopTexts {
    all: Vec<String>,
    /// What may be the beginning of one.
    held: String,
}

impl StopTexts {
    /// Looks for these. Empty ones are left out: they would end every answer.
    pub fn new(all: impl IntoIterator<Item = impl Into<String>>) -> StopTexts {
        let all = all.into_iter().map(Into::into).filter(|text: &String| !text.is_empty());
        StopTexts { all: all.collect(), held: String::new() }
    }

    /// Takes the next text. Gives what is sure not to be part of one of them, and whether one is there: what comes after it, and the
    /// text itself, are dropped.
    pub fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        let found = self.all.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(at) = found {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let may_begin = |at: &usize| {
            let rest = &self.held[*at..];
            self.all.iter().any(|stop| stop.starts_with(rest))
        };
        let at = self.held.char_indices().map(|(at, _)| at).find(may_begin).unwrap_or(self.held.len());
        let rest = self.held.split_off(at);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// What was held back, when nothing comes any more.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::StopTexts;

    #[test]
    fn texts_that_end_an_answer_are_not_told() {
        let mut stops = StopTexts::new(["END", "\n\n", ""]);
        assert_eq!(stops.push("a E"), ("a ".to_owned(), false));
        assert_eq!(stops.push("N"), (String::new(), false));
        assert_eq!(stops.push("é\n"), ("ENé".to_owned(), false));
        assert_eq!(stops.push("b"), ("\nb".to_owned(), false));
        assert_eq!(stops.push("c\n\nEND"), ("c".to_owned(), true));
        assert_eq!(stops.finish(), "");
    }

    #[test]
    fn what_was_held_back_comes_in_the_end() {
        let mut stops = StopTexts::new(["END"]);
        assert_eq!(stops.push("the EN"), ("the ".to_owned(), false));
        assert_eq!(stops.finish(), "EN");
        assert_eq!(StopTexts::default().push("all of it"), ("all of it".to_owned(), false));
    }
}
