//! The wildcard match that device queries use.

/// Whether `text` fits `pattern`, in which `*` stands for any characters and `?` for exactly one. Case matters.
/// Takes time in the order of the product of the lengths at worst: patterns come from modules.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on when a match fails: after the last star, one character of text further.
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                p += 1;
                retry = Some((p, t));
            }
            Some(&c) if c == '?' || c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((after_star, start)) => {
                    (p, t) = (after_star, start + 1);
                    retry = Some((p, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, fits) in [
            ("vulkan", "vulkan", true),
            ("vulkan", "vulkan2", false),
            ("vulkan*", "vulkan2", true),
            ("local*", "vulkan", false),
            ("*", "", true),
            ("?", "", false),
            ("", "", true),
            ("", "x", false),
            ("v?lk*n", "vulkan", true),
            ("*a*b", "aab", true),
            ("*a*b", "aba", false),
            ("ü?", "üñ", true),
        ] {
            assert_eq!(matches_pattern(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_explode() {
        let text = "a".repeat(2000);
        assert!(!matches_pattern(&("*a".repeat(500) + "b"), &text));
    }
}
