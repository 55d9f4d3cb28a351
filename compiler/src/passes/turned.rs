//! Rotary embedding of new rows goes into what writes them into a cache, and roundings of few rows into what computes them: the
//! types that kernels store.

use std::collections::HashMap;

use halite_ops::{
    DType, Operation,
    attention::Attention,
    kv_append::{KvAppend, Turns},
    rotary::Rotary,
};

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Rewrites what follows such an operation; that goes with the next cleaning.
pub(super) fn run(_: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut producers: HashMap<TensorId, usize> = HashMap::new();
    for place in 0..region.nodes.len() {
        watch.check()?;
        let node = &region.nodes[place];
        let before = node.inputs.first().filter(|id| uses.count(**id) == 1).and_then(|id| producers.get(id));
        if let Some(new) = before.and_then(|before| joined(&region.nodes[*before], node)) {
            uses.replace(node, &new);
            region.nodes[place] = new;
        }
        let node = &region.nodes[place];
        // Elements that are seen under other dimensions are those of what makes them.
        let made = match node.op {
            NodeOp::View => {
                node.inputs.first().filter(|id| uses.count(**id) == 1).and_then(|id| producers.get(id))
            }
            _ => Some(&place),
        };
        if let Some(made) = made.copied() {
            producers.extend(node.outputs.iter().map(|id| (*id, made)));
        }
    }
    Ok(())
}

/// The node that does what both do.
fn joined(before: &Node, node: &Node) -> Option<Node> {
    let (NodeOp::Operation(first), NodeOp::Operation(second)) = (&before.op, &node.op) else { return None };
    let operation = match (first, second) {
        (Operation::Rotary(rotary), Operation::KvAppend(append)) => {
            let operation = written(rotary, append)?;
            let mut inputs = before.inputs[..1].to_vec();
            inputs.extend(&node.inputs[1..]);
            inputs.extend(&before.inputs[1..]);
            return checked(operation, inputs, node);
        }
        (Operation::Rotary(rotary), _) => {
            let out = Some(stored_type(second, rotary.dtype).filter(|_| rotary.out.is_none())?);
            Operation::Rotary(Rotary { out, ..rotary.clone() })
        }
        (Operation::Attention(attention), _) => {
            let out = Some(stored_type(second, attention.dtype).filter(|_| attention.out.is_none())?);
            Operation::Attention(Attention { out, ..attention.clone() })
        }
        _ => return None,
    };
    checked(operation, before.inputs.clone(), node)
}

fn checked(operation: Operation, inputs: Vec<TensorId>, node: &Node) -> Option<Node> {
    crate::backend::check(&operation).ok()?;
    Some(Node { op: NodeOp::Operation(operation), inputs, ..node.clone() })
}

/// The writing of rows that are turned first.
fn written(rotary: &Rotary, append: &KvAppend) -> Option<Operation> {
    let turned = Turns::of(rotary)?;
    let same = rotary.batch.is(append.batch)
        && rotary.heads == append.kv_heads
        && rotary.len.is(append.len)
        && rotary.head_dim == append.head_dim
        && rotary.dtype == append.rows;
    let plain = append.turned.is_none() && !append.seq_first;
    (same && plain).then(|| Operation::KvAppend(KvAppend { turned: Some(turned), ..append.clone() }))
}

/// The type that an operation brings elements of one type to, if it does nothing else.
fn stored_type(operation: &Operation, from: DType) -> Option<DType> {
    let Operation::Elementwise(elementwise) = operation else { return None };
    let (dtype, to) = elementwise.conversion()?;
    (dtype == from && to != from).then_some(to)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values, expression::Function};

    use super::super::tests::{kernels, optimized};
    use super::*;
    use crate::build::{Builder, Scores};

    /// Names of the operations of a step of a decoder with a number of tokens, which reads the turned keys once more, or does not.
    fn operations(len: u64, keys_are_read: bool) -> Vec<String> {
        let mut b = Builder::new();
        let input = |b: &mut Builder, name: &str, dtype: DType, dims: &[u64]| {
            b.input(name, dtype.into(), dims).unwrap()
        };
        let x = input(&mut b, "x", DType::F32, &[1, 2, len, 8]);
        let caches = ["keys", "values"].map(|name| input(&mut b, name, DType::F16, &[1, 2, 16, 8]));
        let table = |b: &mut Builder| b.values(DType::F32, &[16, 4], &Values::Float(vec![0.5; 64])).unwrap();
        let tables = [table(&mut b), table(&mut b)];
        let positions: Vec<i64> = (3..3 + len as i64).collect();
        let positions = b.values(DType::I64, &[1, len], &Values::Int(positions)).unwrap();
        let start = b.values(DType::I32, &[1], &Values::Int(vec![3])).unwrap();
        let q = b.rotary(x, positions, tables, 8, false).unwrap();
        let k = b.unary(Function::Neg, x).unwrap();
        let k = b.rotary(k, positions, tables, 8, true).unwrap();
        let keys = b.append(k, caches[0], start).unwrap();
        let q = b.cast(q, DType::F16).unwrap();
        let made = b.attention([q, keys, caches[1]], None, Scores::default()).unwrap();
        let made = b.as_f32(made).unwrap();
        b.output("y", made);
        b.output("keys", keys);
        if keys_are_read {
            b.output("k", k);
        }
        let graph = optimized(b.finish().unwrap());
        let name = |operation: &Operation| format!("{}:{}", operation.name(), operation.signature());
        kernels(&graph).into_iter().map(name).collect()
    }

    #[test]
    fn roundings_in_another_order_stay() {
        let mut b = Builder::new();
        let dims = [1, 2, 3, 8];
        let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, DType::F16.into(), &dims).unwrap());
        let made = b.attention([q, k, v], None, Scores::default()).unwrap();
        let made = b.transpose(made, &[0, 1, 3, 2]).unwrap();
        let made = b.as_f32(made).unwrap();
        b.output("y", made);
        let graph = optimized(b.finish().unwrap());
        let types: Vec<String> = kernels(&graph).into_iter().map(Operation::signature).collect();
        assert_eq!(types[0], "f16", "{graph}");
    }

    #[test]
    fn rows_are_turned_and_rounded_where_they_are_written() {
        let few = operations(2, false);
        assert_eq!(
            few[few.len() - 3..],
            ["kv_append:turned_f32_f16", "rotary:f32_f16", "attention:f16_f32"],
            "{few:?}"
        );
        // Results of many queries have one type.
        let many = operations(9, false);
        assert!(many.contains(&"attention:f16".to_owned()), "{many:?}");
        let read = operations(2, true);
        assert!(read.contains(&"kv_append:f32_f16".to_owned()), "{read:?}");
    }
}
