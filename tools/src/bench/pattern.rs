//! The small pattern language of `--benchmark_filter`: `.`, `*` after a character, `^`, `$`, `|`; a leading `-` negates.

/// Whether `name` is selected. An empty pattern, `.` and `all` select everything.
pub(super) fn selects(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('-') {
        Some(pattern) => !matches(pattern, name),
        None => pattern == "all" || matches(pattern, name),
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    pattern.split('|').any(|alternative| {
        let tokens = tokens(alternative.strip_prefix('^').unwrap_or(alternative));
        let last = if alternative.starts_with('^') { 0 } else { name.len() };
        (0..=last).any(|start| matches_here(&tokens, &name, start))
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    One(char),
    Any,
    Repeat(Option<char>),
    End,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let unit = match c {
            '.' => None,
            '\\' => Some(chars.next().unwrap_or('\\')),
            '$' if chars.peek().is_none() => {
                tokens.push(Token::End);
                break;
            }
            other => Some(other),
        };
        tokens.push(match (chars.next_if_eq(&'*'), unit) {
            (Some(_), unit) => Token::Repeat(unit),
            (None, Some(c)) => Token::One(c),
            (None, None) => Token::Any,
        });
    }
    tokens
}

/// Follows all ways through the pattern at once, so that no pattern takes long.
fn matches_here(tokens: &[Token], name: &[char], start: usize) -> bool {
    let mut states = vec![false; tokens.len() + 1];
    states[0] = true;
    for position in start..=name.len() {
        for i in 0..tokens.len() {
            let skip = match tokens[i] {
                Token::Repeat(_) => true,
                Token::End => position == name.len(),
                _ => false,
            };
            states[i + 1] |= states[i] && skip;
        }
        if states[tokens.len()] {
            return true;
        }
        let Some(c) = name.get(position) else { return false };
        let mut next = vec![false; states.len()];
        for i in 0..tokens.len() {
            match tokens[i] {
                Token::One(wanted) => next[i + 1] |= states[i] && wanted == *c,
                Token::Any => next[i + 1] |= states[i],
                Token::Repeat(unit) => next[i] |= states[i] && unit.is_none_or(|u| u == *c),
                Token::End => {}
            }
        }
        states = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, yes, no) in [
            ("add", "BM_add", "BM_sub"),
            ("^BM_a", "BM_add", "xBM_add"),
            ("dd$", "BM_add", "BM_adding"),
            ("a.d", "BM_add", "BM_ad"),
            ("BM_a.*g$", "BM_adding", "BM_add"),
            ("add|sub", "BM_sub", "BM_mul"),
            ("ad*$", "BM_a", "BM_adx"),
            ("a\\.b", "BM_a.b", "BM_axb"),
            ("-add", "BM_sub", "BM_add"),
        ] {
            assert!(selects(pattern, yes), "{pattern} {yes}");
            assert!(!selects(pattern, no), "{pattern} {no}");
        }
        assert!(selects("", "x") && selects(".", "x") && selects("all", "x"));
    }

    #[test]
    fn hard_patterns_end() {
        let name = "a".repeat(300);
        assert!(!selects(&format!("{}b", "a*".repeat(50)), &name));
    }
}
