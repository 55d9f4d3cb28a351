//! Patterns of strings: a state machine of the characters of a string, with what is needed to end.

use std::collections::HashMap;

use regex_automata::{
    nfa::thompson::{self, NFA, State},
    util::{look::Look, primitives::StateID, syntax},
};

use super::letters::Letter;

/// States of a pattern, at most, and bytes of what they are made of.
const MOST_STATES: usize = 2000;
const MOST_BYTES: usize = 1 << 18;
/// Letters of a pattern, at most, and groups within each other.
const MOST_LETTERS: usize = 4096;
const MOST_NESTED: u32 = 64;
/// A state from which no match is reached.
const DEAD: u32 = u32::MAX;
/// What a backslash may stand in front of in a string with a pattern, and the bytes that it stands for.
const ESCAPES: [(u8, u8); 8] = [
    (b'"', b'"'),
    (b'\\', b'\\'),
    (b'/', b'/'),
    (b'b', 8),
    (b'f', 12),
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
];

/// A pattern, as a state machine that has no state from which it could not go to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// For each state the next one by the class of a byte.
    next: Vec<u32>,
    classes: Box<[u8; 256]>,
    width: usize,
    ends: Vec<bool>,
    /// How many characters a state needs to its end, at least.
    needs: Vec<u32>,
    least: u32,
    most: u32,
}

/// Where a string is: the state of the pattern, where in a character, and how many characters there are.
pub(super) type At = (u32, Letter, u32);

impl Pattern {
    /// A pattern, as ECMA-262 has them, of strings of so many characters.
    ///
    /// # Errors
    /// Why it is none, or is not supported; `Ok(None)` where no string matches.
    pub fn new(source: &str, (least, most): (u32, u32)) -> Result<Option<Pattern>, String> {
        if source.len() > MOST_LETTERS {
            return Err(format!("it is longer than {MOST_LETTERS} bytes"));
        }
        let nfa = thompson::Compiler::new()
            .configure(thompson::Config::new().nfa_size_limit(Some(MOST_BYTES)))
            .syntax(syntax::Config::new().nest_limit(MOST_NESTED))
            .build(&translated(source))
            .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned())?;
        let known = [Look::Start, Look::End];
        if nfa.look_set_any().iter().any(|look| !known.contains(&look)) {
            return Err("it looks at the beginnings of words or lines".to_owned());
        }
        let mut pattern = Machine::new(&nfa).made()?;
        pattern.measure();
        (pattern.least, pattern.most) = (least, most);
        let need = pattern.needs[0];
        if need == DEAD || need > most {
            return Ok(None);
        }
        match least > need {
            true => Err(format!("'minLength' of {least} beside it, where the shortest match has {need}")),
            false => Ok(Some(pattern)),
        }
    }

    /// The state before a string.
    pub fn begin(&self) -> u32 {
        0
    }

    /// Whether a string may end here.
    pub fn may_end(&self, state: u32) -> bool {
        self.ends[state as usize]
    }

    /// With another byte of the string as JSON has it, which is no quotation mark that ends it.
    pub fn with(&self, (state, letter, count): At, byte: u8) -> Option<At> {
        let begins = letter == Letter::Between;
        let next = letter.with(byte)?;
        let count = if self.most == u32::MAX { 0 } else { count + u32::from(begins) };
        let read = match (letter, next) {
            // What an escape stands for has to be possible.
            (_, Letter::Escape) => {
                let goes_on = ESCAPES.iter().any(|(_, own)| self.reached(state, *own, count).is_some());
                return goes_on.then_some((state, next, count));
            }
            // Characters by their numbers would have to be read first.
            (_, Letter::Hex(..)) => return None,
            (Letter::Escape, _) => ESCAPES.iter().find(|(own, _)| *own == byte)?.1,
            _ => byte,
        };
        Some((self.reached(state, read, count)?, next, count))
    }

    /// The state behind a byte, if a string with so many characters so far may go on there.
    fn reached(&self, state: u32, byte: u8, count: u32) -> Option<u32> {
        let next = self.next(state, byte)?;
        (count.saturating_add(self.needs[next as usize]) <= self.most).then_some(next)
    }

    fn next(&self, state: u32, byte: u8) -> Option<u32> {
        let class = usize::from(self.classes[usize::from(byte)]);
        Some(self.next[state as usize * self.width + class])
            .filter(|next| *next != DEAD && self.needs[*next as usize] != DEAD)
    }

    /// Finds what each state needs to its end.
    fn measure(&mut self) {
        self.needs = self.ends.iter().map(|ends| if *ends { 0 } else { DEAD }).collect();
        let can_be_written = |byte: &u8| *byte >= 0x20 || ESCAPES.iter().any(|(_, own)| own == byte);
        // One byte of each class, of those that follow others and of the rest: the latter count as characters.
        let mut edges: Vec<(u8, u32)> = Vec::new();
        for byte in (0..=255u8).filter(can_be_written) {
            let edge = (self.classes[usize::from(byte)], u32::from(!(0x80..0xC0).contains(&byte)));
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
        loop {
            let mut is_changed = false;
            for state in (0..self.ends.len()).rev() {
                let need =
                    |(class, cost): &(u8, u32)| match self.next[state * self.width + usize::from(*class)] {
                        DEAD => DEAD,
                        next => self.needs[next as usize].saturating_add(*cost),
                    };
                let least = edges.iter().map(need).min().unwrap_or(DEAD);
                if least < self.needs[state] {
                    self.needs[state] = least;
                    is_changed = true;
                }
            }
            if !is_changed {
                return;
            }
        }
    }
}

