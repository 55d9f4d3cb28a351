//! Words of schemas: which are known, which say nothing about values, and what is read the same way everywhere.

use serde_json::{Map, Value};

use super::grammar::NO_BOUND;

/// Why a schema is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub text: String,
    /// Whether it is a schema that asks for what there is not.
    pub is_unsupported: bool,
}

impl Fault {
    pub fn wrong(text: impl Into<String>) -> Fault {
        Fault { text: text.into(), is_unsupported: false }
    }

    /// A keyword that is wrong, or is not supported.
    pub fn of(name: &str, problem: impl AsRef<str>) -> Fault {
        let problem = problem.as_ref();
        Fault {
            text: format!("'{}' {problem}", cut(name)),
            is_unsupported: problem.contains("not supported"),
        }
    }
}

/// What only describes.
const DESCRIBES: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "readOnly",
    "strict",
    "title",
    "writeOnly",
];
/// What is not about one kind of values.
const GENERAL: &[&str] = &["$ref", "allOf", "anyOf", "const", "enum", "nullable", "oneOf", "type"];
const OF_STRINGS: &[&str] = &["format", "maxLength", "minLength", "pattern"];
const OF_NUMBERS: &[&str] = &["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"];
const OF_ARRAYS: &[&str] =
    &["additionalItems", "items", "maxItems", "minItems", "prefixItems", "uniqueItems"];
const OF_OBJECTS: &[&str] = &["additionalProperties", "minProperties", "properties", "required"];

/// Kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    const ALL: [(&'static str, Kind); 7] = [
        ("null", Kind::Null),
        ("boolean", Kind::Boolean),
        ("integer", Kind::Integer),
        ("number", Kind::Number),
        ("string", Kind::String),
        ("array", Kind::Array),
        ("object", Kind::Object),
    ];

    fn read(name: &Value) -> Result<Kind, Fault> {
        let named = Kind::ALL.iter().find(|(own, _)| name.as_str() == Some(own));
        named.map(|(_, kind)| *kind).ok_or_else(|| Fault::wrong(format!("'type' is {}", short(name))))
    }

    /// Keywords that are about values of the kind.
    fn keywords(self) -> &'static [&'static str] {
        match self {
            Kind::Null | Kind::Boolean => &[],
            Kind::Integer | Kind::Number => OF_NUMBERS,
            Kind::String => OF_STRINGS,
            Kind::Array => OF_ARRAYS,
            Kind::Object => OF_OBJECTS,
        }
    }

    /// Whether a value is of the kind.
    pub fn has(self, value: &Value) -> bool {
        match self {
            Kind::Null => value.is_null(),
            Kind::Boolean => value.is_boolean(),
            Kind::Integer => value.as_f64().is_some_and(|own| own.fract() == 0.0),
            Kind::Number => value.is_number(),
            Kind::String => value.is_string(),
            Kind::Array => value.is_array(),
            Kind::Object => value.is_object(),
        }
    }
}

/// The beginning of a text that somebody gave.
pub(super) fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(80).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// The beginning of a value.
pub(super) fn short(value: &Value) -> String {
    cut(&value.to_string())
}

/// What a schema asks for, without what only describes.
///
/// # Errors
/// A keyword is not supported; it is named.
pub(super) fn checked(schema: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    let mut kept = Map::new();
    for (name, value) in schema {
        let is_known = [GENERAL, OF_STRINGS, OF_NUMBERS, OF_ARRAYS, OF_OBJECTS]
            .iter()
            .any(|names| names.contains(&name.as_str()));
        let asks_nothing = match name.as_str() {
            "uniqueItems" | "nullable" => *value == Value::Bool(false),
            "multipleOf" => false,
            // Nothing is written that is not described.
            "unevaluatedProperties" => value.is_boolean(),
            _ => DESCRIBES.contains(&name.as_str()) || name.starts_with("x-"),
        };
        match name.as_str() {
            _ if asks_nothing => {}
            "uniqueItems" | "multipleOf" => return Err(Fault::of(name, "is not supported in a schema")),
            _ if is_known => _ = kept.insert(name.clone(), value.clone()),
            _ => return Err(Fault::of(name, "is not supported in a schema")),
        }
    }
    Ok(kept)
}

/// The kinds of values that a schema is about. Where it does not say so, its keywords do.
pub(super) fn kinds(schema: &Map<String, Value>) -> Result<Vec<Kind>, Fault> {
    let mut kinds = match schema.get("type") {
        Some(Value::Array(all)) => all.iter().map(Kind::read).collect::<Result<Vec<_>, _>>()?,
        Some(one) => vec![Kind::read(one)?],
        None => {
            let has = |kind: Kind| kind.keywords().iter().any(|name| schema.contains_key(*name));
            let all = Kind::ALL.iter().map(|(_, kind)| *kind);
            all.filter(|kind| *kind != Kind::Integer && has(*kind)).collect()
        }
    };
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        kinds.push(Kind::Null);
    }
    // A whole number is a number.
    if kinds.contains(&Kind::Number) {
        kinds.retain(|kind| *kind != Kind::Integer);
    }
    let mut seen = Vec::new();
    kinds.retain(|kind| {
        !seen.contains(kind) && {
            seen.push(*kind);
            true
        }
    });
    Ok(kinds)
}

/// What of a schema is about values of a kind.
pub(super) fn only(schema: &Map<String, Value>, kind: Kind) -> Map<String, Value> {
    let own = schema.iter().filter(|(name, _)| kind.keywords().contains(&name.as_str()));
    let mut made: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    let name = Kind::ALL.iter().find(|(_, own)| *own == kind).map_or("", |(name, _)| name);
    made.insert("type".to_owned(), name.into());
    made
}

fn count(schema: &Map<String, Value>, name: &str, usual: u32) -> Result<u32, Fault> {
    let Some(value) = schema.get(name) else { return Ok(usual) };
    let whole = value.as_f64().filter(|own| own.fract() == 0.0 && *own >= 0.0);
    let whole = whole.ok_or_else(|| Fault::of(name, "is no whole number of 0 or more"))?;
    Ok(if whole >= f64::from(NO_BOUND) { NO_BOUND } else { whole as u32 })
}

/// Bounds of a length; `None` where there is no length within.
pub(super) fn bounds(
    schema: &Map<String, Value>,
    least: &str,
    most: &str,
) -> Result<Option<(u32, u32)>, Fault> {
    let (least, most) = (count(schema, least, 0)?, count(schema, most, NO_BOUND)?);
    Ok((least <= most && least < NO_BOUND).then_some((least, most)))
}

/// The names of properties that have to be there.
pub(super) fn required(schema: &Map<String, Value>) -> Result<Vec<&str>, Fault> {
    let wrong = || Fault::of("required", "is no list of names");
    let mut names = match schema.get("required") {
        None => Vec::new(),
        Some(Value::Array(all)) => {
            all.iter().map(|own| own.as_str().ok_or_else(wrong)).collect::<Result<Vec<_>, _>>()?
        }
        Some(_) => return Err(wrong()),
    };
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    Ok(names)
}

/// Refuses a least number of properties that those that have to be there do not reach.
pub(super) fn check_count(schema: &Map<String, Value>, required: usize) -> Result<(), Fault> {
    match count(schema, "minProperties", 0)? as usize > required {
        true => Err(Fault::of("minProperties", "is not supported where 'required' has fewer")),
        false => Ok(()),
    }
}
