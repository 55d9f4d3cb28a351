//! Running graphs on the host with the operations' references: slow, and the reference for everything faster.

use std::{collections::HashMap, rc::Rc};

use halite_ops::{DType, Values};

use super::{Graph, Node, NodeOp, Region, TensorId};
use crate::{CompileError, SourceLocation};

/// Most runs of one loop.
const MOST_RUNS: i64 = 1 << 20;
/// Most elements of all tensors together: each takes 8 bytes here, and all are kept until the end.
const MOST_ELEMENTS: u64 = 1 << 28;

type Known = HashMap<TensorId, Rc<Values>>;

impl Graph {
    /// The outputs for values of the inputs, both in the order of the ports. Results of each node are rounded to the type
    /// that they are stored in. Runs of regions may nest as deep as regions do.
    ///
    /// # Errors
    /// There are not as many values as inputs or elements, the tensors are too large for the host, or a loop has no end in
    /// sight.
    pub fn evaluate(&self, inputs: &[Values]) -> Result<Vec<Values>, CompileError> {
        let wrong = |text: String| Err(CompileError::Request(text));
        if inputs.len() != self.inputs.len() {
            return wrong(format!("{} inputs were given, there are {}", inputs.len(), self.inputs.len()));
        }
        self.fits_the_host()?;
        let mut known = Known::new();
        for (port, values) in self.inputs.iter().zip(inputs) {
            if values.len() as u64 != self.tensor(port.tensor).elements() {
                return wrong(format!(
                    "input '{}' has {} elements, not {}",
                    port.name,
                    values.len(),
                    self.describe(port.tensor)
                ));
            }
            known.insert(port.tensor, Rc::new(values.clone()));
        }
        let results = self.run(&self.body, &mut known)?;
        Ok(results.iter().map(|values| values.as_ref().clone()).collect())
    }

    /// Refuses graphs with more elements than are kept here, and names what has the most.
    fn fits_the_host(&self) -> Result<(), CompileError> {
        let (mut total, mut largest) = (0u64, None::<(u64, SourceLocation, TensorId)>);
        self.each_region(&mut |region| {
            for node in &region.nodes {
                for id in &node.outputs {
                    let count = self.tensor(*id).elements();
                    total = total.saturating_add(count);
                    if largest.as_ref().is_none_or(|(most, ..)| count > *most) {
                        largest = Some((count, node.location.clone(), *id));
                    }
                }
            }
        });
        match largest {
            Some((_, location, id)) if total > MOST_ELEMENTS => {
                let what = self.describe(id);
                let reason = format!(
                    "{what} is too large to be computed on the host: all results together have {total} elements, and up \
                     to {MOST_ELEMENTS} are kept"
                );
                Err(CompileError::unsupported(&location, reason))
            }
            _ => Ok(()),
        }
    }

    fn run(&self, region: &Region, known: &mut Known) -> Result<Vec<Rc<Values>>, CompileError> {
        for node in &region.nodes {
            let inputs: Vec<Rc<Values>> = node.inputs.iter().map(|id| self.value(*id, known)).collect();
            let outputs = match &node.op {
                NodeOp::Operation(operation) => {
                    let inputs: Vec<Values> = inputs.iter().map(|v| v.as_ref().clone()).collect();
                    let made = operation.reference(&inputs).into_iter().zip(&node.outputs);
                    made.map(|(values, id)| Rc::new(stored(&values, self.storage(*id)))).collect()
                }
                NodeOp::Foreign(kernel) => {
                    let reason = format!("the host has no reference for {kernel}, the model's own kernel");
                    return Err(CompileError::unsupported(&node.location, reason));
                }
                NodeOp::Host(_) => {
                    let reason = "the host has no reference for sizes that data decide";
                    return Err(CompileError::unsupported(&node.location, reason));
                }
                NodeOp::View => vec![self.seen(node, &inputs[0])],
                NodeOp::If(branches) => {
                    let branch = usize::from(inputs[0].int(0) == 0);
                    self.run(&branches[branch], known)?
                }
                NodeOp::Loop(body) => self.repeat(node, body, inputs, known)?,
            };
            known.extend(node.outputs.iter().copied().zip(outputs));
        }
        Ok(region.results.iter().map(|id| self.value(*id, known)).collect())
    }

