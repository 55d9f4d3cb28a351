//! The fields of a request's body, and what is read of them the same way everywhere.

use serde_json::{Map, Value};

use super::error::Refusal;

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Most objects of a body: messages and their parts.
const MOST_OBJECTS: usize = 1 << 14;
/// Most elements of lists and objects of a body: tokens, mostly.
const MOST_VALUES: usize = 1 << 20;

/// Which of the two forms of requests for text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Completion,
    Chat,
}

/// A field that asks for what there is not.
pub(super) fn unsupported(name: &'static str, problem: &str) -> Refusal {
    Refusal::field(name, format!("'{name}' {problem}")).code("unsupported")
}

/// The object that is a request's body.
pub(super) struct Fields(Map<String, Value>);

/// Refuses a body of very many values: in memory an object takes a hundred times as much as its text.
fn check_count(body: &[u8]) -> Result<()> {
    let (mut objects, mut values) = (0usize, 0usize);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' if !is_text => objects += 1,
            b',' | b'[' if !is_text => values += 1,
            _ => {}
        }
    }
    match objects > MOST_OBJECTS || values > MOST_VALUES {
        true => Err(Refusal::wrong(format!(
            "the body has {objects} objects and {values} values; {MOST_OBJECTS} and {MOST_VALUES} are the most"
        ))),
        false => Ok(()),
    }
}

impl Fields {
    /// Reads a body.
    pub fn read(body: &[u8]) -> Result<Fields> {
        check_count(body)?;
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) => Err(Refusal::wrong("the body is no JSON object")),
            Err(error) => Err(Refusal::wrong(format!("the body is no JSON: {error}"))),
        }
    }

    /// Those of a request that was made here.
    pub fn of(fields: Map<String, Value>) -> Fields {
        Fields(fields)
    }

    /// Takes a field away, if it is there.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Sets a field.
    pub fn put(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// A field, if it is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text, if it is there.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>> {
        let wrong = || Refusal::field(name, format!("'{name}' is no text"));
        self.get(name).map(|value| value.as_str().ok_or_else(wrong)).transpose()
    }

    /// Whether a field is true.
    pub fn flag(&self, name: &'static str) -> Result<bool> {
        let wrong = || Refusal::field(name, format!("'{name}' is neither true nor false"));
        Ok(self.get(name).map(|value| value.as_bool().ok_or_else(wrong)).transpose()?.unwrap_or(false))
    }

    /// A whole number, if it is there.
    pub fn count(&self, name: &'static str) -> Result<Option<u64>> {
        let wrong = || Refusal::field(name, format!("'{name}' is no whole number of 0 or more"));
        // Some languages write all numbers as floats.
        let whole = |value: f64| {
            (value >= 0.0 && value < 2f64.powi(53) && value.fract() == 0.0).then_some(value as u64)
        };
        let count = |value: &Value| value.as_u64().or_else(|| whole(value.as_f64()?));
        self.get(name).map(|value| count(value).ok_or_else(wrong)).transpose()
    }

    /// A number of tokens, if it is there; -1 is none at all, as servers for models on one's own machine have it.
    pub fn most(&self, name: &'static str) -> Result<Option<u64>> {
        match self.get(name).and_then(Value::as_i64) {
            Some(-1) => Ok(Some(u64::MAX)),
            _ => self.count(name),
        }
    }

    /// A number within bounds, if it is there.
    pub fn number(&self, name: &'static str, least: f64, most: f64) -> Result<Option<f32>> {
        let wrong = || Refusal::field(name, format!("'{name}' is no number from {least} to {most}"));
        let within = |value: &Value| value.as_f64().filter(|value| (least..=most).contains(value));
        let value = self.get(name).map(|value| within(value).ok_or_else(wrong)).transpose()?;
        Ok(value.map(|value| value as f32))
    }

    /// A number of tokens or choices within bounds.
    pub fn count_within(&self, name: &'static str, least: u64, most: u64, usual: u64) -> Result<u64> {
        let value = self.count(name)?.unwrap_or(usual);
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(Refusal::field(name, format!("'{name}' is {value}; there are {least} to {most}"))),
        }
    }

    /// Refuses fields that ask for what there is not. `plain` are values that ask for nothing.
    pub fn refuse(&self, names: &[(&'static str, Value)]) -> Result<()> {
        for (name, plain) in names {
            if let Some(value) = self.get(name)
                && value != plain
                && !(value.as_f64().is_some() && value.as_f64() == plain.as_f64())
            {
                return Err(unsupported(name, "is not supported; leave it out"));
            }
        }
        Ok(())
    }

    /// Refuses fields that are not known, by their names.
    pub fn check_names(&self, known: &[&[&str]]) -> Result<()> {
        let is_known = |name: &str| known.iter().any(|names| names.contains(&name));
        match self.0.iter().find(|(name, value)| !value.is_null() && !is_known(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(64).collect();
                Err(Refusal::wrong(format!("the field '{name}' is not known here; leave it out"))
                    .code("unsupported"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_very_many_values_are_refused() {
        let body = |one: &str, count: usize| format!(r#"{{"user":[{}]}}"#, vec![one; count].join(","));
        let told =
            |body: String| Fields::read(body.as_bytes()).err().map(|refusal| refusal.json().to_string());
        let objects = told(body(r#"{"":0}"#, MOST_OBJECTS)).unwrap();
        assert!(objects.contains(&format!("{} objects", MOST_OBJECTS + 1)), "{objects}");
        assert!(told(body("0", MOST_VALUES + 1)).unwrap().contains("values"));
        // Tokens of a long prompt, and what only looks like objects.
        assert_eq!(told(body("0", 1 << 17)), None);
        assert_eq!(told(body(r#""{[,\"{""#, MOST_OBJECTS)), None);
    }
}