/// A pattern in the words of the library: classes of ASCII, and lines that end as ECMA-262 has them.
fn translated(source: &str) -> String {
    let (mut made, mut is_class, mut letters) = (String::new(), false, source.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let next = letters.next();
                let (plain, negated) = match next {
                    Some('d') => ("0-9", "[0-9]"),
                    Some('w') => ("0-9A-Za-z_", "[0-9A-Za-z_]"),
                    Some('s') => (r"\t-\r ", r"[\t-\r ]"),
                    Some('D') => (r"[^0-9]", r"[^0-9]"),
                    Some('W') => (r"[^0-9A-Za-z_]", r"[^0-9A-Za-z_]"),
                    Some('S') => (r"[^\s]", r"[^\s]"),
                    Some('/') => ("/", "/"),
                    _ => {
                        made.push('\\');
                        made.extend(next);
                        continue;
                    }
                };
                made.push_str(if is_class { plain } else { negated });
            }
            '.' if !is_class => made.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            // A bracket in a class is itself.
            '[' if is_class => made.push_str(r"\["),
            '&' | '~' if is_class => made.extend(['\\', letter]),
            _ => {
                is_class = match letter {
                    '[' => true,
                    ']' => false,
                    _ => is_class,
                };
                made.push(letter);
            }
        }
    }
    made
}

/// Sets of states of a library's machine, which become states.
struct Machine<'n> {
    nfa: &'n NFA,
    known: HashMap<Vec<StateID>, u32>,
    sets: Vec<Vec<StateID>>,
}

