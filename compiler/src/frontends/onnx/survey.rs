//! The operators of a model: all of them, for those who look at its file, and those that nothing imports, for the error that one of
//! them is met.

use std::collections::HashSet;

use halite_formats::onnx::{self, Graph, Model, Node, OpsetId};

use super::{
    Result, control,
    names::{Functions, location_of, own_domain, version_of},
    ops, order, sequence,
};
use crate::{
    CompileError, SourceLocation, UnsupportedOperator,
    control::Watch,
    frontends::outline::{FunctionOutline, Outline, PartOutline, RunsOn},
};

/// The one function of every model.
pub(super) const MAIN: &str = "main";

/// The operator of a node, as an error lists it.
pub(super) fn operator(
    node: &Node,
    domain: &str,
    version: i64,
    first: SourceLocation,
) -> UnsupportedOperator {
    let domain = if domain.is_empty() { "ai.onnx" } else { domain };
    let domain = Some((domain.to_owned(), version));
    UnsupportedOperator { name: node.op_type.clone(), domain, count: 1, first, reason: None }
}

/// Nodes that are still to be looked at.
struct Open<'m> {
    nodes: &'m [Node],
    given: HashSet<&'m str>,
    outputs: Vec<&'m str>,
    opsets: &'m [OpsetId],
    location: String,
}

impl<'m> Open<'m> {
    fn graph(graph: &'m Graph, opsets: &'m [OpsetId], location: String) -> Self {
        let outputs = graph.outputs.iter().map(|output| output.name.as_str()).collect();
        Open { nodes: &graph.nodes, given: order::given(graph).collect(), outputs, opsets, location }
    }

    fn function(function: &'m onnx::Function, opsets: &'m [OpsetId], location: &SourceLocation) -> Self {
        Open {
            nodes: &function.nodes,
            given: function.inputs.iter().map(String::as_str).collect(),
            outputs: function.outputs.iter().map(String::as_str).collect(),
            opsets: if function.opsets.is_empty() { opsets } else { &function.opsets },
            location: location.as_str().to_owned(),
        }
    }
}

/// All operators of a model that nothing imports, of nodes that its outputs need. `found` is the one that was met; it is among them.
///
/// # Errors
/// The work was ended.
pub(super) fn all(
    model: &Model,
    found: UnsupportedOperator,
    watch: Watch<'_>,
) -> Result<Vec<UnsupportedOperator>> {
    let mut all = Vec::new();
    each_needed(model, &mut |met| {
        watch.check()?;
        if !met.is_imported {
            operator(met.node, met.domain, met.version, met.location).add_to(&mut all);
        }
        Ok(())
    })?;
    if !all.iter().any(|own| own.is_same(&found)) {
        all.insert(0, found);
    }
    Ok(all)
}

/// What is not supported or not known, with all operators that nothing imports beside it: who mends one of them finds the others at
/// once.
pub(super) fn beside(model: &Model, error: CompileError, watch: Watch<'_>) -> CompileError {
    let place = match &error {
        CompileError::Unsupported { location, .. } | CompileError::NeedsValues { location, .. } => location,
        _ => return error,
    };
    let (mut all, mut own) = (Vec::new(), None);
    let looked = each_needed(model, &mut |met| {
        watch.check()?;
        if met.location == *place {
            own = Some(operator(met.node, met.domain, met.version, met.location.clone()));
        }
        if !met.is_imported {
            operator(met.node, met.domain, met.version, met.location).add_to(&mut all);
        }
        Ok(())
    });
    if looked.is_err() || all.is_empty() {
        return error;
    }
    match (error, own) {
        (CompileError::Unsupported { reason, .. }, Some(own)) => {
            all.insert(0, UnsupportedOperator { reason: Some(reason), ..own });
            CompileError::UnsupportedOperators { operators: all }
        }
        (CompileError::NeedsValues { location, what, inputs, .. }, _) => {
            CompileError::NeedsValues { location, what, inputs, unsupported: all }
        }
        (error, _) => error,
    }
}

