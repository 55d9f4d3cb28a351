//! A call of a tool.

use serde_json::{Value, json};

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

impl Call {
    /// As an answer has it.
    pub fn json(&self, id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}})
    }
}
