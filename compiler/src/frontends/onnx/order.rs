//! Which nodes of a list are needed for its outputs, and an order in which they can be computed.
//!
//! ONNX wants nodes sorted, but not all files have them so. Sorted nodes keep their order; others are sorted so that each node
//! stays as near to its place as what it reads allows. Time is linear in the nodes and the names that they read.

use std::collections::{BTreeMap, HashMap, HashSet};

use halite_formats::onnx::{AttributeValue, Graph, Model, Node, Tensor};

/// The needed nodes of a list.
#[derive(Debug, Default)]
pub(super) struct Order<'m> {
    /// Places of the nodes in the list, in an order in which they can be computed.
    pub(super) nodes: Vec<usize>,
    /// Names that a needed node reads, or that are outputs.
    pub(super) names: HashSet<&'m str>,
}

/// Why nodes have no order, or mean nothing in any.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unordered<'m> {
    /// Each of these nodes reads a result of the next, and the last one of the first.
    Cycle(Vec<usize>),
    /// Two nodes define one name: the standard wants each defined once.
    Twice(&'m str, [usize; 2]),
    /// A node defines a name that an input or a constant has.
    Given(&'m str, usize),
}

/// The order of the nodes that outputs need. `given` are names that are defined without the nodes: inputs and constants.
///
/// # Errors
/// There is none.
pub(super) fn needed<'m>(
    nodes: &'m [Node],
    given: &HashSet<&str>,
    outputs: impl Iterator<Item = &'m str>,
) -> Result<Order<'m>, Unordered<'m>> {
    let list = List::of(nodes, given);
    list.defines_once(given)?;
    let names: HashSet<&str> = outputs.collect();
    if list.is_sorted() { Ok(list.filtered(names)) } else { list.sorted(names) }
}

/// The nodes of a list with what they read.
struct List<'m> {
    nodes: &'m [Node],
    /// Names that nodes read, one node behind the other.
    reads: Vec<&'m str>,
    /// Where the names of a node begin in `reads`; one more at the end.
    starts: Vec<usize>,
    /// For each name the first node that defines it, and which of its outputs.
    definers: HashMap<&'m str, (usize, usize)>,
}

impl<'m> List<'m> {
    fn of(nodes: &'m [Node], given: &HashSet<&str>) -> Self {
        let (mut reads, mut starts) = (Vec::new(), Vec::with_capacity(nodes.len() + 1));
        let mut definers = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            starts.push(reads.len());
            add_reads(node, &mut reads);
            for (place, name) in node.outputs.iter().enumerate() {
                if !name.is_empty() && !given.contains(name.as_str()) {
                    definers.entry(name.as_str()).or_insert((index, place));
                }
            }
        }
        starts.push(reads.len());
        List { nodes, reads, starts, definers }
    }

    fn reads(&self, node: usize) -> &[&'m str] {
        &self.reads[self.starts[node]..self.starts[node + 1]]
    }

    /// The node that defines a name.
    fn definer(&self, name: &str) -> Option<usize> {
        self.definers.get(name).map(|(node, _)| *node)
    }

    fn is_sorted(&self) -> bool {
        let is_before = |index: usize, name: &&str| self.definer(name).is_none_or(|own| own < index);
        (0..self.nodes.len()).all(|index| self.reads(index).iter().all(|name| is_before(index, name)))
    }

    /// The needed nodes as they stand.
    fn filtered(self, mut names: HashSet<&'m str>) -> Order<'m> {
        let mut needed = Vec::new();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.outputs.iter().any(|name| !name.is_empty() && names.contains(name.as_str())) {
                needed.push(index);
                names.extend(self.reads(index));
            }
        }
        needed.reverse();
        Order { nodes: needed, names }
    }

    /// The needed nodes, each behind those that it reads.
    fn sorted(self, mut names: HashSet<&'m str>) -> Result<Order<'m>, Unordered<'m>> {
        let mut live = vec![false; self.nodes.len()];
        let mut open: Vec<usize> = names.iter().filter_map(|name| self.definer(name)).collect();
        while let Some(index) = open.pop() {
            if !std::mem::replace(&mut live[index], true) {
                names.extend(self.reads(index));
                open.extend(self.reads(index).iter().filter_map(|name| self.definer(name)));
            }
        }
        let mut walk = Walk { list: &self, states: vec![State::New; self.nodes.len()], order: Vec::new() };
        for index in (0..self.nodes.len()).filter(|index| live[*index]) {
            walk.visit(index)?;
        }
        let nodes = walk.order;
        Ok(Order { nodes, names })
    }

    fn defines_once(&self, given: &HashSet<&str>) -> Result<(), Unordered<'m>> {
        for (index, node) in self.nodes.iter().enumerate() {
            for (place, name) in node.outputs.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                if given.contains(name.as_str()) {
                    return Err(Unordered::Given(name, index));
                }
                // Not by comparing a node's outputs with each other: there may be tens of thousands.
                let first = self.definers.get(name.as_str()).copied().unwrap_or((index, place));
                if first != (index, place) {
                    return Err(Unordered::Twice(name, [first.0, index]));
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

/// A walk from nodes to those that they read, without recursion.
struct Walk<'a, 'm> {
    list: &'a List<'m>,
    states: Vec<State>,
    order: Vec<usize>,
}

impl<'m> Walk<'_, 'm> {
    /// Puts a node behind all that it reads.
    fn visit(&mut self, first: usize) -> Result<(), Unordered<'m>> {
        // Nodes that are open, each with the number of its names that were looked at.
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut next = Some(first);
        loop {
            if let Some(index) = next.take() {
                match self.states[index] {
                    State::Done => {}
                    State::Open => {
                        let start = path.iter().position(|(own, _)| *own == index).unwrap_or(0);
                        return Err(Unordered::Cycle(path[start..].iter().map(|(own, _)| *own).collect()));
                    }
                    State::New => {
                        self.states[index] = State::Open;
                        path.push((index, 0));
                    }
                }
            }
            let Some((index, seen)) = path.last_mut() else { return Ok(()) };
            match self.list.reads(*index).get(*seen) {
                Some(name) => {
                    *seen += 1;
                    next = self.list.definer(name);
                }
                None => {
                    self.states[*index] = State::Done;
                    self.order.push(*index);
                    path.pop();
                }
            }
        }
    }
}