/// The operators of a model, with how often they are called, and whether there is an importer for each.
pub(super) fn outline(model: &Model) -> Outline {
    let mut part = PartOutline::new("operators", 0);
    let counted = each_needed(model, &mut |met| {
        let version =
            || format!("{} {}", if met.domain.is_empty() { "ai.onnx" } else { met.domain }, met.version);
        let reason = (!met.is_imported).then(|| format!("there is no importer for it in {}", version()));
        let runs = if met.is_imported { RunsOn::Device } else { RunsOn::Refused };
        match met.domain {
            "" => part.count(&met.node.op_type, runs, reason),
            domain => part.count(&format!("{domain}:{}", met.node.op_type), runs, reason),
        }
        Ok(())
    });
    part.problem = counted.err().map(|error| error.to_string());
    part.operators.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    let bytes = |tensor: &onnx::Tensor| {
        tensor.elements().saturating_mul(tensor.data_type().map_or(0, onnx::DataType::bits)) / 8
    };
    let constants = model.graph.initializers.iter().map(bytes);
    let function = FunctionOutline {
        name: MAIN.to_owned(),
        parts: vec![part],
        memory: Vec::new(),
        constants: constants.fold(0, u64::saturating_add),
    };
    Outline { functions: vec![function], data: Vec::new() }
}

/// A node that the model's outputs need, and that calls no function of the model.
struct Met<'m> {
    node: &'m Node,
    domain: &'m str,
    version: i64,
    location: SourceLocation,
    is_imported: bool,
}

/// Goes over the nodes that a model's outputs need: those of graphs in nodes too, and those of functions, once for each function.
fn each_needed<'m>(model: &'m Model, visit: &mut dyn FnMut(Met<'m>) -> Result<()>) -> Result<()> {
    let functions = Functions::of(model);
    let mut called: HashSet<*const onnx::Function> = HashSet::new();
    let mut open = vec![Open::graph(&model.graph, &model.opsets, String::new())];
    while let Some(Open { nodes, given, outputs, opsets, location }) = open.pop() {
        // Nodes without an order are another error, which is told when this one is mended.
        let needed = match order::needed(nodes, &given, outputs.into_iter()) {
            Ok(order) => order.nodes,
            Err(_) => (0..nodes.len()).collect(),
        };
        for index in needed {
            let node = &nodes[index];
            let own = location_of(node, index, &location);
            let inner = order::graphs(node);
            open.extend(inner.map(|graph| Open::graph(graph, opsets, own.as_str().to_owned())));
            if let Some(function) = functions.called_by(node) {
                if called.insert(function) {
                    open.push(Open::function(function, opsets, &own));
                }
                continue;
            }
            let domain = own_domain(&node.domain);
            let is_imported = is_imported(domain, &node.op_type);
            visit(Met { node, domain, version: version_of(domain, opsets), location: own, is_imported })?;
        }
    }
    Ok(())
}

/// Whether there is an importer for an operator.
fn is_imported(domain: &str, op_type: &str) -> bool {
    control::find(domain, op_type).is_some()
        || sequence::find(domain, op_type).is_some()
        || ops::find(domain, op_type).is_some()
}

#[cfg(test)]
mod tests {
    use crate::{
        CompileError,
        frontends::{
            SourceModel,
            onnx::{
                Model,
                encode::{FLOAT, body, function, graph, model, node, port},
            },
            outline::RunsOn,
        },
        signature::Bindings,
    };

    #[test]
    fn all_unsupported_operators_are_told_together() {
        let of = |name: &str| port(name, FLOAT, &[4]);
        let then = graph(&[node("Frob", &["x"], &["t"], &[])], &[], &[], &[of("t")]);
        let other = graph(&[node("own:Wrap", &["x"], &["e"], &[])], &[], &[], &[of("e")]);
        let branches = [body("then_branch", &then), body("else_branch", &other)];
        let nodes = [
            node("Frob", &["x"], &["unused"], &[]),
            node("com.microsoft:Frob", &["x"], &["f"], &[]),
            node("Cast", &["f"], &["c"], &[crate::frontends::onnx::encode::int("to", 9)]),
            node("If", &["c"], &["i"], &branches),
            node("ai.onnx.ml:DictVectorizer", &["i"], &["s"], &[]),
            node("own:Wrap", &["s"], &["y"], &[]),
        ];
        let inner = [node("Frob", &["a"], &["m"], &[]), node("Relu", &["m"], &["b"], &[])];
        let wrap = function("Wrap", &["a"], &["b"], &inner);
        let bytes = model(&graph(&nodes, &[], &[of("x")], &[of("y")]), &[wrap]);
        let error = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err();
        assert!(error.is_unsupported());
        let text = error.to_string();
        let CompileError::UnsupportedOperators { operators } = error else { panic!("{text}") };
        let mut told: Vec<_> =
            operators.iter().map(|o| (o.name.as_str(), o.domain.clone().unwrap(), o.count)).collect();
        told.sort();
        assert_eq!(
            told,
            [
                ("DictVectorizer", ("ai.onnx.ml".to_owned(), 1), 1),
                // In the branch and in the function; nobody needs the first.
                ("Frob", ("ai.onnx".to_owned(), 20), 2),
                ("Frob", ("com.microsoft".to_owned(), 1), 1),
            ]
        );
        assert!(text.contains("3 operators of this model are not supported"), "{text}");
        assert!(
            text.contains("DictVectorizer of ai.onnx.ml 1 (DictVectorizer 'DictVectorizer_of_s')"),
            "{text}"
        );
        assert!(text.contains("Frob of ai.onnx 20 (2 nodes, the first is"), "{text}");
    }

