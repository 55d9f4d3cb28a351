//! Where a text is in a grammar: which bytes may come next.
//!
//! A grammar may allow a byte in several ways, as where one of several objects is wanted and both begin with a brace. So a state has
//! threads: each is one way in which the text so far is the beginning of a value.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    grammar::{ANY_ARRAY, ANY_OBJECT, ANY_TEXT, ANY_WORD, Grammar, NO_BOUND, Node, NodeId},
    letters::Letter,
    names,
    numbers::{Number, Within},
};

/// White space in front of the value, at most.
pub(super) const MOST_AHEAD: u8 = 2;
/// Blanks at the beginning of a line, at most, for each value around what comes there: a model that likes nothing else must not write
/// them for ever. Other white space is one blank.
pub(super) const INDENT: u32 = 4;
/// What [`Thread::spaces`] is behind the end of a line.
const NEW_LINE: u8 = 2;
/// Threads of a state, at most. Where there are more ways, the first ones count: each of them can be gone to its end.
pub(super) const MOST_THREADS: usize = 128;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Before all.
    Begin,
    /// Before a value.
    Value(NodeId),
    /// Behind the bracket of a list.
    FirstItem(NodeId),
    /// Behind an element of a list, of which so many were there.
    BehindItem { node: NodeId, count: u32 },
    /// Behind the brace of an object.
    FirstName(NodeId),
    /// Before a name, where properties from this one on may come.
    Name { node: NodeId, next: u32 },
    /// Behind a property.
    BehindProperty { node: NodeId, next: u32 },
    /// In a name that is so far the beginning of a property's.
    InName { node: NodeId, next: u32, like: u32, length: u32 },
    /// In a name that is no property's.
    OtherName { node: NodeId, letter: Letter, escapes: bool },
    /// Between a name and its value.
    Colon(NodeId),
    /// In a string of so many characters so far.
    Text { node: NodeId, letter: Letter, count: u32 },
    /// In a string that a pattern matches.
    Pattern { node: NodeId, at: u32, letter: Letter, count: u32 },
    /// In one of these words, of which so many bytes are there.
    Words { node: NodeId, from: u32, to: u32, length: u32 },
    /// In a number.
    Number(Number),
    /// In a number within bounds.
    Range { node: NodeId, number: Within },
    /// Behind all.
    End,
}

/// What comes behind a value that is within another.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    after: Place,
    around: Option<Arc<Frame>>,
    depth: u32,
}

/// One way in which a text is the beginning of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub place: Place,
    spaces: u8,
    around: Option<Arc<Frame>>,
}

/// All ways.
pub(super) type Threads = SmallVec<[Thread; 1]>;

/// The state before a text.
pub(super) fn begin() -> Threads {
    std::iter::once(Thread { place: Place::Begin, spaces: 0, around: None }).collect()
}

/// The state behind another byte. Without threads where the byte may not be there.
pub(super) fn push(grammar: &Grammar, threads: &Threads, byte: u8) -> Threads {
    let mut next = Next { grammar, threads: Threads::new() };
    threads.iter().for_each(|thread| next.push(thread, byte));
    next.threads
}

/// Whether the text may end here.
pub(super) fn may_end(grammar: &Grammar, threads: &Threads) -> bool {
    threads.iter().any(|thread| thread.around.is_none() && thread.may_end(grammar))
}

impl Thread {
    /// Whether the value that it is in may end here, without a byte that says so.
    fn may_end(&self, grammar: &Grammar) -> bool {
        match self.place {
            Place::End => true,
            Place::Number(number) => number.may_end(),
            Place::Range { node, number } => {
                matches!(grammar.node(node), Node::Range(range) if range.may_end(number))
            }
            Place::Words { node, from, length, .. } => {
                let Node::Words(all) = grammar.node(node) else { return false };
                all[from as usize].len() == length as usize
            }
            _ => false,
        }
    }

    /// How many values are around it.
    pub fn depth(&self) -> u32 {
        self.around.as_ref().map_or(0, |frame| frame.depth)
    }

