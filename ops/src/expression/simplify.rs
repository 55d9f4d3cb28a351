//! Making an expression smaller without changing its results: constants are folded, equal nodes joined, conversions
//! without effect and unused nodes left out.

use std::collections::{HashMap, HashSet};

use super::{
    evaluate::apply,
    function::{Function, Type},
    program::{Expression, Node, Operand, Scalar, operand_type},
};
use crate::DType;

/// The smaller expression. `types` are those of the nodes of `expression`, for inputs of types `dtypes`.
pub fn simplify(expression: &Expression, types: &[Type], dtypes: &[DType]) -> Expression {
    let mut nodes: Vec<Node> = Vec::new();
    let mut known: HashMap<Node, usize> = HashMap::new();
    // Nodes that round floats.
    let mut rounds: HashSet<usize> = HashSet::new();
    // What each node has become.
    let mut now: Vec<Operand> = Vec::with_capacity(expression.nodes.len());
    for node in &expression.nodes {
        let operands: Vec<Operand> = node.operands.iter().map(|o| replaced(*o, &now)).collect();
        let node_before = node;
        let node = Node { operands, ..node.clone() };
        let first = operand_type(node_before.operands[0], dtypes, types).ok();
        if let Some(constant) = folded(&node) {
            now.push(Operand::Constant(constant));
        } else if node.function == Function::Cast
            && (first == node.to || is_stored_so(node_before.operands[0], node.to, dtypes))
        {
            now.push(node.operands[0]);
        } else {
            let is_rounding = node.function == Function::Cast
                && [first, node.to].into_iter().all(|of| of.is_some_and(Type::is_float));
            let index = *known.entry(node).or_insert_with_key(|node| {
                nodes.push(node.clone());
                nodes.len() - 1
            });
            now.push(Operand::Node(index));
            if is_rounding {
                rounds.insert(index);
            }
        }
    }
    let mut outputs = expression.outputs.clone();
    for output in &mut outputs {
        output.value = replaced(output.value, &now);
        // What is stored is rounded in any case.
        while let Operand::Node(index) = output.value
            && rounds.contains(&index)
            && nodes[index].to == Some(Type::Of(output.dtype))
        {
            output.value = nodes[index].operands[0];
        }
    }
    used(Expression { nodes, outputs })
}

/// Whether an input has the type already that it is rounded to.
fn is_stored_so(operand: Operand, to: Option<Type>, dtypes: &[DType]) -> bool {
    matches!(operand, Operand::Input(i) if dtypes.get(i).map(|dtype| Type::Of(*dtype)) == to)
}

fn replaced(operand: Operand, now: &[Operand]) -> Operand {
    if let Operand::Node(i) = operand { now[i] } else { operand }
}

fn folded(node: &Node) -> Option<Scalar> {
    let constant = |operand: &Operand| match operand {
        Operand::Constant(scalar) => Some(*scalar),
        _ => None,
    };
    let operands: Vec<Scalar> = node.operands.iter().map(constant).collect::<Option<_>>()?;
    Some(apply(node, &operands))
}

/// Only the nodes that outputs depend on.
fn used(mut expression: Expression) -> Expression {
    let mut needed = vec![false; expression.nodes.len()];
    let mark = |operand: &Operand, needed: &mut Vec<bool>| {
        if let Operand::Node(i) = operand {
            needed[*i] = true;
        }
    };
    expression.outputs.iter().for_each(|output| mark(&output.value, &mut needed));
    for (index, node) in expression.nodes.iter().enumerate().rev() {
        if needed[index] {
            node.operands.iter().for_each(|operand| mark(operand, &mut needed));
        }
    }
    let mut now = Vec::with_capacity(needed.len());
    let mut nodes = Vec::new();
    for (index, mut node) in expression.nodes.drain(..).enumerate() {
        now.push(Operand::Node(nodes.len()));
        if needed[index] {
            node.operands.iter_mut().for_each(|operand| *operand = replaced(*operand, &now));
            nodes.push(node);
        }
    }
    expression.nodes = nodes;
    expression.outputs.iter_mut().for_each(|output| output.value = replaced(output.value, &now));
    expression
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(text: &str, dtypes: &[DType]) -> String {
        let expression: Expression = text.parse().unwrap();
        let types = expression.types(dtypes).unwrap();
        simplify(&expression, &types, dtypes).to_string()
    }

    #[test]
    fn constants_and_equal_nodes() {
        let floats = [DType::F32, DType::F32];
        assert_eq!(simple("add 1.0 2.0; mul $0 %0 -> %1:f32", &floats), "mul $0 3.0 -> %0:f32");
        assert_eq!(
            simple("exp $0; exp $0; add %0 %1; neg $1 -> %2:f32", &floats),
            "exp $0; add %0 %0 -> %1:f32"
        );
        assert_eq!(simple("cast:f32 $0; abs %0 -> %1:f16", &[DType::F16]), "abs $0 -> %0:f16");
        assert_eq!(simple("cast:f16 $0; abs %0 -> %1:f16", &[DType::F16]), "abs $0 -> %0:f16");
        assert_eq!(simple("cast:f16 $0; abs %0 -> %1:f16", &[DType::F32]), "cast:f16 $0; abs %0 -> %1:f16");
        assert_eq!(simple("abs $0; cast:f16 %0 -> %1:f16", &[DType::F32]), "abs $0 -> %0:f16");
        assert_eq!(simple("cast:i32 $0 -> %0:i32", &[DType::F32]), "cast:i32 $0 -> %0:i32");
        assert_eq!(simple("cast:f16 $0 -> %0:f16", &[DType::I32]), "cast:f16 $0 -> %0:f16");
        assert_eq!(simple("cast:i8 $0; cast:i32 $0 -> %1:i32", &[DType::I32]), "-> $0:i32");
        assert_eq!(simple("sqrt 4.0 -> %0:f32", &floats), "-> 2.0:f32");
    }
}
