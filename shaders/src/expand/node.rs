//! JSON as it stands in the text: with the order of keys, which is the order of loops, and without keys that are there twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A value of JSON.
pub(super) enum Node {
    /// Text, number, or truth.
    Plain(Value),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the text.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The text, where it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Node::Plain(value) => value.as_str(),
            _ => None,
        }
    }

    /// The value without the order of its keys.
    pub(super) fn into_value(self) -> Value {
        match self {
            Node::Plain(value) => value,
            Node::List(list) => Value::Array(list.into_iter().map(Node::into_value).collect()),
            Node::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, node)| (key, node.into_value())).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, an integer, a truth value, a list or an object")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = access.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut fields: Vec<(String, Node)> = Vec::new();
        while let Some((key, node)) = access.next_entry::<String, Node>()? {
            if fields.iter().any(|(other, _)| *other == key) {
                return Err(A::Error::custom(format!("the key '{key}' is there twice")));
            }
            fields.push((key, node));
        }
        Ok(Node::Object(fields))
    }
}