/// What is left to do of the graphs inside of a node.
enum Step<'m> {
    Enter(&'m Graph),
    Leave(&'m Graph),
}

/// Adds the names that a node reads, and those that the graphs inside of it read of what is around them.
fn add_reads<'m>(node: &'m Node, reads: &mut Vec<&'m str>) {
    let named = |name: &&'m String| !name.is_empty();
    reads.extend(node.inputs.iter().filter(named).map(String::as_str));
    let mut open: Vec<Step<'m>> = graphs(node).map(Step::Enter).collect();
    // How many of the graphs that are entered define a name.
    let mut inside: HashMap<&str, usize> = HashMap::new();
    while let Some(step) = open.pop() {
        match step {
            Step::Enter(graph) => {
                definitions(graph).for_each(|name| *inside.entry(name).or_default() += 1);
                open.push(Step::Leave(graph));
                let outside = |name: &&'m str| inside.get(name).is_none_or(|count| *count == 0);
                for node in &graph.nodes {
                    reads.extend(node.inputs.iter().filter(named).map(String::as_str).filter(outside));
                    open.extend(graphs(node).map(Step::Enter));
                }
                reads.extend(graph.outputs.iter().map(|output| output.name.as_str()).filter(outside));
            }
            Step::Leave(graph) => definitions(graph).for_each(|name| {
                if let Some(count) = inside.get_mut(name) {
                    *count -= 1;
                }
            }),
        }
    }
}

/// The graphs that are attributes of a node.
pub(super) fn graphs(node: &Node) -> impl Iterator<Item = &Graph> {
    node.attributes.iter().flat_map(|attribute| match &attribute.value {
        AttributeValue::Graph(graph) => std::slice::from_ref(&**graph),
        AttributeValue::Graphs(graphs) => graphs,
        _ => &[],
    })
}

/// Number of nodes of a model, in its functions and in graphs inside of nodes too.
pub(super) fn count(model: &Model) -> u64 {
    let mut count = 0;
    let mut open: Vec<&[Node]> = vec![&model.graph.nodes];
    open.extend(model.functions.iter().map(|function| &function.nodes[..]));
    while let Some(nodes) = open.pop() {
        count += nodes.len() as u64;
        open.extend(nodes.iter().flat_map(graphs).map(|graph| &graph.nodes[..]));
    }
    count
}

