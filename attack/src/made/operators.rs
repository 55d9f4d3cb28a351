//! Single operators of ONNX with one or a few of their numbers far out: attributes, constants that they read, sizes of their inputs.

use super::proto::{
    BOOL, FLOAT, INT64, Message, float, floats, graph, int, ints, model, node, open_port, port, tensor, text,
    whole,
};
use crate::noise::Noise;

/// Operators as they are right, one a line: inputs, then attributes.
///
/// `x:1,2` is an input of the model, of floats with these sizes, `i:` one of numbers, `b:` one of truths; `c:1,2` a constant of ones,
/// `u:` one of bytes; `n:1,2` are numbers in a list, `n0:1` a number by itself, `f:` and `f0:` floats; `-` is an input that is left
/// out. Attributes are `name=1`, `name=1,2`, `name=1,` (a list of one), `name=0.5` and `name='text'`.
const ROWS: &str = include_str!("operators.txt");

/// Whole numbers that sizes, places and counts do badly with.
const NUMBERS: [i64; 22] = [
    0,
    -1,
    1,
    2,
    3,
    -2,
    7,
    63,
    64,
    1000,
    -1000,
    65_535,
    1 << 16,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31),
    1 << 40,
    1 << 62,
    -(1 << 62),
    i64::MAX,
    i64::MIN,
];
const FLOATS: [f32; 16] = [
    0.0,
    -0.0,
    -1.0,
    0.5,
    1e-3,
    1e-9,
    1e-38,
    1000.0,
    65_537.0,
    1e7,
    3e9,
    1e19,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];
/// Words that attributes of operators take.
const WORDS: [&str; 16] = [
    "linear",
    "cubic",
    "nearest",
    "SAME_UPPER",
    "VALID",
    "reflect",
    "wrap",
    "edge",
    "constant",
    "align_corners",
    "tf_crop_and_resize",
    "half_pixel",
    "bidirectional",
    "max",
    "",
    "abc",
];

/// A field of a line, with its numbers.
#[derive(Clone, Debug)]
enum Piece {
    /// A tensor that callers give: its type and sizes.
    Given(i64, Vec<i64>),
    /// A tensor of ones: its type and sizes.
    Ones(i64, Vec<i64>),
    /// Whole numbers that are read, and whether they are a list.
    Numbers(Vec<i64>, bool),
    /// The same of floats.
    Floats(Vec<f32>, bool),
    LeftOut,
    Ints(String, Vec<i64>, bool),
    Reals(String, Vec<f32>, bool),
    Text(String, String),
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// `TensorProto.UINT8`.
const BYTES: i64 = 2;

fn numbers<T: std::str::FromStr>(from: &str) -> Vec<T> {
    from.split(',').filter_map(|number| number.parse().ok()).collect()
}

fn piece(field: &str) -> Piece {
    if let Some((name, value)) = field.split_once('=') {
        let name = name.to_owned();
        let is_list = value.contains(',');
        return match value.strip_prefix('\'') {
            Some(word) => Piece::Text(name, word.trim_end_matches('\'').to_owned()),
            None if value.contains('.') => Piece::Reals(name, numbers(value), is_list),
            None => Piece::Ints(name, numbers(value), is_list),
        };
    }
    let (kind, value) = field.split_once(':').unwrap_or((field, ""));
    match kind {
        "x" => Piece::Given(FLOAT, numbers(value)),
        "i" => Piece::Given(INT64, numbers(value)),
        "b" => Piece::Given(BOOL, numbers(value)),
        "c" => Piece::Ones(FLOAT, numbers(value)),
        "u" => Piece::Ones(BYTES, numbers(value)),
        "n" | "n0" => Piece::Numbers(numbers(value), kind == "n"),
        "f" | "f0" => Piece::Floats(numbers(value), kind == "f"),
        _ => Piece::LeftOut,
    }
}

fn far_out<T: Copy>(noise: &mut Noise, values: &mut Vec<T>, extremes: &[T]) {
    let new = *noise.pick(extremes);
    if values.is_empty() || noise.once_in(12) {
        return values.push(new);
    }
    if noise.once_in(20) {
        let count = noise.size(4000) as usize;
        return *values = vec![new; count];
    }
    let at = noise.below(values.len());
    values[at] = new;
}

/// Letters of a term of an equation, of which there are so many at most.
fn term(noise: &mut Noise, letters: usize, most: u64) -> String {
    let all = LETTERS.as_bytes();
    let mut made: String = (0..noise.size(most)).map(|_| char::from(all[noise.below(letters)])).collect();
    if noise.once_in(6) {
        made.insert_str(made.len() / 2, "...");
    }
    made
}

/// An equation of letters, which says what it likes.
fn equation(noise: &mut Noise) -> String {
    let letters = noise.between(1, LETTERS.len());
    let [left, right, result] = [4, 4, 60].map(|most| term(noise, letters, most));
    format!("{left},{right}->{result}")
}

/// Another size, or one more.
fn resize(noise: &mut Noise, dims: &mut Vec<i64>, most: u64) {
    let new = noise.size(most) as i64;
    let at = noise.below(dims.len() + 1);
    match dims.get_mut(at) {
        Some(dim) => *dim = new,
        None => dims.push(1),
    }
}

impl Piece {
    /// Puts one of its numbers far out.
    fn change(&mut self, noise: &mut Noise) {
        match self {
            Piece::Given(_, dims) => resize(noise, dims, 1 << 20),
            // What a file holds costs its bytes.
            Piece::Ones(_, dims) => resize(noise, dims, 9),
            Piece::Numbers(values, _) | Piece::Ints(_, values, _) => far_out(noise, values, &NUMBERS),
            Piece::Floats(values, _) | Piece::Reals(_, values, _) => far_out(noise, values, &FLOATS),
            Piece::Text(name, value) if name == "equation" => *value = equation(noise),
            Piece::Text(_, value) => *value = (*noise.pick(&WORDS)).to_owned(),
            Piece::LeftOut => *self = Piece::Numbers(vec![*noise.pick(&NUMBERS)], noise.once_in(2)),
        }
    }
}

/// What a model is made of.
#[derive(Default)]
struct Parts {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    names: usize,
}

impl Parts {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// The name of an input of a node; none for an attribute.
    fn input(&mut self, piece: &Piece) -> Option<String> {
        let name = self.name();
        match piece {
            Piece::Given(kind, dims) => self.inputs.push(port(&name, *kind, dims)),
            Piece::Ones(kind, dims) => {
                let count = dims.iter().product::<i64>().clamp(0, 1 << 18) as usize;
                let one: &[u8] = if *kind == FLOAT { &[0, 0, 0x80, 0x3F] } else { &[1] };
                self.constants.push(tensor(&name, *kind, dims, &one.repeat(count)));
            }
            Piece::Numbers(values, is_list) => {
                let dims = [values.len() as i64];
                let is_list = *is_list || values.len() != 1;
                self.constants.push(whole(&name, if is_list { &dims } else { &[] }, values));
            }
            Piece::Floats(values, is_list) => {
                let dims = [values.len() as i64];
                let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                let is_list = *is_list || values.len() != 1;
                self.constants.push(tensor(&name, FLOAT, if is_list { &dims } else { &[] }, &raw));
            }
            Piece::LeftOut => return Some(String::new()),
            Piece::Ints(..) | Piece::Reals(..) | Piece::Text(..) => return None,
        }
        Some(name)
    }

