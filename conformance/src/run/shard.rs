//! Parts of runs, for machines that share one.

use std::{fmt, num::NonZeroUsize, str::FromStr};

/// Every n-th case, beginning with one of the first n. All parts together are all cases, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1 to `of`.
    part: usize,
    of: NonZeroUsize,
}

impl Shard {
    /// Whether the case at this place is in it.
    pub fn has(self, index: usize) -> bool {
        index % self.of == self.part - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    /// From `i/n`, with i from 1 to n.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no part of a run; write i/n with i from 1 to n, such as 1/4");
        let (part, of) = text.split_once('/').ok_or_else(wrong)?;
        let part: usize = part.parse().map_err(|_| wrong())?;
        let of: NonZeroUsize = of.parse().map_err(|_| wrong())?;
        if part == 0 || part > of.get() {
            return Err(wrong());
        }
        Ok(Shard { part, of })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn the_parts_are_the_whole() {
        let parts = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>().expect("it is a part"));
        for index in 0..20 {
            assert_eq!(parts.iter().filter(|part| part.has(index)).count(), 1);
        }
        assert_eq!(parts[1].to_string(), "2/3");
        for wrong in ["0/3", "4/3", "1/0", "1", "a/b", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
