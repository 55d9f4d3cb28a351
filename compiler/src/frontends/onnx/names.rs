//! What names of domains, functions and nodes mean.

use halite_formats::onnx::{Function, Model, Node, OpsetId};

use crate::SourceLocation;

/// The function of the model that a node calls.
pub(super) fn function_of<'m>(model: &'m Model, node: &Node) -> Option<&'m Function> {
    model.functions.iter().find(|function| {
        function.name == node.op_type
            && own_domain(&function.domain) == own_domain(&node.domain)
            && function.overload == node.overload
    })
}

/// Where a node is: its operator and name, behind the place that it is in.
pub(super) fn location_of(node: &Node, index: usize, outer: &str) -> SourceLocation {
    let own = match node.name.as_str() {
        "" => format!("{} #{index}", node.op_type),
        name => format!("{} '{name}'", node.op_type),
    };
    SourceLocation::new(if outer.is_empty() { own } else { format!("{outer} / {own}") })
}

/// The version of a domain's operators.
pub(super) fn version_of(domain: &str, opsets: &[OpsetId]) -> i64 {
    let found = opsets.iter().find(|opset| own_domain(&opset.domain) == domain);
    found.map_or(1, |opset| opset.version)
}

/// ONNX's own domain has two names.
pub(super) fn own_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}
