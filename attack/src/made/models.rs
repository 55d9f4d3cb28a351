//! ONNX models that ask for much with few bytes: relatives of those that once took memory and time without bound.

use super::proto::{
    BOOL, FLOAT, INT64, Message, body, function, graph, int, ints, model, node, port, tensor, whole,
};
use crate::noise::Noise;

const UNARY: [&str; 8] = ["Relu", "Neg", "Identity", "Exp", "Abs", "Sqrt", "Tanh", "Erf"];
const BINARY: [&str; 5] = ["Add", "Mul", "Sub", "Div", "Max"];

/// What a model is made of: the pieces, and a name that was not used yet.
#[derive(Debug, Default)]
struct Made {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    names: usize,
}

impl Made {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    fn put(&mut self, operator: &str, inputs: &[&str], attributes: &[Message]) -> String {
        let output = self.name();
        self.nodes.push(node(operator, inputs, &[&output], attributes));
        output
    }

    fn numbers(&mut self, values: &[i64]) -> String {
        let name = self.name();
        self.constants.push(whole(&name, &[values.len() as i64], values));
        name
    }

    fn number(&mut self, value: i64) -> String {
        let name = self.name();
        self.constants.push(whole(&name, &[], &[value]));
        name
    }

    fn floats(&mut self, count: usize) -> String {
        let name = self.name();
        self.constants.push(tensor(&name, FLOAT, &[count as i64], &vec![0x3F; count * 4]));
        name
    }

    /// An operator of a tensor and as many numbers.
    fn binary(&mut self, operator: &str, left: &str, right: &[i64]) -> String {
        let right = self.numbers(right);
        self.put(operator, &[left, &right], &[])
    }

    /// The model, whose output is this tensor and whose input `x` has these dimensions.
    fn finish(self, output: &str, dims: &[i64], functions: &[Message]) -> Vec<u8> {
        let (input, output) = (port("x", FLOAT, dims), port(output, FLOAT, dims));
        model(&graph(&self.nodes, &self.constants, &[input], &[output]), functions)
    }
}

/// A network of layers of products, each with weights of its own, of a width, for so many rows.
pub fn layers(noise: &mut Noise, count: usize, width: i64, rows: i64) -> Vec<u8> {
    let mut made = Made::default();
    let mut last = "x".to_owned();
    for _ in 0..count {
        let name = made.name();
        let weights: Vec<u8> = (0..width * width)
            .flat_map(|_| ((noise.next() >> 40) as f32 / (1 << 24) as f32 / width as f32).to_le_bytes())
            .collect();
        made.constants.push(tensor(&name, FLOAT, &[width, width], &weights));
        let product = made.put("MatMul", &[&last, &name], &[]);
        let normal = made.put("Softmax", &[&product], &[int("axis", 1)]);
        last = made.put("Add", &[&normal, &last], &[]);
    }
    made.finish(&last, &[rows, width], &[])
}

/// A few nodes behind a tensor; the last one's output has the name that is given.
fn chain(noise: &mut Noise, from: &str, to: &str, prefix: &str) -> Vec<Message> {
    let length = noise.below(5);
    let mut last = from.to_owned();
    let mut nodes = Vec::new();
    for index in 0..length {
        let next = format!("{prefix}c{index}");
        nodes.push(match noise.below(2) {
            0 => node(noise.pick::<&str>(&UNARY), &[&last], &[&next], &[]),
            _ => node(noise.pick::<&str>(&BINARY), &[&last, &last], &[&next], &[]),
        });
        last = next;
    }
    nodes.push(node("Identity", &[&last], &[to.to_owned()], &[]));
    nodes
}

/// Loops in loops, of any number of runs, that carry a tensor and may gather another.
pub fn loops(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let go = made.name();
    made.constants.push(tensor(&go, BOOL, &[], &[1]));
    let mut inner: Option<Message> = None;
    let levels = noise.between(1, 8);
    let runs: Vec<String> = (0..levels)
        .map(|_| {
            let runs = if noise.once_in(20) { i64::MAX } else { noise.size(30_000) as i64 };
            made.number(runs)
        })
        .collect();
    for (level, runs) in runs.iter().enumerate() {
        let [i, c, v, o, g] = ["i", "c", "v", "o", "g"].map(|name| format!("{name}{level}"));
        let mut nodes = chain(noise, &v, &g, &o);
        nodes.push(match inner.take() {
            None => node("Identity", &[&g], &[&o], &[]),
            Some(inner) => node("Loop", &[runs.as_str(), &go, &g], &[&o], &[body("body", &inner)]),
        });
        let inputs = [port(&i, INT64, &[]), port(&c, BOOL, &[]), port(&v, FLOAT, &[4])];
        inner = Some(graph(&nodes, &[], &inputs, &[port(&c, BOOL, &[]), port(&o, FLOAT, &[4])]));
    }
    let most = made.number(noise.size(30_000) as i64);
    let inner = inner.expect("there is a level");
    let output = made.name();
    made.nodes.push(node("Loop", &[most.as_str(), &go, "x"], &[&output], &[body("body", &inner)]));
    made.finish(&output, &[4], &[])
}

