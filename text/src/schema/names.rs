//! Names of properties: those that a schema names come in its order, and others behind them.

use super::{
    grammar::{Grammar, Node, NodeId, Property},
    letters::Letter,
};

/// A name that is so far the beginning of the one of property `like`, and so many bytes long. Properties from `next` on may come.
#[derive(Clone, Copy, Debug)]
pub(super) struct InName {
    pub node: NodeId,
    pub next: u32,
    pub like: u32,
    pub length: u32,
}

/// What a byte makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// It is still the beginning of a property's.
    Goes(InName),
    /// It is no property's any more.
    Leaves(Letter),
    /// It ended, and is this property's, whose value comes next; behind it come those from `next` on.
    Is { value: NodeId, next: u32 },
    /// It ended, and is no property's.
    IsOther,
    /// The byte may not be there.
    Nothing,
}

/// An object's properties.
struct Object<'g> {
    grammar: &'g Grammar,
    properties: &'g [Property],
    more: Option<NodeId>,
    /// How many values are around their values.
    depth: u32,
}

impl<'g> Object<'g> {
    fn of(grammar: &'g Grammar, node: NodeId, depth: u32) -> Option<Object<'g>> {
        match grammar.node(node) {
            Node::Object { properties, more, .. } => {
                Some(Object { grammar, properties, more: *more, depth: depth + 1 })
            }
            _ => None,
        }
    }

    /// The properties that may come: from this one on up to the first that has to.
    fn open(&self, next: u32) -> impl Iterator<Item = usize> + '_ {
        let next = next as usize;
        let required = (next..self.properties.len()).find(|place| self.properties[*place].required);
        let end = required.map_or(self.properties.len(), |place| place + 1);
        (next..end).filter(|place| self.grammar.fits(self.properties[*place].value, self.depth))
    }

    /// Whether properties may come that have no names.
    fn takes_more(&self, next: u32) -> bool {
        let is_free = self.properties.iter().skip(next as usize).all(|own| !own.required);
        is_free && self.more.is_some_and(|more| self.grammar.fits(more, self.depth))
    }
}

/// Whether the object may end where properties from this one on may come.
pub(super) fn may_end(grammar: &Grammar, node: NodeId, next: u32) -> bool {
    let Some(object) = Object::of(grammar, node, 0) else { return false };
    object.properties.iter().skip(next as usize).all(|own| !own.required)
}

/// Whether another property may come.
pub(super) fn may_follow(grammar: &Grammar, node: NodeId, next: u32, depth: u32) -> bool {
    let object = Object::of(grammar, node, depth);
    object.is_some_and(|own| own.takes_more(next) || own.open(next).next().is_some())
}

/// A name with another byte.
pub(super) fn with(grammar: &Grammar, name: InName, byte: u8, depth: u32) -> Step {
    let Some(object) = Object::of(grammar, name.node, depth) else { return Step::Nothing };
    let written = &object.properties[name.like as usize].name[..name.length as usize];
    let takes_more = object.takes_more(name.next);
    let is_escaped = written.contains(&b'\\');
    if byte == b'"' && !ends_in_escape(written) {
        let own = object.open(name.next).find(|place| *object.properties[*place].name == *written);
        return match own {
            Some(place) => Step::Is { value: object.properties[place].value, next: place as u32 + 1 },
            None if is_escaped || object.properties.iter().any(|own| *own.name == *written) => Step::Nothing,
            None if takes_more && behind(written) == Some(Letter::Between) => Step::IsOther,
            None => Step::Nothing,
        };
    }
    let goes = |place: &usize| {
        let other = &object.properties[*place].name;
        other.len() > written.len() && other.starts_with(written) && other[written.len()] == byte
    };
    let on = |place: usize| Step::Goes(InName { like: place as u32, length: name.length + 1, ..name });
    if let Some(place) = object.open(name.next).find(goes) {
        return on(place);
    }
    // Other names are written without escapes, so that each name is written in one way.
    if !takes_more || is_escaped || byte == b'\\' {
        return Step::Nothing;
    }
    if let Some(place) = (0..object.properties.len()).find(goes) {
        return on(place);
    }
    behind(written).and_then(|letter| letter.with(byte)).map_or(Step::Nothing, Step::Leaves)
}

/// Where a string is behind these bytes.
fn behind(written: &[u8]) -> Option<Letter> {
    written.iter().try_fold(Letter::Between, |letter, own| letter.with(*own))
}

/// Whether the next byte belongs to a backslash.
fn ends_in_escape(written: &[u8]) -> bool {
    written.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}
