//! Schemas, as JSON has them, to grammars.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    apart, formats,
    grammar::{ANY, ANY_OBJECT, Grammar, MOST_DEPTH, NO_BOUND, Node, NodeId, Property},
    keywords::{self, Fault, Kind},
    merge,
    numbers::{Bound, Range},
    pattern::Pattern,
};

/// Nodes of a grammar, at most.
const MOST_NODES: usize = 20_000;
/// Bytes of all schemas that were looked at, those that are put together of others included, at most.
const MOST_READ: usize = 16 << 20;
/// Ways that a value may have at a place, at most, and those of all places.
const MOST_WAYS: usize = super::state::MOST_THREADS;
const MOST_ALL_WAYS: usize = 200_000;

/// A schema that is read.
pub(super) struct Reader<'s> {
    root: &'s Value,
    nodes: Vec<Node>,
    /// Nodes by the text of their schema.
    known: HashMap<String, NodeId>,
    /// Schemas whose nodes are still empty.
    open: Vec<(NodeId, Value)>,
    /// Unions of which a value has to be exactly one.
    exclusive: Vec<NodeId>,
    /// Nodes whose schemas say nothing of other kinds of values.
    loose: HashSet<NodeId>,
    read: usize,
}

/// The grammar of a schema.
///
/// # Errors
/// It is no schema, asks for what there is not, or no value follows it.
pub(super) fn grammar(schema: &Value) -> Result<Grammar, Fault> {
    let mut reader = Reader {
        root: schema,
        nodes: Grammar::basic(),
        known: HashMap::new(),
        open: Vec::new(),
        exclusive: Vec::new(),
        loose: HashSet::new(),
        read: 0,
    };
    let root = reader.node(schema)?;
    while let Some((id, schema)) = reader.open.pop() {
        let node = reader.filled(&schema)?;
        if matches!(schema.get("oneOf"), Some(Value::Array(_))) {
            reader.exclusive.push(id);
        }
        let says_kinds = ["type", "enum", "const"].iter().any(|name| schema.get(name).is_some());
        if !says_kinds && !matches!(node, Node::Union(_) | Node::Any | Node::Never) {
            reader.loose.insert(id);
        }
        reader.nodes[id as usize] = node;
    }
    reader.flatten()?;
    let grammar = Grammar::new(reader.nodes, root, reader.loose);
    reader.exclusive.iter().try_for_each(|id| apart::check(&grammar, *id))?;
    match grammar.fits(root, 0) {
        true => Ok(grammar),
        false => Err(Fault::wrong(format!("no value of up to {MOST_DEPTH} within each other follows it"))),
    }
}

