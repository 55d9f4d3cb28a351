//! What a model thinks before it answers, told apart from the answer while it writes.

use crate::{
    channels::{self, Channels},
    divided::{Divided, partly},
};

/// Marks of thoughts in the forms that models are used to.
const PAIRS: &[Pair] = &[
    Pair::of("<think>", "</think>"),
    Pair::of("[THINK]", "[/THINK]"),
    Pair::of("<seed:think>", "</seed:think>"),
    Pair::of("<|START_THINKING|>", "<|END_THINKING|>"),
    Pair::of("<|inner_prefix|>", "<|inner_suffix|>"),
    Pair::of("<|channel>thought", "<channel|>"),
    Pair::of("◁think▷", "◁/think▷"),
    Pair { answer: Some("<|begin|>assistant<|content|>"), ..Pair::of("<|think|>", "<|end|>") },
    Pair {
        answer: Some("<|open|>response<|sep|>"),
        dropped: &["<|close|>response<|sep|>", "<|close|>message<|sep|>"],
        ..Pair::of("<|open|>think<|sep|>", "<|close|>think<|sep|>")
    },
    // Prompts ask models for these that were not trained to think: then they are a part of the answer.
    Pair { of_prompts: true, ..Pair::of("<thought>", "</thought>") },
];

/// What is around thoughts.
#[derive(Debug)]
struct Pair {
    begin: &'static str,
    end: &'static str,
    /// What the answer behind them begins with, if not with its text.
    answer: Option<&'static str>,
    /// What is around the answer, and no part of it.
    dropped: &'static [&'static str],
    /// Whether they count only where a prompt ends with their beginning.
    of_prompts: bool,
}

impl Pair {
    const fn of(begin: &'static str, end: &'static str) -> Pair {
        Pair { begin, end, answer: None, dropped: &[], of_prompts: false }
    }
}

