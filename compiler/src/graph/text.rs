//! The text form of graphs, for people.

use std::fmt;

use super::{Graph, NodeOp, Region, TensorId};

impl Graph {
    /// A tensor as text: `%12 f32[1x3x224x224]`.
    pub fn describe(&self, id: TensorId) -> String {
        let tensor = self.tensor(id);
        let dims: Vec<_> = tensor.sizes().iter().map(ToString::to_string).collect();
        let constant = if tensor.constant.is_some() { "const " } else { "" };
        format!("{constant}%{} {}[{}]", id.index(), tensor.element, dims.join("x"))
    }

    pub(super) fn list(&self, ids: &[TensorId]) -> String {
        let all: Vec<_> = ids.iter().map(|id| self.describe(*id)).collect();
        all.join(", ")
    }

    fn write_region(&self, region: &Region, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = "  ".repeat(depth);
        for node in &region.nodes {
            let op = match &node.op {
                NodeOp::Operation(operation) => operation.to_string(),
                NodeOp::Foreign(kernel) => kernel.to_string(),
                NodeOp::View => "view".to_owned(),
                NodeOp::If(_) => "if".to_owned(),
                NodeOp::Loop(_) => "loop".to_owned(),
                NodeOp::Host(work) => work.to_string(),
            };
            let (outputs, inputs) = (self.list(&node.outputs), self.list(&node.inputs));
            writeln!(f, "{indent}{outputs} = {op}({inputs})  // {}", node.location)?;
            match &node.op {
                NodeOp::If(branches) => {
                    for (branch, name) in branches.iter().zip(["then", "else"]) {
                        writeln!(f, "{indent}{name}")?;
                        self.write_region(branch, depth + 1, f)?;
                    }
                }
                NodeOp::Loop(body) => {
                    writeln!(f, "{indent}body({})", self.list(&body.parameters))?;
                    self.write_region(body, depth + 1, f)?;
                }
                NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
            }
        }
        writeln!(f, "{indent}return {}", self.list(&region.results))
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for port in &self.inputs {
            writeln!(f, "input '{}' {}", port.name, self.describe(port.tensor))?;
        }
        self.write_region(&self.body, 0, f)?;
        for port in &self.outputs {
            writeln!(f, "output '{}' {}", port.name, self.describe(port.tensor))?;
        }
        for state in &self.states {
            let (input, output) = (&self.inputs[state.input].name, &self.outputs[state.output].name);
            writeln!(f, "state '{input}' becomes '{output}'")?;
        }
        Ok(())
    }
}
