//! Which part of many cases of one kind a run takes.

/// Names the part, as `2/3`: the second of three. `cargo xtask test` sets it, so that each driver gets a part.
pub const PART: &str = "HALITE_TEST_PART";

/// A part of a list of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    place: usize,
    of: usize,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { place: 0, of: 1 };

    /// What the environment asks for; the whole, if nothing.
    ///
    /// # Panics
    /// If the variable holds something else: a test that ran nothing would pass.
    pub fn wanted() -> Part {
        let Ok(text) = std::env::var(PART) else { return Part::WHOLE };
        Part::parse(&text).unwrap_or_else(|| panic!("{PART} is '{text}'; a part is told as 2/3"))
    }

    fn parse(text: &str) -> Option<Part> {
        let (place, of) = text.split_once('/')?;
        let (place, of): (usize, usize) = (place.parse().ok()?, of.parse().ok()?);
        (1..=of).contains(&place).then(|| Part { place: place - 1, of })
    }

    /// How many parts there are.
    pub fn count(self) -> usize {
        self.of
    }

    /// Those of a list that are in this part: every so many, each in one part.
    pub fn of<T>(self, cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        cases.into_iter().skip(self.place).step_by(self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_together() {
        assert_eq!(Part::WHOLE.of(0..5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let parts: Vec<Vec<_>> =
            ["1/3", "2/3", "3/3"].map(|text| Part::parse(text).unwrap().of(0..5).collect()).into();
        assert_eq!(parts, [vec![0, 3], vec![1, 4], vec![2]]);
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["", "2", "0/2", "3/2", "1/0", "a/b", "1/2/3"] {
            assert_eq!(Part::parse(text), None, "{text}");
        }
    }
}
