//! How names are compared: spelling without separators, words of a marketing name, and edit distance.

/// A name as look-ups compare it: lower case, without `-`, `_`, `.` and spaces. `Mali-G78` and `mali_g78` are equal.
pub(crate) fn normalized(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

/// The words of a name: letters and digits apart, lower case, without trademark signs.
/// `Intel(R) Arc(TM) A770` is `intel arc a 770`; `RTX 3080Ti` is `rtx 3080 ti`.
pub(crate) fn words(name: &str) -> Vec<String> {
    let lower = name.to_lowercase().replace("(r)", " ").replace("(tm)", " ").replace("(c)", " ");
    let mut words: Vec<String> = Vec::new();
    let mut last = None;
    for c in lower.chars() {
        let kind = if c.is_ascii_digit() {
            Some(true)
        } else if c.is_alphabetic() {
            Some(false)
        } else {
            None
        };
        match (kind, words.last_mut()) {
            (Some(_), Some(word)) if kind == last => word.push(c),
            (Some(_), _) => words.push(c.to_string()),
            (None, _) => {}
        }
        last = kind;
    }
    words
}

/// Position after `part` in `all`, where `part` occurs as a run of whole words. An empty part occurs nowhere.
pub(crate) fn find_words(all: &[String], part: &[String]) -> Option<usize> {
    if part.is_empty() {
        return None;
    }
    all.windows(part.len()).position(|w| w == part).map(|at| at + part.len())
}

/// The number that names a product within its series: the first one of its name.
pub(crate) fn number(words: &[String]) -> Option<u32> {
    words.iter().find_map(|w| w.parse().ok())
}

/// Up to three of `known` that are spelled like `text`, nearest first: at most a third of the letters differ.
pub(crate) fn near<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    /// Longer texts are nobody's misspelling, and comparing them would take long.
    const LONGEST: usize = 64;
    if text.chars().count() > LONGEST {
        return Vec::new();
    }
    let wanted = normalized(text);
    let limit = (wanted.chars().count() / 3).clamp(1, 4);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (distance(&wanted, &normalized(name)), name))
        .filter(|(d, _)| *d <= limit)
        .collect();
    found.sort_unstable();
    found.dedup_by_key(|(_, name)| *name);
    found.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Levenshtein distance: insertions, deletions and replacements of one character.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replace = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_names() {
        assert_eq!(words("Intel(R) Arc(TM) A770 Graphics (DG2)").join(" "), "intel arc a 770 graphics dg 2");
        assert_eq!(words("RTX 3080Ti").join(" "), "rtx 3080 ti");
        assert_eq!(words("").len(), 0);
        assert_eq!(number(&words("AMD Radeon RX 7900 XTX")), Some(7900));
        assert_eq!(number(&words("x 99999999999999999999")), None);
    }

    #[test]
    fn runs_of_words() {
        let all = words("AMD Radeon RX 7900 XTX (RADV NAVI31)");
        assert_eq!(find_words(&all, &words("rx7900 XTX")), Some(5));
        assert_eq!(find_words(&all, &words("RX 7900 XT")), None);
        assert_eq!(find_words(&all, &[]), None);
    }

    #[test]
    fn near_names() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(near("amper", ["ampere", "hopper", "adreno"]), ["ampere"]);
        assert!(near("zzzzzzzz", ["ampere"]).is_empty());
        assert!(near(&"a".repeat(1000), ["ampere"]).is_empty());
    }
}