impl Reader<'_> {
    /// The node of a schema, which is filled later.
    fn node(&mut self, schema: &Value) -> Result<NodeId, Fault> {
        if matches!(schema, Value::Bool(true)) {
            return Ok(ANY);
        }
        let text = schema.to_string();
        self.read += text.len();
        if let Some(known) = self.known.get(&text) {
            return Ok(*known);
        }
        if self.nodes.len() >= MOST_NODES || self.read > MOST_READ {
            return Err(Fault::wrong(format!(
                "it has more than {MOST_NODES} parts, or {MOST_READ} bytes where parts are put together"
            )));
        }
        let id = self.nodes.len() as NodeId;
        self.nodes.push(Node::Never);
        self.known.insert(text, id);
        self.open.push((id, schema.clone()));
        Ok(id)
    }

    fn union(&mut self, schemas: &[Value]) -> Result<Node, Fault> {
        Ok(Node::Union(schemas.iter().map(|own| self.node(own)).collect::<Result<_, _>>()?))
    }

    /// What a schema allows.
    fn filled(&mut self, schema: &Value) -> Result<Node, Fault> {
        let schema = match schema {
            Value::Bool(true) => return Ok(Node::Any),
            Value::Bool(false) => return Ok(Node::Never),
            Value::Object(schema) => keywords::checked(schema)?,
            other => return Err(Fault::wrong(format!("{} is no schema", keywords::short(other)))),
        };
        if let Some(ways) = merge::ways(self.root, &schema)? {
            return self.union(&ways);
        }
        if schema.contains_key("enum") || schema.contains_key("const") {
            return words(&schema);
        }
        let kinds = keywords::kinds(&schema)?;
        match &kinds[..] {
            [] if schema.is_empty() => Ok(Node::Any),
            [] => Ok(Node::Never),
            [kind] => self.of_kind(*kind, &schema),
            kinds => {
                let one = |kind: &Kind| Value::Object(keywords::only(&schema, *kind));
                let ways: Vec<Value> = kinds.iter().map(one).collect();
                self.union(&ways)
            }
        }
    }

    fn of_kind(&mut self, kind: Kind, schema: &Map<String, Value>) -> Result<Node, Fault> {
        match kind {
            Kind::Null => Ok(Node::Words(Box::new([b"null"[..].into()]))),
            Kind::Boolean => Ok(Node::Words(["false", "true"].map(|own| own.as_bytes().into()).into())),
            Kind::Integer => range(schema, true),
            Kind::Number => range(schema, false),
            Kind::String => text(schema),
            Kind::Array => self.array(schema),
            Kind::Object => self.object(schema),
        }
    }

    fn array(&mut self, schema: &Map<String, Value>) -> Result<Node, Fault> {
        // Until 2019 'items' could be a list.
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (None, Some(Value::Array(first))) => (&first[..], schema.get("additionalItems")),
            (Some(Value::Array(first)), rest) => (&first[..], rest),
            (None, rest) => (&[][..], rest),
            (Some(_), _) => return Err(Fault::of("prefixItems", "is no list of schemas")),
        };
        let bounds = keywords::bounds(schema, "minItems", "maxItems")?;
        if first.is_empty() && rest.is_none() && bounds == Some((0, NO_BOUND)) {
            return Ok(Node::Array { first: Box::new([]), rest: Some(ANY), least: 0, most: NO_BOUND });
        }
        let Some((least, most)) = bounds else { return Ok(Node::Never) };
        let first = first.iter().map(|own| self.node(own)).collect::<Result<Box<[_]>, _>>()?;
        let rest = match rest {
            Some(Value::Bool(false)) => None,
            Some(own) => Some(self.node(own)?),
            None => Some(ANY),
        };
        match rest {
            None if least as usize > first.len() => Ok(Node::Never),
            _ => Ok(Node::Array { first, rest, least, most }),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>) -> Result<Node, Fault> {
        let none = Map::new();
        let named = match schema.get("properties") {
            None => &none,
            Some(Value::Object(named)) => named,
            Some(_) => return Err(Fault::of("properties", "is no object")),
        };
        let required = keywords::required(schema)?;
        let more = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(own) => Some(self.node(own)?),
            // What nobody describes is not written, unless nothing is described.
            None if named.is_empty() && required.is_empty() => Some(ANY),
            None => None,
        };
        let mut properties = Vec::with_capacity(named.len());
        for (name, own) in named {
            let value = self.node(own)?;
            properties.push(Property {
                name: written(name),
                value,
                required: required.contains(&name.as_str()),
            });
        }
        for name in required.iter().filter(|name| !named.contains_key(**name)) {
            let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
            if is_closed {
                return Ok(Node::Never);
            }
            properties.push(Property { name: written(name), value: more.unwrap_or(ANY), required: true });
        }
        keywords::check_count(schema, required.len())?;
        if properties.is_empty() && more == Some(ANY) {
            return Ok(Node::Union(Box::new([ANY_OBJECT])));
        }
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        Ok(Node::Object { properties: properties.into(), more, closed })
    }

    /// Replaces what is a union within unions.
    fn flatten(&mut self) -> Result<(), Fault> {
        let mut all = 0;
        let mut flat: Vec<(usize, Box<[NodeId]>)> = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let Node::Union(own) = node else { continue };
            let (mut ways, mut seen) = (Vec::new(), HashSet::new());
            let mut open: Vec<NodeId> = own.iter().rev().copied().collect();
            while let Some(id) = open.pop() {
                if !seen.insert(id) {
                    continue;
                }
                match &self.nodes[id as usize] {
                    Node::Union(inner) => open.extend(inner.iter().rev()),
                    Node::Never => {}
                    _ => ways.push(id),
                }
                all += 1;
                if ways.len() > MOST_WAYS || all > MOST_ALL_WAYS {
                    let text = format!("a value may be one of more than {MOST_WAYS} ('anyOf', 'oneOf')");
                    return Err(Fault::wrong(text));
                }
            }
            flat.push((place, ways.into()));
        }
        flat.into_iter().for_each(|(place, ways)| self.nodes[place] = Node::Union(ways));
        Ok(())
    }
}