    /// An operator; the name of its first result.
    fn put(&mut self, operator: &str, pieces: &[Piece], first: Option<&str>) -> String {
        let mut inputs: Vec<String> = pieces.iter().filter_map(|piece| self.input(piece)).collect();
        if let (Some(first), Some(place)) = (first, inputs.first_mut()) {
            first.clone_into(place);
        }
        let attributes: Vec<Message> = pieces.iter().filter_map(attribute).collect();
        let output = self.name();
        self.nodes.push(node(operator, &inputs, &[&output], &attributes));
        output
    }
}

fn attribute(piece: &Piece) -> Option<Message> {
    Some(match piece {
        Piece::Ints(name, values, false) if values.len() == 1 => int(name, values[0]),
        Piece::Ints(name, values, _) => ints(name, values),
        Piece::Reals(name, values, false) if values.len() == 1 => float(name, values[0]),
        Piece::Reals(name, values, _) => floats(name, values),
        Piece::Text(name, value) => text(name, value),
        _ => return None,
    })
}

/// A line of the table with some numbers far out.
fn row(noise: &mut Noise, all: &[&str]) -> (String, Vec<Piece>) {
    let mut fields = noise.pick(all).split_whitespace();
    let operator = fields.next().unwrap_or_default().to_owned();
    let mut pieces: Vec<Piece> = fields.map(piece).collect();
    for _ in 0..noise.below(4) {
        let at = noise.below(pieces.len());
        if let Some(piece) = pieces.get_mut(at) {
            piece.change(noise);
        }
    }
    (operator, pieces)
}

/// A few operators, each by itself or behind the one before, whose results are results of the model.
pub fn far(noise: &mut Noise) -> Vec<u8> {
    let all: Vec<&str> = ROWS.lines().filter(|line| !line.is_empty()).collect();
    let mut parts = Parts::default();
    let mut outputs = Vec::new();
    let mut last: Option<String> = None;
    for _ in 0..noise.between(1, 3) {
        let (operator, pieces) = row(noise, &all);
        let first = last.as_deref().filter(|_| noise.once_in(2));
        let made = parts.put(&operator, &pieces, first);
        let shown = parts.name();
        parts.nodes.push(node("Cast", &[&made], &[&shown], &[int("to", FLOAT)]));
        outputs.push(open_port(&shown, FLOAT));
        last = Some(made);
    }
    model(&graph(&parts.nodes, &parts.constants, &parts.inputs, &outputs), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table_are_read_whole() {
        for line in ROWS.lines().filter(|line| !line.is_empty()) {
            for field in line.split_whitespace().skip(1) {
                let is_known = match piece(field) {
                    Piece::Ints(_, values, _) => !values.is_empty(),
                    Piece::Reals(_, values, _) => !values.is_empty(),
                    Piece::LeftOut => field == "-",
                    Piece::Given(..) | Piece::Ones(..) => field.contains(':'),
                    Piece::Numbers(..) | Piece::Floats(..) | Piece::Text(..) => true,
                };
                assert!(is_known, "{field} in {line}");
            }
        }
    }
}