    #[test]
    fn operators_are_counted() {
        let of = |name: &str| port(name, FLOAT, &[4]);
        let inner = [node("Relu", &["a"], &["m"], &[]), node("Frob", &["m"], &["b"], &[])];
        let wrap = function("Wrap", &["a"], &["b"], &inner);
        let nodes = [
            node("Relu", &["x"], &["unused"], &[]),
            node("Relu", &["x"], &["r"], &[]),
            node("Tanh", &["r"], &["t"], &[]),
            node("own:Wrap", &["t"], &["s"], &[]),
            node("com.microsoft:Gelu", &["s"], &["y"], &[]),
        ];
        let bytes = model(&graph(&nodes, &[], &[of("x")], &[of("y")]), &[wrap]);
        let outline = Model::from_bytes(bytes).unwrap().outline().unwrap();
        let operators = outline.functions[0].parts[0].operators.iter();
        let told: Vec<_> = operators.map(|o| (o.name.as_str(), o.count, o.runs)).collect();
        assert_eq!(
            told,
            [
                ("Relu", 2, RunsOn::Device),
                ("Frob", 1, RunsOn::Refused),
                ("Tanh", 1, RunsOn::Device),
                ("com.microsoft:Gelu", 1, RunsOn::Device),
            ]
        );
    }

    #[test]
    fn what_known_operators_lack_is_told_with_those_that_are_unknown() {
        let of = |name: &str| port(name, FLOAT, &[4]);
        let nodes = [
            node("Cast", &["x"], &["c"], &[crate::frontends::onnx::encode::int("to", 8)]),
            node("Frob", &["c"], &["y"], &[]),
        ];
        let refused = |nodes: &[_], output: &str| {
            let bytes = model(&graph(nodes, &[], &[of("x")], &[of(output)]), &[]);
            Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err()
        };
        let alone = refused(&nodes[..1], "c");
        let CompileError::Unsupported { reason, .. } = &alone else { panic!("{alone}") };
        let both = refused(&nodes, "y");
        let text = both.to_string();
        let CompileError::UnsupportedOperators { operators } = both else { panic!("{text}") };
        assert_eq!(operators.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["Cast", "Frob"]);
        assert_eq!(operators[0].reason.as_ref(), Some(reason));
        assert!(text.contains("2 operators") && text.contains(reason.as_str()), "{text}");
    }

    #[test]
    fn what_branches_lack_is_told_with_the_condition_that_is_open() {
        let of = |name: &str| port(name, FLOAT, &[4]);
        let branch = |op: &str| graph(&[node(op, &["x"], &["t"], &[])], &[], &[], &[of("t")]);
        let then = graph(&[node("Tanh", &["x"], &["t"], &[])], &[], &[], &[port("t", FLOAT, &[4, 1])]);
        let nodes = |other: &str| {
            let branches = [body("then_branch", &then), body("else_branch", &branch(other))];
            [
                node("Cast", &["c"], &["d"], &[crate::frontends::onnx::encode::int("to", 9)]),
                node("If", &["d"], &["y"], &branches),
            ]
        };
        let condition = port("c", FLOAT, &[]);
        let bytes = model(&graph(&nodes("Frob"), &[], &[of("x"), condition], &[of("y")]), &[]);
        let error = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err();
        let text = error.to_string();
        let CompileError::NeedsValues { inputs, unsupported, .. } = error else { panic!("{text}") };
        assert_eq!((&inputs[..], unsupported.len()), (&["c".to_owned()][..], 1));
        assert!(text.contains("Frob of ai.onnx 20") && text.contains("Unless these values"), "{text}");
    }
}