/// Branches in branches, with conditions that are known, that are not, or that were computed.
pub fn branches(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let known = made.name();
    made.constants.push(tensor(&known, BOOL, &[], &[noise.below(2) as u8]));
    let sum = made.put("ReduceSum", &["x"], &[int("keepdims", 0)]);
    let open = made.put("Greater", &[&sum, &sum], &[]);
    let levels = noise.between(1, 11);
    let mut inner: Option<Message> = None;
    for level in 0..levels {
        let of = |noise: &mut Noise, side: &str, inner: &Option<Message>| {
            let (v, o) = (format!("v{side}{level}"), format!("o{side}{level}"));
            let mut nodes = chain(noise, "x", &v, &o);
            nodes.push(match inner {
                None => node("Identity", &[&v], &[&o], &[]),
                Some(inner) => {
                    let condition = if noise.once_in(2) { &known } else { &open };
                    let attributes = [body("then_branch", inner), body("else_branch", inner)];
                    node("If", &[condition], &[&o], &attributes)
                }
            });
            graph(&nodes, &[], &[], &[port(&o, FLOAT, &[4])])
        };
        inner = Some(of(noise, "a", &inner));
    }
    let inner = inner.expect("there is a level");
    let output = made.name();
    let attributes = [body("then_branch", &inner), body("else_branch", &inner)];
    made.nodes.push(node("If", &[&open], &[&output], &attributes));
    made.finish(&output, &[4], &[])
}

/// Functions that call others several times, or each other in a circle.
pub fn functions(noise: &mut Noise) -> Vec<u8> {
    let levels = noise.between(2, 60);
    let circle = noise.once_in(8);
    let mut all = Vec::new();
    for level in 0..levels {
        let calls = noise.between(1, 5);
        let mut last = "a".to_owned();
        let mut nodes = Vec::new();
        for call in 0..calls {
            let next = if call + 1 == calls { "b".to_owned() } else { format!("m{call}") };
            let callee = match (level, circle) {
                (0, false) => (*noise.pick::<&str>(&UNARY)).to_owned(),
                (0, true) => format!("own:F{}", levels - 1),
                _ => format!("own:F{}", if noise.once_in(4) { noise.below(level) } else { level - 1 }),
            };
            nodes.push(node(&callee, &[&last], &[&next], &[]));
            last = next;
        }
        all.push(function(&format!("F{level}"), "a", "b", &nodes));
    }
    let mut made = Made::default();
    let output = made.put(&format!("own:F{}", levels - 1), &["x"], &[]);
    made.finish(&output, &[4], &all)
}

/// Names that are long, of tensors that there are many of.
pub fn names(noise: &mut Noise) -> Vec<u8> {
    let long = "n".repeat(noise.size(1 << 20) as usize);
    let mut made = Made::default();
    let shape = made.numbers(&[2, 2]);
    let back = made.numbers(&[4]);
    let mut last = "x".to_owned();
    for index in 0..noise.between(1, 3) {
        let next = format!("{long}{index}");
        made.nodes.push(node("Reshape", &[&last, &shape], &[&next], &[]));
        last = next;
    }
    for _ in 0..noise.size(6000) {
        let shape = if noise.once_in(2) { &shape } else { &back };
        let output = made.name();
        made.nodes.push(node("Reshape", &[&last, shape], &[&output], &[]));
        if noise.once_in(3) {
            last = output;
        }
    }
    let output = made.put("Reshape", &[&last, &back], &[]);
    made.finish(&output, &[4], &[])
}