    /// White space with another byte of it: one blank, or the end of a line and blanks.
    fn spaced(&self, byte: u8) -> Option<u8> {
        let most = u32::from(NEW_LINE) + INDENT * (self.depth() + 1);
        match (self.place, self.spaces, byte) {
            (Place::Begin, spaces, _) => (spaces < MOST_AHEAD).then_some(spaces + 1),
            (_, 0, b' ' | b'\t') => Some(1),
            (_, 0 | 1, b'\n') => Some(NEW_LINE),
            (_, spaces, b' ' | b'\t') if spaces >= NEW_LINE && u32::from(spaces) < most.min(100) => {
                Some(spaces + 1)
            }
            _ => None,
        }
    }

    fn at(&self, place: Place) -> Thread {
        Thread { place, spaces: 0, around: self.around.clone() }
    }

    /// Within another value: behind it comes `after`.
    fn inside(&self, after: Place, place: Place) -> Thread {
        let frame = Frame { after, around: self.around.clone(), depth: self.depth() + 1 };
        Thread { place, spaces: 0, around: Some(Arc::new(frame)) }
    }

    /// Behind the value that it is in.
    fn behind(&self) -> Thread {
        match &self.around {
            None => self.at(Place::End),
            Some(frame) => Thread { place: frame.after, spaces: 0, around: frame.around.clone() },
        }
    }
}

/// A state that is being made.
struct Next<'g> {
    grammar: &'g Grammar,
    threads: Threads,
}

