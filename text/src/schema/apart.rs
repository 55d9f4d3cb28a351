//! Whether a value is of one of several schemas alone, as `oneOf` wants it.

use super::{
    grammar::{Grammar, Node, NodeId, Property},
    keywords::Fault,
};

/// How deep properties are compared.
const MOST_DEEP: u32 = 4;
/// Pairs of ways that are compared, at most.
const MOST_PAIRS: usize = 10_000;

/// Refuses a union of which a value may be two, or may seem so.
pub(super) fn check(grammar: &Grammar, union: NodeId) -> Result<(), Fault> {
    let Node::Union(all) = grammar.node(union) else { return Ok(()) };
    let mut budget = MOST_PAIRS;
    for (place, one) in all.iter().enumerate() {
        for other in &all[place + 1..] {
            if !are_apart(grammar, *one, *other, MOST_DEEP, &mut budget) {
                let text = "is not supported where a value may follow two of its schemas: tell them apart by their types, or by \
                            the 'const' of a property that has to be there; or use 'anyOf'";
                return Err(Fault::of("oneOf", text));
            }
        }
    }
    Ok(())
}

/// The first bytes of a node's values, as sets of their kinds.
fn kinds(grammar: &Grammar, id: NodeId) -> u8 {
    match grammar.node(id) {
        // The schema allows more than what is written.
        _ if grammar.loose.contains(&id) => u8::MAX,
        Node::Never => 0,
        Node::Any => u8::MAX,
        Node::Text { .. } | Node::Pattern(_) => 1,
        Node::Number | Node::Range(_) => 2,
        Node::Array { .. } => 4,
        Node::Object { .. } => 8,
        Node::Words(all) => all.iter().fold(0, |kinds, word| {
            kinds
                | match word.first() {
                    Some(b'"') => 1,
                    Some(b'[') => 4,
                    Some(b'{') => 8,
                    Some(b't' | b'f') => 16,
                    Some(b'n') => 32,
                    _ => 2,
                }
        }),
        Node::Union(all) => all.iter().fold(0, |own, id| own | kinds(grammar, *id)),
    }
}

fn are_apart(grammar: &Grammar, one: NodeId, other: NodeId, deep: u32, budget: &mut usize) -> bool {
    let (first, second) = (grammar.node(one), grammar.node(other));
    if kinds(grammar, one) & kinds(grammar, other) == 0 {
        return true;
    }
    if deep == 0 || *budget == 0 || one == other {
        return false;
    }
    *budget -= 1;
    match (first, second) {
        (Node::Words(one), Node::Words(other)) => one.iter().all(|word| !other.contains(word)),
        (Node::Union(all), _) => all.iter().all(|own| are_apart(grammar, *own, other, deep - 1, budget)),
        (_, Node::Union(all)) => all.iter().all(|own| are_apart(grammar, one, *own, deep - 1, budget)),
        (Node::Object { .. }, Node::Object { .. }) => {
            are_objects_apart(grammar, first, second, (deep, budget))
        }
        _ => false,
    }
}

fn are_objects_apart(grammar: &Grammar, one: &Node, other: &Node, (deep, budget): (u32, &mut usize)) -> bool {
    let (
        Node::Object { properties: first, more: first_more, closed: first_closed },
        Node::Object { properties: second, more: second_more, closed: second_closed },
    ) = (one, other)
    else {
        return false;
    };
    // A property that one has to have, and that the other does not have where it is written.
    let lacks = |all: &[Property], name: &[u8]| all.iter().all(|own| *own.name != *name);
    let wants = |all: &[Property], others: &[Property]| {
        all.iter().any(|own| own.required && lacks(others, &own.name))
    };
    let (first_wants, second_wants) = (wants(first, second), wants(second, first));
    // What is written of the first is not of the second, and the other way round.
    let first_is_not = (second_wants && first_more.is_none()) || (*second_closed && first_wants);
    let second_is_not = (first_wants && second_more.is_none()) || (*first_closed && second_wants);
    let mut differs = |own: &Property| {
        let same = second.iter().find(|two| two.name == own.name && (own.required || two.required));
        same.is_some_and(|two| are_apart(grammar, own.value, two.value, deep - 1, budget))
    };
    (first_is_not && second_is_not) || first.iter().any(&mut differs)
}