/// Lists of parts, lists that grow, and what is joined of them.
pub fn sequences(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let weights = made.floats(noise.size(60_000) as usize + 1);
    let first = made.number(0);
    let keep = [int("keepdims", noise.below(2) as i64)];
    let mut lists = vec![made.put("SplitToSequence", &[&weights], &keep)];
    for _ in 0..noise.size(3000) {
        let list = noise.pick(&lists).clone();
        let made_list = match noise.below(4) {
            0 => made.put("SequenceInsert", &[&list, "x"], &[]),
            1 => made.put("SequenceErase", &[&list], &[]),
            2 => {
                let joined = made.put("ConcatFromSequence", &[&list], &[int("axis", 0), int("new_axis", 1)]);
                made.put("SplitToSequence", &[&joined], &keep)
            }
            _ => made.put("SplitToSequence", &[&weights], &keep),
        };
        lists.push(made_list);
    }
    let list = noise.pick(&lists).clone();
    let part = made.put("SequenceAt", &[&list, &first], &[]);
    let output = made.put("Add", &["x", &part], &[]);
    made.finish(&output, &[4], &[])
}

/// Tensors in many parts, again and again.
pub fn splits(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let size = noise.size(1 << 16) as usize + 1;
    let mut last = "x".to_owned();
    for _ in 0..noise.between(1, 40) {
        let parts = noise.size(size as u64).max(1) as usize;
        let outputs: Vec<String> = (0..parts.min(20_000)).map(|_| made.name()).collect();
        let attributes = [int("axis", 0), int("num_outputs", outputs.len() as i64)];
        made.nodes.push(node("Split", &[&last], &outputs, &attributes));
        let joined = made.name();
        made.nodes.push(node("Concat", &outputs, &[&joined], &[int("axis", 0)]));
        last = joined;
    }
    made.finish(&last, &[size as i64], &[])
}

/// Sizes that are computed from sizes, and tensors of these sizes. Most of it fits together, as what does not is refused at once.
pub fn shapes(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let mut size = made.put("Shape", &["x"], &[]);
    // How many sizes there are.
    let mut count = 1;
    let mut last = "x".to_owned();
    for _ in 0..noise.between(1, 60) {
        (size, count) = arithmetic(noise, &mut made, &size, count);
        if noise.once_in(2) {
            last = of_size(noise, &mut made, &size, count);
        }
    }
    let output = made.put("ReduceMax", &[&last], &[int("keepdims", 0)]);
    let output = made.put("Add", &["x", &output], &[]);
    made.finish(&output, &[4], &[])
}

/// Sizes of sizes, and how many there are.
fn arithmetic(noise: &mut Noise, made: &mut Made, size: &str, count: usize) -> (String, usize) {
    let is_wild = noise.once_in(60);
    let most = if noise.once_in(8) { 1 << 12 } else { 3 };
    let number = |noise: &mut Noise| match is_wild {
        true => -(noise.size(9) as i64),
        false => noise.size(most).max(1) as i64,
    };
    let other: Vec<i64> = (0..count).map(|_| number(noise)).collect();
    match noise.below(6) {
        0 => (made.binary("Mul", size, &other), count),
        1 => (made.binary("Div", size, &other), count),
        2 if count < 5 => {
            let more = made.numbers(&other[..1]);
            (made.put("Concat", &[size, &more], &[int("axis", 0)]), count + 1)
        }
        3 => (made.binary("Add", size, &other), count),
        4 => {
            let places: Vec<i64> =
                (0..noise.between(1, 4)).map(|_| noise.below(count + usize::from(is_wild)) as i64).collect();
            let indices = made.numbers(&places);
            (made.put("Gather", &[size, &indices], &[]), places.len())
        }
        _ => (made.binary("Min", size, &other), count),
    }
}

/// A tensor of computed sizes.
fn of_size(noise: &mut Noise, made: &mut Made, size: &str, count: usize) -> String {
    let whole = made.put("ConstantOfShape", &[size], &[]);
    match noise.below(6) {
        0 => whole,
        1 => {
            let one = made.floats(1);
            made.put("Expand", &[&one, size], &[])
        }
        2 => {
            let repeats = made.numbers(&vec![noise.size(5).max(1) as i64; count]);
            made.put("Tile", &[&whole, &repeats], &[])
        }
        3 => {
            let (start, step) = (made.number(0), made.number(noise.size(3).max(1) as i64));
            let end = made.put("ReduceMax", &[size], &[int("keepdims", 0)]);
            let range = made.put("Range", &[&start, &end, &step], &[]);
            made.put("Cast", &[&range], &[int("to", FLOAT)])
        }
        4 => {
            let borders = made.put("Concat", &[size, size], &[int("axis", 0)]);
            made.put("Pad", &[&whole, &borders], &[])
        }
        _ => {
            let flat = made.numbers(&[-1]);
            made.put("Reshape", &[&whole, &flat], &[])
        }
    }
}

