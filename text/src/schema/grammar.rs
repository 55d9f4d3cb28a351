//! What a schema allows, as a state machine reads it.

use std::collections::HashSet;

use super::{numbers::Range, pattern::Pattern};

/// The number of a node.
pub(super) type NodeId = u32;

/// The node of any value, and those of its kinds: the first ones of each grammar.
pub(super) const ANY: NodeId = 0;
pub(super) const ANY_OBJECT: NodeId = 1;
pub(super) const ANY_ARRAY: NodeId = 2;
pub(super) const ANY_TEXT: NodeId = 3;
pub(super) const ANY_WORD: NodeId = 4;

/// No bound of a length.
pub(super) const NO_BOUND: u32 = u32::MAX;

/// Values within each other, at most.
pub(super) const MOST_DEPTH: u32 = 128;

/// Values that are allowed at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// All of them.
    Any,
    /// None.
    Never,
    /// One of these texts, in their order.
    Words(Box<[Box<[u8]>]>),
    /// A string of so many characters.
    Text { least: u32, most: u32 },
    /// A string that a pattern matches.
    Pattern(Box<Pattern>),
    /// A number.
    Number,
    /// A number within bounds.
    Range(Box<Range>),
    /// A list: what its first elements are, what others are, and how many there are.
    Array { first: Box<[NodeId]>, rest: Option<NodeId>, least: u32, most: u32 },
    /// An object: properties in their order, and what others are.
    Object {
        properties: Box<[Property]>,
        more: Option<NodeId>,
        /// Whether the schema forbids what is not written anyway.
        closed: bool,
    },
    /// What one of these is. None of them is a union, once the grammar is whole.
    Union(Box<[NodeId]>),
}

/// A property of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Property {
    /// Its name as it is written, without quotation marks.
    pub name: Box<[u8]>,
    pub value: NodeId,
    pub required: bool,
}

/// A schema as nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grammar {
    pub nodes: Vec<Node>,
    pub root: NodeId,
    /// How many values a value of each node has within each other, at least: what is more than [`MOST_DEPTH`] cannot be written.
    pub needs: Vec<u32>,
    /// Nodes whose schemas say nothing of other kinds of values, and so allow them.
    pub loose: HashSet<NodeId>,
}

impl Grammar {
    /// The first nodes, which any schema has.
    pub fn basic() -> Vec<Node> {
        let object = Node::Object { properties: Box::new([]), more: Some(ANY), closed: false };
        let array = Node::Array { first: Box::new([]), rest: Some(ANY), least: 0, most: NO_BOUND };
        let text = Node::Text { least: 0, most: NO_BOUND };
        let words = ["false", "null", "true"].map(|word| word.as_bytes().into()).into();
        vec![Node::Any, object, array, text, Node::Words(words)]
    }

    /// The grammar of nodes whose unions have no unions within.
    pub fn new(nodes: Vec<Node>, root: NodeId, loose: HashSet<NodeId>) -> Grammar {
        let mut grammar = Grammar { needs: vec![u32::MAX; nodes.len()], nodes, root, loose };
        // Each round finds what needs one value more, so that there are not many.
        loop {
            let mut is_changed = false;
            for place in 0..grammar.nodes.len() {
                let need = grammar.need(&grammar.nodes[place]);
                if need <= MOST_DEPTH && need < grammar.needs[place] {
                    grammar.needs[place] = need;
                    is_changed = true;
                }
            }
            if !is_changed {
                return grammar;
            }
        }
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Whether a value may be there where so many are around it.
    pub fn fits(&self, id: NodeId, depth: u32) -> bool {
        self.needs[id as usize].saturating_add(depth) <= MOST_DEPTH
    }

    fn need(&self, node: &Node) -> u32 {
        let of = |id: &NodeId| self.needs[*id as usize];
        let within = |all: &mut dyn Iterator<Item = u32>| all.max().map_or(0, |most| most.saturating_add(1));
        match node {
            Node::Never => u32::MAX,
            Node::Any | Node::Words(_) | Node::Text { .. } | Node::Pattern(_) => 0,
            Node::Number | Node::Range(_) => 0,
            Node::Array { first, rest, least, .. } => {
                let named = first.iter().take(*least as usize).map(of);
                let rest = rest.iter().filter(|_| *least as usize > first.len()).map(of);
                within(&mut named.chain(rest))
            }
            Node::Object { properties, .. } => {
                within(&mut properties.iter().filter(|own| own.required).map(|own| of(&own.value)))
            }
            Node::Union(all) => all.iter().map(of).min().unwrap_or(u32::MAX),
        }
    }
}
