//! The metadata keys of an architecture.

use halite_formats::gguf::Value;

use super::{
    Result,
    family::Family,
    file::{File, invalid, unsupported},
};

/// The keys of an architecture.
pub(super) struct Keys<'a> {
    pub file: &'a File,
    pub family: &'static Family,
}

impl Keys<'_> {
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.family.name)
    }

    pub fn value(&self, name: &str) -> Option<&Value> {
        self.file.value(&self.key(name))
    }

    pub fn missing(&self, name: &str) -> crate::CompileError {
        invalid(format!("the metadata key '{}' is missing", self.key(name)))
    }

    /// A count, if it is there; of one for each layer that of all.
    pub fn optional(&self, name: &str) -> Result<Option<u64>> {
        self.of_all(name, |_| true)
    }

    /// A count that layers without attention do not have: 0 there, or in all.
    pub fn of_layers(&self, name: &str) -> Result<Option<u64>> {
        Ok(self.of_all(name, |value| *value != Value::Int(0))?.filter(|count| *count > 0))
    }

    fn of_all(&self, name: &str, counts: impl Fn(&Value) -> bool) -> Result<Option<u64>> {
        let wrong = || invalid(format!("the metadata key '{}' is no count", self.key(name)));
        let value = match self.value(name) {
            None => return Ok(None),
            Some(Value::Int(value)) => *value,
            Some(Value::Array(array)) => {
                let mut all = array.scalars().filter(counts);
                let first = match all.next() {
                    Some(Value::Int(first)) => first,
                    None if !array.is_empty() => return Ok(None),
                    _ => return Err(wrong()),
                };
                if all.any(|other| other != Value::Int(first)) {
                    let key = self.key(name);
                    return Err(unsupported(format!("'{key}' that is not the same in all layers")));
                }
                first
            }
            Some(_) => return Err(wrong()),
        };
        u64::try_from(value).ok().filter(|count| *count < 1 << 32).map(Some).ok_or_else(wrong)
    }

    pub fn count(&self, name: &str) -> Result<u64> {
        match self.optional(name)? {
            None => Err(self.missing(name)),
            Some(0) => Err(invalid(format!("the metadata key '{}' is 0", self.key(name)))),
            Some(count) => Ok(count),
        }
    }

    /// A number, if it is there.
    pub fn float(&self, name: &str) -> Result<Option<f64>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Float(value)) if value.is_finite() => Ok(Some(*value)),
            Some(Value::Int(value)) => Ok(Some(*value as f64)),
            Some(_) => Err(invalid(format!("the metadata key '{}' is no number", self.key(name)))),
        }
    }

    /// A number other than 0, if it is there.
    pub fn factor(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.float(name)?.filter(|value| *value != 0.0))
    }

    /// What a key says, if it is there.
    pub fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => {
                Err(invalid(format!("the metadata key '{}' is neither true nor false", self.key(name))))
            }
        }
    }
}
