//! Values of a JSON document with where they are, so that errors can say it.

use serde_json::{Map, Value};

use crate::TextError;

/// A value, and the keys that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct At<'a> {
    pub value: &'a Value,
    pub place: String,
}

type Result<T> = std::result::Result<T, TextError>;

static NULL: Value = Value::Null;

impl<'a> At<'a> {
    /// The document of a file.
    pub fn root(value: &'a Value, file: &str) -> At<'a> {
        At { value, place: format!("{file}:") }
    }

    /// The value of a key: null where there is none.
    pub fn get(&self, key: &str) -> At<'a> {
        let place = match self.place.strip_suffix('\'') {
            Some(before) => format!("{before}.{key}'"),
            None => format!("{} '{key}'", self.place),
        };
        At { value: self.value.get(key).unwrap_or(&NULL), place }
    }

    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// The value unless there is none.
    pub fn some(self) -> Option<At<'a>> {
        (!self.is_null()).then_some(self)
    }

    pub fn wrong(&self, problem: impl Into<String>) -> TextError {
        TextError::file(self.place.clone(), problem)
    }

    pub fn unsupported(&self, problem: &str) -> TextError {
        TextError::Unsupported(format!("{} {problem}", self.place))
    }

    fn need<T>(&self, found: Option<T>, wanted: &str) -> Result<T> {
        found.ok_or_else(|| match self.is_null() {
            true => self.wrong("is missing"),
            false => self.wrong(format!("is no {wanted}")),
        })
    }

    pub fn text(&self) -> Result<&'a str> {
        self.need(self.value.as_str(), "text")
    }

    pub fn array(&self) -> Result<Vec<At<'a>>> {
        let all = self.need(self.value.as_array(), "array")?;
        let each = |(at, value)| At { value, place: format!("{} [{at}]", self.place) };
        Ok(all.iter().enumerate().map(each).collect())
    }

    /// The values of a long array, without places of their own.
    pub fn values(&self) -> Result<&'a [Value]> {
        self.need(self.value.as_array(), "array").map(Vec::as_slice)
    }

    pub fn object(&self) -> Result<&'a Map<String, Value>> {
        self.need(self.value.as_object(), "object")
    }

    pub fn id(&self) -> Result<u32> {
        self.need(self.value.as_u64().and_then(|id| u32::try_from(id).ok()), "token's number")
    }

    /// A flag; what it is where there is none.
    pub fn flag_or(&self, other: bool) -> Result<bool> {
        if self.is_null() { Ok(other) } else { self.need(self.value.as_bool(), "flag (true or false)") }
    }

    /// A number; what it is where there is none.
    pub fn count_or(&self, other: u64) -> Result<u64> {
        if self.is_null() { Ok(other) } else { self.need(self.value.as_u64(), "number from 0 on") }
    }

    pub fn text_or(&self, other: &'a str) -> Result<&'a str> {
        if self.is_null() { Ok(other) } else { self.text() }
    }

    /// The name of a kind, in `type`.
    pub fn kind(&self) -> Result<&'a str> {
        self.object()?;
        self.get("type").text()
    }

    /// Refuses keys that are not known.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        match self.object()?.keys().find(|key| !known.contains(&key.as_str()) && *key != "type") {
            Some(other) => {
                let problem =
                    format!("is not known; '{}' may have: {}", self.get("type").value, known.join(", "));
                Err(self.get(other).unsupported(&problem))
            }
            None => Ok(()),
        }
    }

    pub fn unknown_kind(&self, kind: &str, known: &str) -> TextError {
        self.get("type").unsupported(&format!("is '{kind}', which is not known; there are: {known}"))
    }
}