/// A name as it is written, without quotation marks.
fn written(name: &str) -> Box<[u8]> {
    let text = Value::from(name).to_string();
    text.as_bytes()[1..text.len() - 1].into()
}

/// The values of `enum` and `const`.
fn words(schema: &Map<String, Value>) -> Result<Node, Fault> {
    let mut all = match schema.get("enum") {
        None => schema.get("const").into_iter().collect(),
        Some(Value::Array(all)) => all.iter().collect::<Vec<_>>(),
        Some(_) => return Err(Fault::of("enum", "is no list")),
    };
    if let Some(own) = schema.get("const") {
        all.retain(|other| *other == own);
    }
    let kinds = match schema.contains_key("type") {
        true => Some(keywords::kinds(schema)?),
        false => None,
    };
    let beside = schema.keys().find(|name| !matches!(name.as_str(), "enum" | "const" | "type"));
    if let Some(name) = beside {
        return Err(Fault::of(name, "is not supported beside 'enum' or 'const'"));
    }
    all.retain(|own| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind.has(own))));
    let mut words: Vec<Box<[u8]>> = all.iter().map(|own| own.to_string().into_bytes().into()).collect();
    words.sort_unstable();
    words.dedup();
    Ok(if words.is_empty() { Node::Never } else { Node::Words(words.into()) })
}

fn text(schema: &Map<String, Value>) -> Result<Node, Fault> {
    let Some((least, most)) = keywords::bounds(schema, "minLength", "maxLength")? else {
        return Ok(Node::Never);
    };
    let source = match (schema.get("pattern"), schema.get("format")) {
        (None, None) => return Ok(Node::Text { least, most }),
        (Some(Value::String(own)), None) => own.as_str(),
        (None, Some(Value::String(format))) => match formats::pattern(format) {
            Some(own) => own,
            None => {
                return Err(Fault::of(
                    "format",
                    format!("'{format}' is not supported; there are: {}", formats::NAMES),
                ));
            }
        },
        (Some(_), Some(_)) => return Err(Fault::of("format", "is not supported beside 'pattern'")),
        (Some(_), _) => return Err(Fault::of("pattern", "is no text")),
        (_, Some(_)) => return Err(Fault::of("format", "is no text")),
    };
    match Pattern::new(source, (least, most)) {
        Ok(Some(pattern)) => Ok(Node::Pattern(Box::new(pattern))),
        Ok(None) => Ok(Node::Never),
        Err(problem) => {
            Err(Fault::of("pattern", format!("'{}' is not supported: {problem}", keywords::cut(source))))
        }
    }
}

fn range(schema: &Map<String, Value>, whole: bool) -> Result<Node, Fault> {
    let bound = |name: &'static str, is_outside: bool| match schema.get(name) {
        None | Some(Value::Bool(false)) => Ok(None),
        // In the drafts before 6, this was about the other bound.
        Some(Value::Bool(true)) => Err(Fault::of(name, "is a number")),
        Some(Value::Number(own)) => {
            let text = match own.as_f64() {
                Some(float) if !own.is_i64() && !own.is_u64() => float.to_string(),
                _ => own.to_string(),
            };
            Ok(Some(Bound { text, is_outside }))
        }
        Some(_) => Err(Fault::of(name, "is no number")),
    };
    let tighter = |one: Option<Bound>, other: Option<Bound>, low: bool| match (one, other) {
        (Some(one), Some(other)) => {
            let order = if low { one.compare(&other) } else { other.compare(&one) };
            // Of equal ones that which is outside itself.
            Some(if order.is_gt() { one } else { other })
        }
        (one, other) => one.or(other),
    };
    let low = tighter(bound("minimum", false)?, bound("exclusiveMinimum", true)?, true);
    let high = tighter(bound("maximum", false)?, bound("exclusiveMaximum", true)?, false);
    if !whole && low.is_none() && high.is_none() {
        return Ok(Node::Number);
    }
    Ok(Range::new(low.as_ref(), high.as_ref(), whole)
        .map_or(Node::Never, |range| Node::Range(Box::new(range))))
}
