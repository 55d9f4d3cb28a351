//! Branches, loops and scans in each other, deep, that carry tensors and lists which grow.

use super::proto::{
    BOOL, FLOAT, INT64, Message, body, graph, int, list_port, model, node, open_port, port, tensor, whole,
};
use crate::noise::Noise;

const UNARY: [&str; 6] = ["Relu", "Neg", "Exp", "Abs", "Tanh", "Sqrt"];
const BINARY: [&str; 4] = ["Add", "Mul", "Sub", "Max"];
/// Nodes of a model, at most: a tree of regions has as many leaves as it likes.
const MOST: usize = 3000;

/// What a region can use: tensors, and lists of tensors.
#[derive(Clone, Default)]
struct Scope {
    tensors: Vec<String>,
    lists: Vec<String>,
}

struct Maker<'a> {
    noise: &'a mut Noise,
    names: usize,
    constants: Vec<Message>,
    /// Whether sizes may change along the way, which most loops are refused for.
    is_wild: bool,
}

impl Maker<'_> {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn number(&mut self, value: i64) -> String {
        let name = self.name();
        self.constants.push(whole(&name, &[], &[value]));
        name
    }

    fn truth(&mut self, value: bool) -> String {
        let name = self.name();
        self.constants.push(tensor(&name, BOOL, &[], &[u8::from(value)]));
        name
    }

    fn tensor(&mut self, scope: &Scope) -> String {
        match self.noise.once_in(3) {
            true => self.noise.pick(&scope.tensors).clone(),
            false => scope.tensors.last().expect("the model has an input").clone(),
        }
    }

    /// A list; a new one where there is none.
    fn list(&mut self, scope: &mut Scope, nodes: &mut Vec<Message>) -> String {
        if scope.lists.is_empty() || self.noise.once_in(12) {
            let made = self.name();
            let from: Vec<String> = (0..self.noise.between(1, 4)).map(|_| self.tensor(scope)).collect();
            nodes.push(node("SequenceConstruct", &from, &[&made], &[]));
            scope.lists.push(made);
        }
        match self.noise.once_in(3) {
            true => self.noise.pick(&scope.lists).clone(),
            false => scope.lists.last().expect("there is one now").clone(),
        }
    }

    /// A truth: known, or one that data decide.
    fn condition(&mut self, scope: &Scope, nodes: &mut Vec<Message>) -> String {
        if self.noise.once_in(2) {
            let value = self.noise.once_in(2);
            return self.truth(value);
        }
        let from = self.tensor(scope);
        let [sum, made] = [self.name(), self.name()];
        nodes.push(node("ReduceMax", &[&from], &[&sum], &[int("keepdims", 0)]));
        nodes.push(node("Greater", &[&sum, &sum], &[&made], &[]));
        made
    }

    /// A region: its nodes, and what is to be had behind them.
    fn region(&mut self, mut scope: Scope, depth: usize) -> (Vec<Message>, Scope) {
        let mut nodes = Vec::new();
        for _ in 0..self.noise.between(1, 5) {
            if self.names > MOST {
                break;
            }
            match self.noise.below(if depth == 0 { 5 } else { 11 }) {
                0 | 1 => self.plain(&mut scope, &mut nodes),
                2..=4 => self.listed(&mut scope, &mut nodes),
                5 | 6 => self.branch(&mut scope, &mut nodes, depth - 1),
                7..=9 => self.turns(&mut scope, &mut nodes, depth - 1),
                _ => self.mapped(&mut scope, &mut nodes, depth - 1),
            }
        }
        (nodes, scope)
    }

    fn plain(&mut self, scope: &mut Scope, nodes: &mut Vec<Message>) {
        let (a, b, made) = (self.tensor(scope), self.tensor(scope), self.name());
        nodes.push(match self.noise.below(if self.is_wild { 4 } else { 2 }) {
            0 => node(self.noise.pick::<&str>(&UNARY), &[a], &[&made], &[]),
            1 => node(self.noise.pick::<&str>(&BINARY), &[a, b], &[&made], &[]),
            2 => node("Concat", &[a, b], &[&made], &[int("axis", 0)]),
            _ => node("Unsqueeze", &[a, self.number(0)], &[&made], &[]),
        });
        scope.tensors.push(made);
    }

    fn listed(&mut self, scope: &mut Scope, nodes: &mut Vec<Message>) {
        let (list, a, made) = (self.list(scope, nodes), self.tensor(scope), self.name());
        let at = self.noise.size(6) as i64 - 2;
        match self.noise.below(7) {
            0..=2 => nodes.push(node("SequenceInsert", &[list, a], &[&made], &[])),
            3 => nodes.push(node("SequenceErase", &[list, self.number(at)], &[&made], &[])),
            4 => nodes.push(node("SplitToSequence", &[a], &[&made], &[int("axis", 0), int("keepdims", 1)])),
            5 => {
                nodes.push(node("SequenceAt", &[list, self.number(at)], &[&made], &[]));
                return scope.tensors.push(made);
            }
            _ => {
                let joined = self.name();
                nodes.push(node("ConcatFromSequence", &[list], &[&joined], &[int("axis", 0)]));
                nodes.push(node("ReduceMax", &[&joined], &[&made], &[int("keepdims", 1)]));
                return scope.tensors.push(made);
            }
        }
        scope.lists.push(made);
    }

    /// The last tensor and the last list of a region, under names of their own.
    fn ends(&mut self, nodes: &mut Vec<Message>, scope: &mut Scope) -> [String; 2] {
        let list = self.list(scope, nodes);
        let [tensor, end] = [self.name(), self.name()];
        nodes.push(node("Identity", &[scope.tensors.last().expect("there is one")], &[&tensor], &[]));
        nodes.push(node("Identity", &[&list], &[&end], &[]));
        [tensor, end]
    }

    fn branch(&mut self, scope: &mut Scope, nodes: &mut Vec<Message>, depth: usize) {
        let condition = self.condition(scope, nodes);
        let side = |maker: &mut Self| {
            let (mut nodes, mut inner) = maker.region(scope.clone(), depth);
            let [tensor, list] = maker.ends(&mut nodes, &mut inner);
            graph(&nodes, &[], &[], &[open_port(&tensor, FLOAT), list_port(&list, FLOAT)])
        };
        let sides = [body("then_branch", &side(self)), body("else_branch", &side(self))];
        let [tensor, list] = [self.name(), self.name()];
        nodes.push(node("If", &[&condition], &[&tensor, &list], &sides));
        scope.tensors.push(tensor);
        scope.lists.push(list);
    }

    /// A loop that carries a tensor and a list, and gathers a tensor of each run.
    fn turns(&mut self, scope: &mut Scope, nodes: &mut Vec<Message>, depth: usize) {
        let runs = match self.noise.below(12) {
            0 => i64::MAX,
            1 => self.noise.next() as i64,
            2..5 => self.noise.size(100_000) as i64,
            _ => self.noise.size(40) as i64,
        };
        let (runs, go, list) = (self.number(runs), self.condition(scope, nodes), self.list(scope, nodes));
        let first = self.tensor(scope);
        let [i, c, v, l] = [self.name(), self.name(), self.name(), self.name()];
        let mut inner = scope.clone();
        inner.tensors.push(v.clone());
        inner.lists.push(l.clone());
        let (mut own, mut inner) = self.region(inner, depth);
        let goes_on = if self.noise.once_in(3) { self.condition(&inner, &mut own) } else { c.clone() };
        let [tensor, list_end] = self.ends(&mut own, &mut inner);
        let [again, gathered] = [self.name(), self.name()];
        own.push(node("Identity", &[&goes_on], &[&again], &[]));
        own.push(node("Identity", &[&tensor], &[&gathered], &[]));
        let inputs = [port(&i, INT64, &[]), port(&c, BOOL, &[]), open_port(&v, FLOAT), list_port(&l, FLOAT)];
        let outputs = [
            port(&again, BOOL, &[]),
            open_port(&tensor, FLOAT),
            list_port(&list_end, FLOAT),
            open_port(&gathered, FLOAT),
        ];
        let inside = graph(&own, &[], &inputs, &outputs);
        let [tensor, made, all, one] = [self.name(), self.name(), self.name(), self.name()];
        let inputs = [&runs, &go, &first, &list];
        nodes.push(node("Loop", &inputs, &[&tensor, &made, &all], &[body("body", &inside)]));
        nodes.push(node("ReduceMax", &[&all], &[&one], &[int("keepdims", 0)]));
        scope.tensors.extend([one, tensor]);
        scope.lists.push(made);
    }

    /// What a region makes of each element of a list.
    fn mapped(&mut self, scope: &mut Scope, nodes: &mut Vec<Message>, depth: usize) {
        let (list, element, made) = (self.list(scope, nodes), self.name(), self.name());
        let mut inner = scope.clone();
        inner.tensors.push(element.clone());
        let (mut own, mut inner) = self.region(inner, depth);
        let [end, _] = self.ends(&mut own, &mut inner);
        let inside = graph(&own, &[], &[open_port(&element, FLOAT)], &[open_port(&end, FLOAT)]);
        nodes.push(node("SequenceMap", &[&list], &[&made], &[body("body", &inside)]));
        scope.lists.push(made);
    }
}