    fn repeat(
        &self,
        node: &Node,
        body: &Region,
        inputs: Vec<Rc<Values>>,
        known: &mut Known,
    ) -> Result<Vec<Rc<Values>>, CompileError> {
        let most = inputs[0].int(0);
        if most > MOST_RUNS {
            return Err(CompileError::unsupported(
                &node.location,
                format!("a loop of {most} runs on the host"),
            ));
        }
        // The condition and what is carried.
        let mut state = inputs[1..].to_vec();
        for run in 0..most {
            if state[0].int(0) == 0 {
                break;
            }
            known.insert(body.parameters[0], Rc::new(Values::Int(vec![run])));
            known.extend(body.parameters[1..].iter().copied().zip(state));
            state = self.run(body, known)?;
        }
        Ok(state.split_off(1))
    }

    fn storage(&self, id: TensorId) -> DType {
        self.tensor(id).element.storage()
    }

    fn seen(&self, node: &Node, values: &Rc<Values>) -> Rc<Values> {
        let (from, to) = (self.storage(node.inputs[0]), self.storage(node.outputs[0]));
        if from == to { Rc::clone(values) } else { Rc::new(Values::from_bytes(to, &values.to_bytes(from))) }
    }

    fn value(&self, id: TensorId, known: &mut Known) -> Rc<Values> {
        if let Some(bytes) = &self.tensor(id).constant {
            let read = || Rc::new(Values::from_bytes(self.storage(id), bytes));
            return Rc::clone(known.entry(id).or_insert_with(read));
        }
        Rc::clone(known.get(&id).expect("graphs that were checked define tensors before they read them"))
    }
}

/// The values as memory has them.
fn stored(values: &Values, dtype: DType) -> Values {
    Values::from_bytes(dtype, &values.to_bytes(dtype))
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::Function;

    use super::*;
    use crate::{
        build::Builder,
        graph::{ElementType, NodeOp},
    };

    #[test]
    fn what_the_host_cannot_hold_is_refused_by_name() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[]).unwrap();
        let wide = b.expand(x, &[1 << 17, 1 << 17]).unwrap();
        let y = b.unary(Function::Neg, wide).unwrap();
        b.output("y", y);
        let graph = b.finish().unwrap();
        let error = graph.evaluate(&[Values::Float(vec![1.0])]).unwrap_err().to_string();
        assert!(error.contains("f32[131072x131072]") && error.contains("host"), "{error}");
    }

    #[test]
    fn loops_run_as_often_as_they_should() {
        let mut b = Builder::new();
        let most = b.input("most", DType::I64.into(), &[]).unwrap();
        let start = b.input("start", DType::F32.into(), &[2]).unwrap();
        let go = b.values(ElementType::Bool, &[], &Values::Int(vec![1])).unwrap();
        let carried = (ElementType::Of(DType::F32), vec![2]);
        let parameters =
            b.region(&[(DType::I64.into(), vec![]), (ElementType::Bool, vec![]), carried.clone()]).unwrap();
        let doubled = b.binary(Function::Add, parameters[2], parameters[2]).unwrap();
        let limit = b.float(DType::I64, 3.0).unwrap();
        let less = b.compare(Function::Lt, parameters[0], limit).unwrap();
        let body = b.close(&[less, doubled]);
        let out = b.push(NodeOp::Loop(Box::new(body)), &[most, go, start], &[carried]).unwrap();
        b.output("out", out[0]);
        let graph = b.finish().unwrap();
        let run = |most| {
            let inputs = [Values::Int(vec![most]), Values::Float(vec![1.0, -3.0])];
            graph.evaluate(&inputs).unwrap()[0].floats()
        };
        assert_eq!(run(0), [1.0, -3.0]);
        assert_eq!(run(2), [4.0, -12.0]);
        // The condition ends it after the run with number 3.
        assert_eq!(run(100), [16.0, -48.0]);
    }
}