impl Next<'_> {
    fn add(&mut self, thread: Thread) {
        if self.threads.len() < MOST_THREADS && !self.threads.contains(&thread) {
            self.threads.push(thread);
        }
    }

    fn push(&mut self, thread: &Thread, byte: u8) {
        match thread.place {
            Place::Text { .. } | Place::Pattern { .. } | Place::InName { .. } | Place::OtherName { .. } => {
                self.in_text(thread, byte);
            }
            Place::Words { node, from, to, length } => self.in_word(thread, byte, (node, from, to, length)),
            Place::Number(number) => match number.with(byte) {
                Some(number) => self.add(thread.at(Place::Number(number))),
                None => self.behind(thread, byte),
            },
            Place::Range { node, number } => {
                let Node::Range(range) = self.grammar.node(node) else { return };
                match range.with(number, byte) {
                    Some(number) => self.add(thread.at(Place::Range { node, number })),
                    None => self.behind(thread, byte),
                }
            }
            Place::End => {}
            _ if matches!(byte, b' ' | b'\n' | b'\t' | b'\r') => {
                if let Some(spaces) = thread.spaced(byte) {
                    self.add(Thread { spaces, ..thread.clone() });
                }
            }
            _ => self.between(thread, byte),
        }
    }

    /// A byte behind a value that ends without one of its own.
    fn behind(&mut self, thread: &Thread, byte: u8) {
        if thread.around.is_some() && thread.may_end(self.grammar) {
            self.push(&thread.behind(), byte);
        }
    }

    /// A byte that is in no string, number or word.
    fn between(&mut self, thread: &Thread, byte: u8) {
        let grammar = self.grammar;
        match (thread.place, byte) {
            (Place::Begin, _) => self.value(thread, grammar.root, byte),
            (Place::Value(node), _) => self.value(thread, node, byte),
            (Place::FirstItem(node), b']') => self.leave_array(thread, node, 0),
            (Place::FirstItem(node), _) => {
                if let Some((item, inside)) = self.item(thread, node, 0) {
                    self.value(&inside, item, byte);
                }
            }
            (Place::BehindItem { node, count }, b']') => self.leave_array(thread, node, count),
            (Place::BehindItem { node, count }, b',') => {
                if let Some((_, inside)) = self.item(thread, node, count) {
                    self.add(inside);
                }
            }
            (Place::FirstName(node), b'}') => self.leave_object(thread, node, 0),
            (Place::BehindProperty { node, next }, b'}') => self.leave_object(thread, node, next),
            (Place::FirstName(node), b'"') => self.name(thread, node, 0),
            (Place::Name { node, next }, b'"') => self.name(thread, node, next),
            (Place::BehindProperty { node, next }, b',')
                if names::may_follow(grammar, node, next, thread.depth()) =>
            {
                self.add(thread.at(Place::Name { node, next }));
            }
            (Place::Colon(node), b':') => self.add(thread.at(Place::Value(node))),
            _ => {}
        }
    }

    /// The place of a list's element, of which so many are in front, and what it is; `None` where there may be no more.
    fn item(&self, thread: &Thread, node: NodeId, count: u32) -> Option<(NodeId, Thread)> {
        let Node::Array { first, rest, least, most } = self.grammar.node(node) else { return None };
        let item = first.get(count as usize).copied().or(*rest)?;
        // Numbers that make no difference are one, so that states are the same.
        let bound = if *most == NO_BOUND { (*least).max(first.len() as u32) } else { *most };
        let after = Place::BehindItem { node, count: count.saturating_add(1).min(bound) };
        let fits = count < *most && self.grammar.fits(item, thread.depth() + 1);
        fits.then(|| (item, thread.inside(after, Place::Value(item))))
    }

    fn leave_array(&mut self, thread: &Thread, node: NodeId, count: u32) {
        if matches!(self.grammar.node(node), Node::Array { least, .. } if count >= *least) {
            self.add(thread.behind());
        }
    }

    fn leave_object(&mut self, thread: &Thread, node: NodeId, next: u32) {
        if names::may_end(self.grammar, node, next) {
            self.add(thread.behind());
        }
    }

    /// The quotation mark of a name.
    fn name(&mut self, thread: &Thread, node: NodeId, next: u32) {
        let Node::Object { properties, .. } = self.grammar.node(node) else { return };
        if !names::may_follow(self.grammar, node, next, thread.depth()) {
            return;
        }
        self.add(thread.at(match properties.is_empty() {
            true => Place::OtherName { node, letter: Letter::Between, escapes: true },
            false => Place::InName { node, next, like: 0, length: 0 },
        }));
    }

    /// The first byte of a value.
    fn value(&mut self, thread: &Thread, node: NodeId, byte: u8) {
        if !self.grammar.fits(node, thread.depth()) {
            return;
        }
        let place = match self.grammar.node(node) {
            Node::Union(all) => {
                all.iter().for_each(|own| self.value(thread, *own, byte));
                return;
            }
            Node::Any => self.any(byte),
            Node::Never => None,
            Node::Words(all) => {
                let whole = (node, 0, all.len() as u32, 0);
                self.in_word(thread, byte, whole);
                return;
            }
            Node::Text { .. } => {
                (byte == b'"').then_some(Place::Text { node, letter: Letter::Between, count: 0 })
            }
            Node::Pattern(own) => (byte == b'"').then(|| Place::Pattern {
                node,
                at: own.begin(),
                letter: Letter::Between,
                count: 0,
            }),
            Node::Number => Number::begin(byte).map(Place::Number),
            Node::Range(range) => range.begin(byte).map(|number| Place::Range { node, number }),
            Node::Array { .. } => (byte == b'[').then_some(Place::FirstItem(node)),
            Node::Object { .. } => (byte == b'{').then_some(Place::FirstName(node)),
        };
        if let Some(place) = place {
            self.add(thread.at(place));
        }
    }

    /// The first byte of a value that may be anything.
    fn any(&self, byte: u8) -> Option<Place> {
        let word = |place: u32| Place::Words { node: ANY_WORD, from: place, to: place + 1, length: 1 };
        match byte {
            b'{' => Some(Place::FirstName(ANY_OBJECT)),
            b'[' => Some(Place::FirstItem(ANY_ARRAY)),
            b'"' => Some(Place::Text { node: ANY_TEXT, letter: Letter::Between, count: 0 }),
            b'f' => Some(word(0)),
            b'n' => Some(word(1)),
            b't' => Some(word(2)),
            _ => Number::begin(byte).map(Place::Number),
        }
    }

    /// A byte of a word: of those that there are, which are in their order, the ones that have it here.
    fn in_word(&mut self, thread: &Thread, byte: u8, (node, from, to, length): (NodeId, u32, u32, u32)) {
        let Node::Words(all) = self.grammar.node(node) else { return };
        let place = length as usize;
        let open = &all[from as usize..to as usize];
        // A word that ends here is in front of those that go on.
        let ended = open.partition_point(|word| word.len() <= place);
        if ended > 0 && length > 0 {
            self.behind(thread, byte);
        }
        let low = ended + open[ended..].partition_point(|word| word[place] < byte);
        let high = ended + open[ended..].partition_point(|word| word[place] <= byte);
        if low == high {
            return;
        }
        let (from, to, length) = (from + low as u32, from + high as u32, length + 1);
        let is_done = all[from as usize].len() == length as usize;
        // Words whose end is seen by the next byte alone: numbers, of which one may be the beginning of another.
        let waits = all[from as usize].last().is_some_and(u8::is_ascii_digit) || to - from > 1;
        match is_done && !waits {
            true => self.add(thread.behind()),
            false => self.add(thread.at(Place::Words { node, from, to, length })),
        }
    }

    /// A byte of a string.
    fn in_text(&mut self, thread: &Thread, byte: u8) {
        match thread.place {
            Place::Text { node, letter: Letter::Between, count } if byte == b'"' => {
                if matches!(self.grammar.node(node), Node::Text { least, .. } if count >= *least) {
                    self.add(thread.behind());
                }
            }
            Place::Text { node, letter, count } => {
                let Node::Text { least, most } = self.grammar.node(node) else { return };
                let bound = if *most == NO_BOUND { *least } else { *most };
                let begins = letter == Letter::Between;
                if begins && count >= *most {
                    return;
                }
                if let Some(letter) = letter.with(byte) {
                    let count = (count + u32::from(begins)).min(bound);
                    self.add(thread.at(Place::Text { node, letter, count }));
                }
            }
            Place::Pattern { node, at, letter, count } => {
                let Node::Pattern(own) = self.grammar.node(node) else { return };
                if letter == Letter::Between && byte == b'"' {
                    if own.may_end(at) {
                        self.add(thread.behind());
                    }
                } else if let Some((at, letter, count)) = own.with((at, letter, count), byte) {
                    self.add(thread.at(Place::Pattern { node, at, letter, count }));
                }
            }
            Place::OtherName { node, letter: Letter::Between, .. } if byte == b'"' => {
                self.other(thread, node);
            }
            Place::OtherName { node, letter, escapes } if escapes || byte != b'\\' => {
                if let Some(letter) = letter.with(byte) {
                    self.add(thread.at(Place::OtherName { node, letter, escapes }));
                }
            }
            Place::InName { node, next, like, length } => {
                self.in_name(thread, byte, names::InName { node, next, like, length });
            }
            _ => {}
        }
    }

    /// A byte of a name that is so far the beginning of a property's.
    fn in_name(&mut self, thread: &Thread, byte: u8, name: names::InName) {
        match names::with(self.grammar, name, byte, thread.depth()) {
            names::Step::Goes(own) => self.add(thread.at(Place::InName {
                node: own.node,
                next: own.next,
                like: own.like,
                length: own.length,
            })),
            names::Step::Leaves(letter) => {
                self.add(thread.at(Place::OtherName { node: name.node, letter, escapes: false }));
            }
            names::Step::Is { value, next } => {
                let after = Place::BehindProperty { node: name.node, next };
                self.add(thread.inside(after, Place::Colon(value)));
            }
            names::Step::IsOther => self.other(thread, name.node),
            names::Step::Nothing => {}
        }
    }

    /// Behind the name of a property that is none of those that have names.
    fn other(&mut self, thread: &Thread, node: NodeId) {
        let Node::Object { properties, more: Some(more), .. } = self.grammar.node(node) else { return };
        let after = Place::BehindProperty { node, next: properties.len() as u32 };
        self.add(thread.inside(after, Place::Colon(*more)));
    }
}

/// How many characters a thread's string may still have, if it is between two of them and any may come.
pub(super) fn room(grammar: &Grammar, thread: &Thread) -> Option<u32> {
    match thread.place {
        Place::Text { node, letter: Letter::Between, count } => match grammar.node(node) {
            Node::Text { most: NO_BOUND, .. } => Some(NO_BOUND),
            Node::Text { most, .. } => Some(most - count),
            _ => None,
        },
        Place::OtherName { letter: Letter::Between, .. } => Some(NO_BOUND),
        _ => None,
    }
}