/// A model of regions in regions.
pub fn regions(noise: &mut Noise) -> Vec<u8> {
    let depth = noise.between(1, 9);
    let is_wild = noise.once_in(4);
    let mut maker = Maker { noise, names: 0, constants: Vec::new(), is_wild };
    let (mut nodes, mut scope) =
        maker.region(Scope { tensors: vec!["x".to_owned()], lists: Vec::new() }, depth);
    let [output, _] = maker.ends(&mut nodes, &mut scope);
    let (input, output) = (port("x", FLOAT, &[4]), open_port(&output, FLOAT));
    model(&graph(&nodes, &maker.constants, &[input], &[output]), &[])
}

/// One region in the other, as deep as the file is long.
pub fn deep(noise: &mut Noise) -> Vec<u8> {
    let depth = noise.size(3000).max(1);
    let is_loop = noise.once_in(2);
    let go = tensor("go", BOOL, &[], &[1]);
    let runs = whole("runs", &[], &[1]);
    let mut inner = node("Relu", &["x"], &["y0"], &[]);
    for level in 0..depth {
        let (from, to) = (format!("y{level}"), format!("y{}", level + 1));
        inner = if is_loop {
            let [i, c, v] = ["i", "c", "v"].map(|name| format!("{name}{level}"));
            let inputs = [port(&i, INT64, &[]), port(&c, BOOL, &[]), port(&v, FLOAT, &[4])];
            let outputs = [port(&c, BOOL, &[]), port(&from, FLOAT, &[4])];
            let inside = graph(&[inner], &[], &inputs, &outputs);
            node("Loop", &["runs", "go", "x"], &[&to], &[body("body", &inside)])
        } else {
            let side = graph(&[inner], &[], &[], &[port(&from, FLOAT, &[4])]);
            let other = graph(&[node("Neg", &["x"], &["z"], &[])], &[], &[], &[port("z", FLOAT, &[4])]);
            node("If", &["go"], &[&to], &[body("then_branch", &side), body("else_branch", &other)])
        };
    }
    let last = format!("y{depth}");
    let (input, output) = (port("x", FLOAT, &[4]), port(&last, FLOAT, &[4]));
    model(&graph(&[inner], &[go, runs], &[input], &[output]), &[])
}
