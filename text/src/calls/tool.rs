//! Tools and calls of them.

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

/// What is known of the tools that a model may call.
pub trait Callable {
    /// Whether a tool has this name.
    fn has(&self, name: &str) -> bool;

    /// Whether an argument of a tool is a text and nothing else. Forms whose values have no quotes leave that open.
    fn is_text(&self, name: &str, argument: &str) -> bool;
}