impl<'n> Machine<'n> {
    fn new(nfa: &'n NFA) -> Machine<'n> {
        Machine { nfa, known: HashMap::new(), sets: Vec::new() }
    }

    /// All states that are reached from the beginning.
    fn made(mut self) -> Result<Pattern, String> {
        let classes: Box<[u8; 256]> =
            Box::new(std::array::from_fn(|byte| self.nfa.byte_classes().get(byte as u8)));
        let width = usize::from(classes.iter().copied().max().unwrap_or(0)) + 1;
        let mut bytes = vec![0u8; width];
        (0..=255u8).for_each(|byte| bytes[usize::from(classes[usize::from(byte)])] = byte);
        let first = self.closed(vec![self.nfa.start_unanchored()], true, false);
        self.known(first);
        let (mut next, mut done) = (Vec::new(), 0);
        while let Some(set) = self.sets.get(done).cloned() {
            done += 1;
            if self.sets.len() > MOST_STATES {
                return Err(format!("it has more than {MOST_STATES} states"));
            }
            for byte in &bytes {
                let reached = self.step(&set, *byte);
                next.push(if reached.is_empty() { DEAD } else { self.known(reached) });
            }
        }
        let ends =
            self.sets.iter().map(|set| self.has_match(&self.closed(set.clone(), false, true))).collect();
        Ok(Pattern { next, classes, width, ends, needs: Vec::new(), least: 0, most: u32::MAX })
    }

    /// The number of a set. Where there is a match already, all other ways are the same.
    fn known(&mut self, set: Vec<StateID>) -> u32 {
        let set = match set.iter().find(|id| matches!(self.nfa.state(**id), State::Match { .. })) {
            Some(own) => vec![*own],
            None => set,
        };
        let next = self.sets.len() as u32;
        *self.known.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            next
        })
    }

    fn has_match(&self, set: &[StateID]) -> bool {
        set.iter().any(|id| matches!(self.nfa.state(*id), State::Match { .. }))
    }

    /// The states behind a byte.
    fn step(&self, set: &[StateID], byte: u8) -> Vec<StateID> {
        let mut reached = Vec::new();
        for id in set {
            match self.nfa.state(*id) {
                State::ByteRange { trans } if trans.matches_byte(byte) => reached.push(trans.next),
                State::Sparse(own) => reached.extend(own.matches_byte(byte)),
                State::Dense(own) => reached.extend(own.matches_byte(byte)),
                // What matched does so whatever comes.
                State::Match { .. } => reached.push(*id),
                _ => {}
            }
        }
        self.closed(reached, false, false)
    }

    /// All states that are reached without a byte, at the beginning or the end of a string.
    fn closed(&self, mut open: Vec<StateID>, begins: bool, ends: bool) -> Vec<StateID> {
        let mut seen = vec![false; self.nfa.states().len()];
        let mut closed = Vec::new();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.as_usize()], true) {
                continue;
            }
            match self.nfa.state(id) {
                State::Union { alternates } => open.extend(alternates.iter().copied()),
                State::BinaryUnion { alt1, alt2 } => open.extend([*alt1, *alt2]),
                State::Capture { next, .. } => open.push(*next),
                State::Look { look: Look::Start, next } if begins => open.push(*next),
                State::Look { look: Look::End, next } if ends => open.push(*next),
                State::Look { look: Look::Start, .. } | State::Fail => {}
                _ => closed.push(id),
            }
        }
        closed.sort_unstable();
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(source: &str, bounds: (u32, u32), text: &str) -> bool {
        let pattern = Pattern::new(source, bounds).unwrap().unwrap();
        let begin = (pattern.begin(), Letter::Between, 0);
        let at = text.bytes().try_fold(begin, |at, byte| pattern.with(at, byte));
        at.is_some_and(|(state, letter, _)| letter == Letter::Between && pattern.may_end(state))
    }

    #[test]
    fn strings_that_match_are_taken_and_no_others() {
        let free = (0, u32::MAX);
        for (source, right, wrong) in [
            (r"^\d{3}-\d{2}$", &["123-45"][..], &["123-4", "12345", "123-456", "x123-45"][..]),
            ("b", &["b", "abc", "ébé"], &["a", ""]),
            ("^(a|é)+$", &["aéa", "é"], &["", "e"]),
            (r#"^["\\/]$"#, &["\\\"", "\\\\", "/", "\\/"], &["a", "\\n"]),
            (r"^.\s$", &["x ", "x\\n", "é\\t"], &["\\n ", "xx"]),
            (r"^[\w.-]+@[^@\[]+$", &["a_b.c-d@é"], &["a@[", "@b"]),
            ("^$", &[""], &["a"]),
            ("", &["", "anything"], &[]),
        ] {
            right.iter().for_each(|text| assert!(takes(source, free, text), "{source} {text}"));
            wrong.iter().for_each(|text| assert!(!takes(source, free, text), "{source} {text}"));
        }
        assert!(takes("^a+b$", (0, 4), "aaab") && !takes("^a+b$", (0, 4), "aaaab"));
        assert!(!takes("^a+b$", (0, 4), "aaaa") && takes("^é*$", (0, 2), "éé"));
    }

    #[test]
    fn what_no_string_matches_or_is_too_much_is_told() {
        let free = (0, u32::MAX);
        assert_eq!(Pattern::new("a^b", free), Ok(None));
        assert_eq!(Pattern::new("^a$b", free), Ok(None));
        assert_eq!(Pattern::new("^abc$", (0, 2)), Ok(None));
        for wrong in ["(", "(?=a)", r"\bword", "(a|b)*a(a|b){14}$", r"(?m)^a$", r"(.)\1", &"(".repeat(5000)] {
            assert!(Pattern::new(wrong, free).is_err(), "{wrong}");
        }
        assert!(Pattern::new("((a{999}){999}){999}", free).is_err());
        assert!(Pattern::new("^a+$", (3, 9)).is_err());
    }
}
