//! Attention whose masks are computed of constants, in many steps, for many queries and keys, and for each layer anew.

use super::proto::{BOOL, FLOAT, Message, graph, int, ints, model, node, open_port, port, tensor, whole};
use crate::noise::Noise;

/// Operators of numbers that keep sizes.
const UNARY: [&str; 7] = ["Neg", "Abs", "Exp", "Sqrt", "Identity", "Relu", "Reciprocal"];
const BINARY: [&str; 7] = ["Add", "Mul", "Sub", "Div", "Max", "Min", "Pow"];
const COMPARED: [&str; 5] = ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"];

struct Maker<'a> {
    noise: &'a mut Noise,
    nodes: Vec<Message>,
    constants: Vec<Message>,
    names: usize,
    /// Queries and keys.
    sizes: [i64; 2],
}

impl Maker<'_> {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("m{}", self.names)
    }

    fn put(&mut self, operator: &str, inputs: &[&str], attributes: &[Message]) -> String {
        let made = self.name();
        self.nodes.push(node(operator, inputs, &[&made], attributes));
        made
    }

    fn numbers(&mut self, values: &[i64], is_list: bool) -> String {
        let name = self.name();
        let dims = [values.len() as i64];
        self.constants.push(whole(&name, if is_list { &dims } else { &[] }, values));
        name
    }

    fn float(&mut self, value: f32) -> String {
        let name = self.name();
        self.constants.push(tensor(&name, FLOAT, &[], &value.to_le_bytes()));
        name
    }

    /// The places of queries or keys, in a column or a row.
    fn places(&mut self, axis: usize) -> String {
        let size = self.sizes[axis];
        let [from, to, step] = [0, size, 1].map(|number| self.numbers(&[number], false));
        let made = self.put("Range", &[&from, &to, &step], &[]);
        let axes = self.numbers(&[1 - axis as i64], true);
        self.put("Unsqueeze", &[&made, &axes], &[])
    }

    /// Truths of queries and keys.
    fn truths(&mut self, depth: usize) -> String {
        if depth > 0 && self.noise.once_in(2) {
            let (a, b) = (self.truths(depth - 1), self.truths(depth - 1));
            return match self.noise.below(4) {
                0 => self.put("And", &[&a, &b], &[]),
                1 => self.put("Or", &[&a, &b], &[]),
                2 => self.put("Xor", &[&a, &b], &[]),
                _ => self.put("Not", &[&a], &[]),
            };
        }
        if self.noise.once_in(3) {
            let size = self.numbers(&self.sizes.clone(), true);
            let one = self.name();
            self.constants.push(tensor(&one, BOOL, &[1, 1], &[1]));
            let all = self.put("Expand", &[&one, &size], &[]);
            let by = self.noise.size(9) as i64 - 4;
            let by = self.numbers(&[by], false);
            let upper = int("upper", self.noise.below(2) as i64);
            return self.put("Trilu", &[&all, &by], &[upper]);
        }
        let (queries, mut keys) = (self.places(0), self.places(1));
        if self.noise.once_in(2) {
            let by = self.noise.size(1 << 12) as i64;
            let by = self.numbers(&[by], false);
            let operator = *self.noise.pick(&["Add", "Sub", "Mul", "Mod"]);
            keys = self.put(operator, &[&keys, &by], &[]);
        }
        let operator = *self.noise.pick(&COMPARED);
        self.put(operator, &[&keys, &queries], &[])
    }

    /// What is added to scores.
    fn mask(&mut self) -> String {
        let depth = self.noise.below(5);
        let truths = self.truths(depth);
        let low = *self.noise.pick(&[f32::NEG_INFINITY, f32::MIN, -1e4, -1e9, f32::NAN]);
        let (zero, low) = (self.float(0.0), self.float(low));
        let mut mask = self.put("Where", &[&truths, &zero, &low], &[]);
        for _ in 0..self.noise.size(40) {
            let own = self.float(1.0);
            let (unary, binary) = (*self.noise.pick(&UNARY), *self.noise.pick(&BINARY));
            mask = match self.noise.below(3) {
                0 => self.put(unary, &[&mask], &[]),
                1 => self.put(binary, &[&mask, &own], &[]),
                _ => self.put(binary, &[&mask, &mask], &[]),
            };
        }
        if self.noise.once_in(3) {
            let (heads, [queries, keys]) = (1 + self.noise.size(64) as i64, self.sizes);
            let size = self.numbers(&[1, heads, queries, keys], true);
            mask = self.put("Expand", &[&mask, &size], &[]);
        }
        mask
    }

    /// A layer of attention, of the tensors `x` and `y`.
    fn layer(&mut self) -> String {
        let turned = self.put("Transpose", &["y"], &[ints("perm", &[0, 1, 3, 2])]);
        let scores = self.put("MatMul", &["x", &turned], &[]);
        let scale = self.float(0.25);
        let scores = self.put("Mul", &[&scores, &scale], &[]);
        let mask = self.mask();
        let masked = self.put("Add", &[&scores, &mask], &[]);
        let chances = self.put("Softmax", &[&masked], &[int("axis", -1)]);
        self.put("MatMul", &[&chances, "y"], &[])
    }
}

/// A model of some layers.
pub fn attention(noise: &mut Noise) -> Vec<u8> {
    let most = if noise.once_in(6) { 1 << 20 } else { 1 << 12 };
    let sizes = [(); 2].map(|()| noise.size(most).max(1) as i64);
    let sizes = if noise.once_in(2) { [sizes[0]; 2] } else { sizes };
    let heads = 1 + noise.size(3) as i64;
    let layers = 1 + noise.size(60);
    let mut maker = Maker { noise, nodes: Vec::new(), constants: Vec::new(), names: 0, sizes };
    let mut all = maker.layer();
    for _ in 1..layers {
        let more = maker.layer();
        all = maker.put("Add", &[&all, &more], &[]);
    }
    let last = maker.put("Cast", &[&all], &[int("to", FLOAT)]);
    let inputs = [port("x", FLOAT, &[1, heads, sizes[0], 8]), port("y", FLOAT, &[1, heads, sizes[1], 8])];
    let graph = graph(&maker.nodes, &maker.constants, &inputs, &[open_port(&last, FLOAT)]);
    model(&graph, &[])
}
