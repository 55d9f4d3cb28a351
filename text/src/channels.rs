//! Messages in channels, as models of the kind of gpt-oss write them: each has a head, which says what it is, and a text.

use crate::divided::{Divided, partly};

/// What a model's tokens have where it writes in channels.
pub(crate) const MARKS: [&str; 4] = [START, CHANNEL, MESSAGE, END];
/// What the prompt of such a model ends with.
pub(crate) const TURN: &str = "<|start|>assistant";
/// What an answer begins with.
pub(crate) const ANSWER: &str = "<|channel|>final<|message|>";

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const END: &str = "<|end|>";
/// What ends the text of a message.
const ENDS: &[&str] = &[END, START, CHANNEL, "<|call|>", "<|return|>"];
/// Bytes of the longest head.
const LONGEST_HEAD: usize = 512;
/// What says who a message is for.
const RECIPIENT: &str = "to=";
const FUNCTIONS: &str = "functions.";

/// Whether the text of a control token is a part of messages in channels.
pub(crate) fn is_mark(control: &str) -> bool {
    control == MESSAGE || control == "<|constrain|>" || ENDS.contains(&control)
}

/// Where such a text is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    place: Place,
    /// Whether there were messages of each kind.
    has_thoughts: bool,
    has_answer: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Head,
    Thoughts,
    Answer,
    /// It is no message in a channel.
    Plain,
}

impl Channels {
    pub fn is_thinking(&self) -> bool {
        self.place == Place::Thoughts
    }

    /// Looks at what is held, and says whether to look again.
    pub fn step(&mut self, held: &mut String, made: &mut Divided) -> bool {
        match self.place {
            Place::Head => {
                let end = held.find(MESSAGE).map(|at| at + MESSAGE.len());
                if !is_head(held) || end.unwrap_or(held.len()) > LONGEST_HEAD {
                    self.place = Place::Plain;
                    return true;
                }
                let Some(end) = end else { return false };
                self.begin(&held[..end - MESSAGE.len()], made);
                held.drain(..end);
                true
            }
            Place::Plain => {
                made.answer.push_str(&std::mem::take(held));
                false
            }
            place => {
                let found = ENDS.iter().filter_map(|end| held.find(end).map(|at| (at, *end))).min();
                let at = found.map_or_else(|| partly(held, ENDS), |(at, _)| at);
                let to = if place == Place::Thoughts { &mut made.thoughts } else { &mut made.answer };
                to.extend(held.drain(..at));
                if let Some((_, end)) = found {
                    // What begins a message is a part of its head.
                    if ![START, CHANNEL].contains(&end) {
                        held.drain(..end.len());
                    }
                    self.place = Place::Head;
                }
                found.is_some()
            }
        }
    }

    /// Begins the text behind a head. Calls of functions keep a head, by which they are found in the answer.
    fn begin(&mut self, head: &str, made: &mut Divided) {
        let channel = head.split(CHANNEL).nth(1).unwrap_or_default();
        let function = head.split(RECIPIENT).nth(1).and_then(|to| to.strip_prefix(FUNCTIONS));
        let (place, has, to) = match function.is_none() && channel.starts_with("analysis") {
            true => (Place::Thoughts, &mut self.has_thoughts, &mut made.thoughts),
            false => (Place::Answer, &mut self.has_answer, &mut made.answer),
        };
        if std::mem::replace(has, true) {
            to.push('\n');
        }
        if let Some(function) = function {
            let name = function.split(|letter: char| letter.is_whitespace() || letter == '<').next();
            let name = name.unwrap_or_default();
            to.push_str(&format!("{CHANNEL}commentary {RECIPIENT}{FUNCTIONS}{name}{MESSAGE}"));
        }
        self.place = place;
    }

    /// What is held when nothing comes any more: a head without a text says something only where nothing else was said.
    pub fn finish(self, held: String) -> Divided {
        match self.place {
            Place::Thoughts => Divided { thoughts: held, answer: String::new() },
            Place::Head if self.has_thoughts || self.has_answer => Divided::default(),
            _ => Divided { answer: held, thoughts: String::new() },
        }
    }
}

/// Whether a text may be the beginning of a head.
fn is_head(text: &str) -> bool {
    let text = text.trim_start();
    [START, CHANNEL, RECIPIENT].iter().any(|mark| text.starts_with(mark) || mark.starts_with(text))
}
