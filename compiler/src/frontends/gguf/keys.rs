//! The metadata keys of an architecture.

use halite_formats::gguf::Value;

use super::{
    Result,
    family::Family,
    file::{File, invalid, unsupported},
    read_by::reads,
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

    /// What a key says, if it is there and the architecture reads it.
    pub fn value(&self, name: &str) -> Option<&Value> {
        if reads(self.family.name, name) { self.file.value(&self.key(name)) } else { None }
    }

    pub fn missing(&self, name: &str) -> crate::CompileError {
        invalid(format!("the metadata key '{}' is missing", self.key(name)))
    }

    /// A count, if it is there; of one for each layer that of all.
    pub fn optional(&self, name: &str) -> Result<Option<u64>> {
        let wrong = || invalid(format!("the metadata key '{}' is no count", self.key(name)));
        let value = match self.value(name) {
            None => return Ok(None),
            Some(Value::Int(value)) => *value,
            Some(Value::Array(array)) => {
                let mut all = array.scalars();
                let Some(Value::Int(first)) = all.next() else { return Err(wrong()) };
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

    /// A count of each of so many layers, if it is there: one for all, or a list.
    pub fn each(&self, name: &str, layers: u64) -> Result<Option<Vec<u64>>> {
        let wrong =
            || invalid(format!("the metadata key '{}' is no count of {layers} layers", self.key(name)));
        let count = |value: &Value| match value {
            Value::Int(value) => u64::try_from(*value).ok().filter(|count| *count < 1 << 32),
            Value::Bool(value) => Some(u64::from(*value)),
            _ => None,
        };
        match self.value(name) {
            None => Ok(None),
            Some(Value::Array(array)) => {
                let all: Option<Vec<u64>> =
                    array.scalars().take(layers as usize).map(|value| count(&value)).collect();
                all.filter(|all| all.len() as u64 == layers).map(Some).ok_or_else(wrong)
            }
            Some(value) => count(value).map(|own| Some(vec![own; layers as usize])).ok_or_else(wrong),
        }
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