/// Divides what a model writes: thoughts between marks that are known come first, and then the answer. What may be a part of a mark is
/// held back until it is sure what it is; white space around thoughts is left out.
#[derive(Clone, Debug)]
pub struct Thoughts {
    held: String,
    state: State,
    /// Marks that count at the beginning.
    pairs: Vec<&'static Pair>,
    has_channels: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing but white space came.
    Begin,
    /// Thoughts, and whether something of them came.
    Thinking(&'static Pair, bool),
    /// Nothing but white space came behind thoughts.
    Behind(&'static Pair),
    Answer,
    /// An answer with something around it.
    Within(&'static Pair),
    /// Messages in channels.
    Channels(Channels),
    /// All of it, marks and all, is what somebody wants.
    Whole,
}

impl Thoughts {
    /// What divides the text behind a prompt. `knows` says whether the model's template or its tokens have a mark.
    pub fn new(prompt: &str, knows: impl Fn(&str) -> bool) -> Thoughts {
        let prompt = prompt.trim_end();
        let has_channels = channels::MARKS.iter().all(|mark| knows(mark));
        let opened = PAIRS.iter().find(|pair| prompt.ends_with(pair.begin));
        let begun = PAIRS.iter().find(|pair| pair.answer.is_some_and(|mark| prompt.ends_with(mark)));
        let is_known = |pair: &&Pair| !pair.of_prompts && knows(pair.begin) && knows(pair.end);
        let state = match (opened, begun) {
            (Some(pair), _) => State::Thinking(pair, false),
            (None, Some(pair)) => State::Within(pair),
            (None, None) if has_channels && prompt.ends_with(channels::TURN) => {
                State::Channels(Channels::default())
            }
            (None, None) => State::Begin,
        };
        let pairs = PAIRS.iter().filter(is_known).chain(opened).collect();
        Thoughts { held: String::new(), state, pairs, has_channels }
    }

    /// The same text undivided: all is the answer, with the marks.
    #[must_use]
    pub fn whole(self) -> Thoughts {
        Thoughts { state: State::Whole, ..self }
    }

    /// Whether the model thinks: what it says comes later.
    pub fn is_thinking(&self) -> bool {
        match &self.state {
            State::Thinking(..) => true,
            State::Channels(channels) => channels.is_thinking(),
            _ => false,
        }
    }

    /// What a prompt is followed by for a model to answer without thinking, if something is.
    pub fn skip(&self) -> String {
        match &self.state {
            State::Thinking(pair, _) => match pair.answer {
                Some(answer) => format!("{}{answer}", pair.end),
                None => format!("{}\n\n", pair.end),
            },
            State::Channels(_) => channels::ANSWER.to_owned(),
            _ => String::new(),
        }
    }

    /// Whether the text of a control token is a part of what divides here, and so is to be pushed.
    pub fn wants(&self, control: &str) -> bool {
        let has = |mark: &str| !control.is_empty() && mark.contains(control);
        match &self.state {
            State::Begin => self.pairs.iter().any(|pair| has(pair.begin)),
            State::Thinking(pair, _) => has(pair.end),
            State::Behind(pair) => pair.answer.is_some_and(has),
            State::Channels(_) => channels::is_mark(control),
            State::Within(pair) => pair.dropped.iter().any(|mark| has(mark)),
            State::Answer => false,
            State::Whole => {
                self.has_channels && channels::is_mark(control)
                    || self.pairs.iter().any(|pair| has(pair.begin) || has(pair.end))
            }
        }
    }

    /// Takes the next text, and gives what is sure of it.
    pub fn push(&mut self, text: &str) -> Divided {
        self.held.push_str(text);
        let mut made = Divided::default();
        while self.step(&mut made) {}
        made
    }

    /// What was held back, when nothing comes any more.
    pub fn finish(&mut self) -> Divided {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Answer) {
            State::Thinking(_, begun) => {
                let text = if begun { held.trim_end() } else { held.trim() };
                Divided { thoughts: text.to_owned(), answer: String::new() }
            }
            State::Behind(_) => Divided { answer: held.trim_start().to_owned(), ..Divided::default() },
            State::Channels(channels) => channels.finish(held),
            State::Begin | State::Answer | State::Within(_) | State::Whole => {
                Divided { answer: held, ..Divided::default() }
            }
        }
    }

    /// Looks at what is held, and says whether to look again.
    fn step(&mut self, made: &mut Divided) -> bool {
        match &mut self.state {
            State::Begin => {
                let text = self.held.trim_start();
                if let Some(pair) = self.pairs.iter().find(|pair| text.starts_with(pair.begin)) {
                    self.held = text[pair.begin.len()..].to_owned();
                    self.state = State::Thinking(pair, false);
                    return true;
                }
                if !self.pairs.iter().any(|pair| pair.begin.starts_with(text)) {
                    self.state = State::Answer;
                    return true;
                }
                false
            }
            State::Thinking(pair, begun) => {
                let pair: &'static Pair = pair;
                let (text, rest) = match self.held.find(pair.end) {
                    Some(at) => (self.held[..at].trim_end().len(), Some(at + pair.end.len())),
                    None => (self.held[..partly(&self.held, &[pair.end])].trim_end().len(), None),
                };
                let own = if *begun { &self.held[..text] } else { self.held[..text].trim_start() };
                *begun |= !own.is_empty();
                made.thoughts.push_str(own);
                self.held.drain(..rest.unwrap_or(text));
                if rest.is_some() {
                    self.state = State::Behind(pair);
                }
                rest.is_some()
            }
            State::Behind(pair) => {
                let text = self.held.trim_start();
                let begin = pair.answer.unwrap_or_default();
                if text.is_empty() || text.len() < begin.len() && begin.starts_with(text) {
                    return false;
                }
                self.held = text.strip_prefix(begin).unwrap_or(text).to_owned();
                self.state = State::Within(pair);
                true
            }
            State::Within(pair) => {
                let pair: &'static Pair = pair;
                self.leave_out(pair.dropped, made)
            }
            State::Channels(channels) => channels.step(&mut self.held, made),
            State::Answer | State::Whole => self.leave_out(&[], made),
        }
    }

    /// Tells what is held without these marks, and says whether to look again.
    fn leave_out(&mut self, marks: &[&str], made: &mut Divided) -> bool {
        let found = marks.iter().filter_map(|mark| self.held.find(mark).map(|at| (at, mark.len())));
        let (at, length) = found.min().unwrap_or_else(|| (partly(&self.held, marks), 0));
        made.answer.extend(self.held.drain(..at));
        self.held.drain(..length);
        length > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a text that comes in pieces of so many letters.
    fn divided(prompt: &str, known: &[&str], text: &str, size: usize) -> (String, String) {
        let mut thoughts = Thoughts::new(prompt, |mark| known.contains(&mark));
        let mut made = (String::new(), String::new());
        let letters: Vec<char> = text.chars().collect();
        let mut add = |part: Divided| {
            made.0.push_str(&part.thoughts);
            made.1.push_str(&part.answer);
        };
        for piece in letters.chunks(size) {
            add(thoughts.push(&piece.iter().collect::<String>()));
        }
        add(thoughts.finish());
        made
    }

    const THINK: &[&str] = &["<think>", "</think>"];
    const CHANNELS: &[&str] = &["<|start|>", "<|channel|>", "<|message|>", "<|end|>"];

    #[test]
    fn thoughts_are_told_apart() {
        for (prompt, known, text, thoughts, answer) in [
            (
                "hi",
                THINK,
                "<think>\nLet < me\n\nsee </thin.\n</think>\n\nYes.\n",
                "Let < me\n\nsee </thin.",
                "Yes.\n",
            ),
            ("hi<think>\n", THINK, "Let me see\n</think> \nYes", "Let me see", "Yes"),
            ("hi<think>\n", THINK, "It goes on  ", "It goes on", ""),
            ("hi<think>", THINK, "</think>Yes", "", "Yes"),
            ("hi<think>\n\n</think>\n\n", THINK, "Yes <think>no</think>", "", "Yes <think>no</think>"),
            ("hi", THINK, "  <thin", "", "  <thin"),
            ("hi", THINK, "\n Yes", "", "\n Yes"),
            ("hi", &[], "<think>a</think>b", "", "<think>a</think>b"),
            ("hi", &["[THINK]", "[/THINK]"], "[THINK]a[/THINK]b", "a", "b"),
            ("hi", &["<|channel>thought", "<channel|>"], "<|channel>thought\na\n<channel|>b", "a", "b"),
            ("hi", &["<thought>", "</thought>"], "<thought>a</thought>b", "", "<thought>a</thought>b"),
            ("hi<thought>\n", &[], "a</thought>b", "a", "b"),
            ("hi", &["<|think|>", "<|end|>"], "<|think|>a<|end|><|begin|>assistant<|content|>b", "a", "b"),
            ("hi", &["<|think|>", "<|end|>"], "<|think|>a<|end|><|begin", "a", "<|begin"),
            (
                "hi<|open|>think<|sep|>",
                &[],
                "a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|><|close|>message<|sep|>",
                "a",
                "b",
            ),
            (
                "hi<|open|>response<|sep|>",
                &[],
                "b < <|close|> c<|close|>response<|sep|>",
                "",
                "b < <|close|> c",
            ),
            ("hi", THINK, "", "", ""),
        ] {
            for size in [1, 2, 5, 1000] {
                let made = divided(prompt, known, text, size);
                assert_eq!(
                    (made.0.as_str(), made.1.as_str()),
                    (thoughts, answer),
                    "{text} in pieces of {size}"
                );
            }
        }
    }

    #[test]
    fn messages_in_channels_are_told_apart() {
        let prompt = "<|start|>user<|message|>hi<|end|><|start|>assistant";
        for (text, thoughts, answer) in [
            (
                "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>Yes < 3",
                "Let me see.",
                "Yes < 3",
            ),
            ("<|channel|>final<|message|>Yes", "", "Yes"),
            ("<|channel|>analysis<|message|>Let me", "Let me", ""),
            (
                "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b",
                "a\nb",
                "",
            ),
            (
                "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"x\":1}<|call|>",
                "a",
                "<|channel|>commentary to=functions.f<|message|>{\"x\":1}",
            ),
            (
                " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
                "",
                "<|channel|>commentary to=functions.f<|message|>{}",
            ),
            (
                "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.f<|channel|>commentary<|message|>{}",
                "",
                "I look.\n<|channel|>commentary to=functions.f<|message|>{}",
            ),
            ("Plain text, to=me", "", "Plain text, to=me"),
            ("<|channel|>ana", "", "<|channel|>ana"),
            ("<|channel|>final<|message|>Yes<|end|><|start|>assis", "", "Yes"),
        ] {
            for size in [1, 2, 7, 1000] {
                let made = divided(prompt, CHANNELS, text, size);
                assert_eq!(
                    (made.0.as_str(), made.1.as_str()),
                    (thoughts, answer),
                    "{text} in pieces of {size}"
                );
            }
        }
        let endless = "<|channel|>".to_owned() + &"x".repeat(5000);
        assert_eq!(divided(prompt, CHANNELS, &endless, 1), (String::new(), endless));
    }

    /// Texts put together of marks, letters and white space are divided in one way, however they come.
    #[test]
    fn pieces_make_no_difference() {
        let parts = [
            "<think>",
            "</think>",
            "<th",
            "</",
            "<",
            "<|channel|>",
            "<|message|>",
            "<|end|>",
            "<|start|>",
            "analysis",
            "final",
            " to=functions.f",
            "assistant",
            "<|call|>",
            "<|",
            "a",
            "é",
            " ",
            "\n\n",
            "<|think|>",
            "<|begin|>assistant<|content|>",
        ];
        let known = [THINK, CHANNELS, &["<|think|>"]].concat();
        let mut state = 7u64;
        let mut draw = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most
        };
        for round in 0..4000 {
            let prompt = ["hi", "hi<think>\n", "hi<|start|>assistant"][round % 3];
            let text: String = (0..=draw(12)).map(|_| parts[draw(parts.len())]).collect();
            let whole = divided(prompt, &known, &text, 1000);
            for size in [1, 2, 3] {
                assert_eq!(divided(prompt, &known, &text, size), whole, "{text:?} behind {prompt:?}");
            }
            let mut thoughts = Thoughts::new(prompt, |mark| known.contains(&mark)).whole();
            assert_eq!(thoughts.push(&text).answer + &thoughts.finish().answer, text);
        }
    }

    #[test]
    fn control_tokens_count_where_marks_are_wanted() {
        let mut thoughts = Thoughts::new("hi", |mark| ["[THINK]", "[/THINK]"].contains(&mark));
        assert!(thoughts.wants("[THINK]") && !thoughts.wants("[/THINK]") && !thoughts.wants(""));
        _ = thoughts.push("[THINK]a");
        assert!(thoughts.wants("[/THINK]") && thoughts.is_thinking());
        _ = thoughts.push("[/THINK]");
        assert!(!thoughts.wants("[THINK]") && !thoughts.is_thinking());
        let mut whole = Thoughts::new("hi<think>", |mark| THINK.contains(&mark)).whole();
        assert!(whole.wants("</think>") && !whole.wants("<|end|>"));
        assert_eq!(whole.push("a</think> b").answer, "a</think> b");
    }

    #[test]
    fn prompts_can_be_followed_by_an_answer() {
        let skip = |prompt: &str, known: &[&str]| Thoughts::new(prompt, |mark| known.contains(&mark)).skip();
        assert_eq!(skip("hi<think>\n", THINK), "</think>\n\n");
        assert_eq!(skip("hi", THINK), "");
        assert_eq!(skip("hi<|start|>assistant", CHANNELS), "<|channel|>final<|message|>");
    }
}