/// How many bytes of each file beside the model its tensors have, those in functions and in graphs inside of nodes too; parts that
/// several tensors have count for each.
pub(super) fn bytes_of_files(model: &Model) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    let mut add = |tensor: &Tensor| {
        if let Some((file, range)) = tensor.file() {
            let of_file: &mut u64 = bytes.entry(file.to_owned()).or_default();
            *of_file = of_file.saturating_add(range.end - range.start);
        }
    };
    model.graph.initializers.iter().for_each(&mut add);
    let mut open: Vec<&[Node]> = vec![&model.graph.nodes];
    open.extend(model.functions.iter().map(|function| &function.nodes[..]));
    while let Some(nodes) = open.pop() {
        for graph in nodes.iter().flat_map(graphs) {
            graph.initializers.iter().for_each(&mut add);
            open.push(&graph.nodes);
        }
        for attribute in nodes.iter().flat_map(|node| &node.attributes) {
            match &attribute.value {
                AttributeValue::Tensor(tensor) => add(tensor),
                AttributeValue::Tensors(tensors) => tensors.iter().for_each(&mut add),
                _ => {}
            }
        }
    }
    bytes
}

/// Names that a graph defines.
fn definitions(graph: &Graph) -> impl Iterator<Item = &str> {
    given(graph).chain(graph.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str))
}

