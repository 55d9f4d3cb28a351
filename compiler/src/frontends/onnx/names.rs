//! What names of domains, functions and nodes mean.

use std::collections::HashMap;

use halite_formats::onnx::{Function, Model, Node, OpsetId};

use crate::SourceLocation;

/// The functions of a model.
pub(super) struct Functions<'m>(HashMap<[&'m str; 3], &'m Function>);

impl<'m> Functions<'m> {
    /// Those of a model; of several with one name the first.
    pub(super) fn of(model: &'m Model) -> Self {
        let mut all = HashMap::new();
        for function in &model.functions {
            let name = [own_domain(&function.domain), &function.name, &function.overload];
            all.entry(name).or_insert(function);
        }
        Functions(all)
    }

    /// The function that a node calls.
    pub(super) fn called_by(&self, node: &Node) -> Option<&'m Function> {
        self.0.get(&[own_domain(&node.domain), node.op_type.as_str(), node.overload.as_str()]).copied()
    }
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