/// Recurrent operators over many steps, and scans.
pub fn steps(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let length = noise.size(1 << 17) as i64 + 1;
    if noise.once_in(2) {
        let gates = [("RNN", 1), ("GRU", 3), ("LSTM", 4)];
        let (operator, gates) = *noise.pick(&gates);
        let weights = |made: &mut Made| {
            let name = made.name();
            made.constants.push(tensor(&name, FLOAT, &[1, gates, 1], &vec![0; gates as usize * 4]));
            name
        };
        let (w, r) = (weights(&mut made), weights(&mut made));
        let mut last = "x".to_owned();
        for _ in 0..noise.between(1, 6) {
            let output = made.put(operator, &[&last, &w, &r], &[int("hidden_size", 1)]);
            let axis = made.numbers(&[1]);
            last = made.put("Squeeze", &[&output, &axis], &[]);
        }
        return made.finish(&last, &[length, 1, 1], &[]);
    }
    let ports = |of: [&str; 2]| of.map(|name| port(name, FLOAT, &[4]));
    let mut nodes = chain(noise, "s", "p", "q");
    nodes.push(node("Add", &["p", "e"], &["n"], &[]));
    nodes.push(node("Identity", &["n"], &["f"], &[]));
    let inner = graph(&nodes, &[], &ports(["s", "e"]), &ports(["n", "f"]));
    let zero = made.floats(4);
    let mut last = "x".to_owned();
    for _ in 0..noise.between(1, 6) {
        let [carried, next] = [made.name(), made.name()];
        let attributes = [body("body", &inner), int("num_scan_inputs", 1)];
        made.nodes.push(node("Scan", &[&zero, &last], &[carried, next.clone()], &attributes));
        last = next;
    }
    made.finish(&last, &[length, 4], &[])
}

/// Views of views, and constants that are computed from constants.
pub fn views(noise: &mut Noise) -> Vec<u8> {
    let mut made = Made::default();
    let mut all = vec!["x".to_owned(), made.floats(4096)];
    let square = made.numbers(&[64, 64]);
    all[1] = made.put("Reshape", &[&all[1], &square], &[]);
    for _ in 0..noise.size(4000) {
        let (a, b) = (noise.pick(&all).clone(), noise.pick(&all).clone());
        let next = match noise.below(7) {
            0 => made.put("Transpose", &[&a], &[ints("perm", &[1, 0])]),
            1 => made.put("MatMul", &[&a, &b], &[]),
            2 => made.put("Reshape", &[&a, &square], &[]),
            3 => {
                let [from, to] = [made.numbers(&[0]), made.numbers(&[noise.size(64) as i64])];
                made.put("Slice", &[&a, &from, &to], &[])
            }
            4 => made.put("Concat", &[&a, &b], &[int("axis", 0)]),
            5 => made.put(noise.pick::<&str>(&UNARY), &[&a], &[]),
            _ => made.put(noise.pick::<&str>(&BINARY), &[&a, &b], &[]),
        };
        // Most models that use whatever there is are wrong soon; those that go on from the newest are not.
        match noise.once_in(50) {
            true => all.push(next),
            false => *all.last_mut().expect("there are two") = next,
        }
    }
    let last = all.last().expect("there are two").clone();
    let output = made.put("ReduceMax", &[&last], &[int("keepdims", 0)]);
    let output = made.put("Add", &["x", &output], &[]);
    made.finish(&output, &[64, 64], &[])
}

/// Thousands of inputs and outputs, of up to 16 dimensions; outputs may be the same tensor again and again.
pub fn ports(noise: &mut Noise) -> Vec<u8> {
    let dims: Vec<i64> = (0..noise.below(17)).map(|_| if noise.once_in(8) { 2 } else { 1 }).collect();
    let inputs: Vec<String> = (0..=noise.size(1 << 13)).map(|place| format!("x{place}")).collect();
    let (mut nodes, mut results) = (Vec::new(), Vec::new());
    let shares = noise.once_in(2);
    for place in 0..noise.size(1 << 13) {
        if results.is_empty() || !shares {
            let result = format!("y{place}");
            let input = noise.pick(&inputs).clone();
            let operator: &str = UNARY[noise.below(UNARY.len())];
            nodes.push(node(operator, &[input], std::slice::from_ref(&result), &[]));
            results.push(result);
        } else {
            results.push(results[0].clone());
        }
    }
    let all = |names: &[String]| names.iter().map(|name| port(name, FLOAT, &dims)).collect::<Vec<_>>();
    model(&graph(&nodes, &[], &all(&inputs), &all(&results)), &[])
}