/// Names that a graph defines without its nodes.
pub(super) fn given(graph: &Graph) -> impl Iterator<Item = &str> {
    let inputs = graph.inputs.iter().map(|input| input.name.as_str());
    inputs.chain(graph.initializers.iter().map(|tensor| tensor.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CompileError,
        frontends::onnx::{
            Model as OnnxModel,
            encode::{BOOL, FLOAT, Message, body, external, function, graph, model, node, port, value},
        },
        signature::Bindings,
    };

    fn plain(inputs: &[&str], outputs: &[&str]) -> Node {
        let texts = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        Node { inputs: texts(inputs), outputs: texts(outputs), ..Node::default() }
    }

    fn order(nodes: &[Node], outputs: &'static [&str]) -> Vec<usize> {
        needed(nodes, &HashSet::from(["x"]), outputs.iter().copied()).unwrap().nodes
    }

    #[test]
    fn sorted_nodes_stay_and_others_move_as_little_as_they_can() {
        let nodes = [plain(&["x"], &["a"]), plain(&["x"], &["unused"]), plain(&["a", ""], &["y"])];
        assert_eq!(order(&nodes, &["y"]), [0, 2]);
        let nodes = [
            plain(&["c", "b"], &["y"]),
            plain(&["x"], &["a"]),
            plain(&["a"], &["b"]),
            plain(&["nobody"], &["unused"]),
            plain(&["x", "a"], &["c"]),
        ];
        assert_eq!(order(&nodes, &["y"]), [1, 4, 2, 0]);
        // Outputs that nobody wants have no name, as many as there are.
        let nodes = [plain(&["x"], &["a", "", ""]), plain(&["a"], &["y", ""])];
        assert_eq!(order(&nodes, &["y"]), [0, 1]);
    }

    #[test]
    fn names_are_defined_once() {
        fn error(nodes: &[Node]) -> Unordered<'_> {
            needed(nodes, &HashSet::from(["x"]), ["y"].into_iter()).unwrap_err()
        }
        // Not sorted, sorted, by one node, and where nobody reads the name.
        let twice = [plain(&["a"], &["y"]), plain(&["x"], &["a"]), plain(&["x"], &["a"])];
        assert_eq!(error(&twice), Unordered::Twice("a", [1, 2]));
        let twice = [plain(&["x"], &["y"]), plain(&["y"], &["y"])];
        assert_eq!(error(&twice), Unordered::Twice("y", [0, 1]));
        let twice = [plain(&["x"], &["y", "y"])];
        assert_eq!(error(&twice), Unordered::Twice("y", [0, 0]));
        let twice = [plain(&["x"], &["a"]), plain(&["x"], &["a"]), plain(&["x"], &["y"])];
        assert_eq!(error(&twice), Unordered::Twice("a", [0, 1]));
        let given = [plain(&["x"], &["y"]), plain(&["x"], &["x"])];
        assert_eq!(error(&given), Unordered::Given("x", 1));
    }

    #[test]
    fn a_long_chain_backwards_needs_no_stack_and_no_time() {
        let name = |index: usize| if index == 0 { "x".to_owned() } else { format!("t{index}") };
        let count = 100_000;
        let nodes: Vec<Node> = (0..count).rev().map(|i| plain(&[&name(i)], &[&name(i + 1)])).collect();
        let made = needed(&nodes, &HashSet::from(["x"]), [nodes[0].outputs[0].as_str()].into_iter()).unwrap();
        assert!(made.nodes.iter().copied().eq((0..count).rev()));
        let ring =
            [plain(&["c"], &["a"]), plain(&["a"], &["b"]), plain(&["b"], &["c"]), plain(&["c"], &["y"])];
        let error = needed(&ring, &HashSet::new(), ["y"].into_iter()).unwrap_err();
        assert_eq!(error, Unordered::Cycle(vec![0, 2, 1]));
    }

    fn import(nodes: &[Message], inputs: &[Message], functions: &[Message]) -> Result<(), CompileError> {
        let of = |name: &str| port(name, FLOAT, &[4]);
        let inputs: Vec<Message> = [of("x")].into_iter().chain(inputs.iter().cloned()).collect();
        let bytes = model(&graph(nodes, &[], &inputs, &[of("y")]), functions);
        OnnxModel::from_bytes(bytes).unwrap().graph(&Bindings::default()).map(|_| ())
    }

    #[test]
    fn tensors_in_files_are_counted_wherever_they_are() {
        let inner = graph(&[], &[external("a", FLOAT, &[3], "a", 0)], &[], &[]);
        let nodes = [
            node("If", &["x"], &["y"], &[body("then_branch", &inner)]),
            node("Constant", &[], &["c"], &[value("value", &external("b", FLOAT, &[5], "b", 1 << 40))]),
        ];
        let own = [external("w", FLOAT, &[2], "a", 4096), external("v", FLOAT, &[2], "a", 4096)];
        let made = model(&graph(&nodes, &own, &[], &[]), &[]);
        let found = bytes_of_files(&Model::parse(made).unwrap());
        assert_eq!(found, BTreeMap::from([("a".to_owned(), 28), ("b".to_owned(), 20)]));
    }

    #[test]
    fn graphs_inner_graphs_and_functions_are_sorted() {
        let of = |name: &str| port(name, FLOAT, &[4]);
        // The branches read `late`, which a node behind the `If` defines, and are not sorted themselves.
        let then = [node("Neg", &["i"], &["t"], &[]), node("Relu", &["late"], &["i"], &[])];
        let other = [node("own:Wrap", &["late"], &["e"], &[])];
        let branches = [
            body("then_branch", &graph(&then, &[], &[], &[of("t")])),
            body("else_branch", &graph(&other, &[], &[], &[of("e")])),
        ];
        let nodes = [
            node("If", &["c"], &["y"], &branches),
            node("Abs", &["later"], &["late"], &[]),
            node("Exp", &["x"], &["later"], &[]),
        ];
        let wrap = [node("Relu", &["m"], &["b"], &[]), node("Neg", &["a"], &["m"], &[])];
        let condition = port("c", BOOL, &[]);
        import(&nodes, &[condition], &[function("Wrap", &["a"], &["b"], &wrap)]).unwrap();
    }

    #[test]
    fn nodes_that_define_a_name_again_are_named() {
        let nodes = [node("Relu", &["x"], &["y"], &[]), node("Neg", &["y"], &["y"], &[])];
        let error = import(&nodes, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("Relu 'Relu_of_y'") && error.contains("Neg 'Neg_of_y'"), "{error}");
        let nodes = [node("Relu", &["x"], &["x"], &[]), node("Neg", &["x"], &["y"], &[])];
        let error = import(&nodes, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("Relu_of_x") && error.contains("'x'"), "{error}");
        // In functions too.
        let body = [node("Relu", &["a"], &["a"], &[]), node("Relu", &["a"], &["b"], &[])];
        let wrap = [node("own:Wrap", &["x"], &["y"], &[])];
        let error = import(&wrap, &[], &[function("Wrap", &["a"], &["b"], &body)]).unwrap_err().to_string();
        assert!(error.contains("'a'") && error.contains("Relu_of_a"), "{error}");
    }

    #[test]
    fn a_cycle_is_named() {
        let nodes = [
            node("Add", &["x", "b"], &["a"], &[]),
            node("Relu", &["a"], &["b"], &[]),
            node("Relu", &["b"], &["y"], &[]),
        ];
        let error = import(&nodes, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("Add 'Add_of_a'") && error.contains("Relu 'Relu_of_b'"), "{error}");
        assert!(!error.contains("Relu_of_y"), "{error}");
        let itself = [node("Relu", &["y"], &["y"], &[])];
        let error = import(&itself, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("its own result") && error.contains("Relu_of_y"), "{error}");
        // Nobody needs it.
        let unused = [nodes[0].clone(), nodes[1].clone(), node("Relu", &["x"], &["y"], &[])];
        import(&unused, &[], &[]).unwrap();
    }
}
