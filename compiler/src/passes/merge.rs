//! Putting one expression into another, and taking parts out of one.

use std::ops::Range;

use halite_ops::{
    DType,
    elementwise::Elementwise,
    expression::{Expression, Function, Node, Operand, Type},
};
use halite_sizes::Size;

use crate::graph::TensorId;

/// Most nodes of an expression that comes about: longer ones take drivers long to compile.
const MOST_NODES: usize = 192;
/// The same where floats are computed: functions of them may take dozens of instructions.
const MOST_WITH_FLOATS: usize = 96;

/// Whether expressions are so short together that drivers compile them as one soon.
pub(super) fn are_short(parts: &[&Elementwise]) -> bool {
    let nodes: usize = parts.iter().map(|part| part.program.nodes.len()).sum();
    nodes <= MOST_WITH_FLOATS || nodes <= MOST_NODES && !parts.iter().any(|part| has_floats(part))
}

fn has_floats(elementwise: &Elementwise) -> bool {
    let tensors = elementwise.inputs.0.iter().chain(&elementwise.tables.0).map(|(dtype, _)| *dtype);
    let made = |node: &Node| node.function == Function::Dequantize || node.to.is_some_and(Type::is_float);
    let mut all = tensors.chain(elementwise.program.outputs.iter().map(|output| output.dtype));
    all.any(DType::is_float) || elementwise.program.nodes.iter().any(made)
}

/// An elementwise operation with what it reads.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    /// Tensor, type and dimensions of each input.
    pub inputs: Vec<(TensorId, DType, Vec<Size>)>,
    /// What is computed.
    pub program: Expression,
    /// Tensor, type and dimensions of each table.
    pub tables: Vec<(TensorId, DType, Vec<Size>)>,
}

impl Reader {
    /// The operation of a node.
    pub fn new(elementwise: &Elementwise, ids: &[TensorId]) -> Self {
        let tensors = elementwise.inputs.0.iter().chain(&elementwise.tables.0);
        let each = ids.iter().zip(tensors).map(|(id, (dtype, dims))| (*id, *dtype, dims.clone()));
        let mut inputs: Vec<_> = each.collect();
        let tables = inputs.split_off(elementwise.inputs.0.len());
        Reader { inputs, program: elementwise.program.clone(), tables }
    }

    /// The operation, and the tensors that it reads.
    pub fn into_operation(self) -> (Elementwise, Vec<TensorId>) {
        let ids = self.inputs.iter().chain(&self.tables).map(|(id, _, _)| *id).collect();
        let shapes = |tensors: Vec<(TensorId, DType, Vec<Size>)>| -> Vec<(DType, Vec<Size>)> {
            tensors.into_iter().map(|(_, dtype, dims)| (dtype, dims)).collect()
        };
        let made = Elementwise::new(shapes(self.inputs), self.program).with_tables(shapes(self.tables));
        (made, ids)
    }

    /// The one input with a tensor, when it is one only.
    pub fn input_of(&self, id: TensorId) -> Option<usize> {
        let mut found = self.inputs.iter().enumerate().filter(|(_, input)| input.0 == id);
        let first = found.next()?.0;
        found.next().is_none().then_some(first)
    }

    /// Nodes that read an input, and whether it is stored as it is.
    pub fn readers(&self, input: usize) -> (Vec<usize>, bool) {
        let operand = Operand::Input(input);
        let nodes = self.program.nodes.iter().enumerate();
        let readers = nodes.filter(|(_, node)| node.operands.contains(&operand)).map(|(i, _)| i).collect();
        (readers, self.program.outputs.iter().any(|output| output.value == operand))
    }

    /// Puts an input in the place of a node's result and drops the nodes.
    pub fn replace_by_input(&mut self, result: usize, input: usize, dropped: &[usize]) {
        let mut now = Vec::with_capacity(self.program.nodes.len());
        let mut kept: Vec<Node> = Vec::new();
        for (index, node) in self.program.nodes.iter().enumerate() {
            if index == result || dropped.contains(&index) {
                now.push(Operand::Input(input));
                continue;
            }
            let operands = node.operands.iter().map(|o| renamed(*o, &now)).collect();
            now.push(Operand::Node(kept.len()));
            kept.push(Node { operands, ..node.clone() });
        }
        self.program.nodes = kept;
        self.program.outputs.iter_mut().for_each(|output| output.value = renamed(output.value, &now));
    }

    /// Drops an input that nothing reads.
    pub fn drop_input(&mut self, input: usize) {
        self.inputs.remove(input);
        let now: Vec<Operand> =
            (0..=self.inputs.len()).map(|i| Operand::Input(if i > input { i - 1 } else { i })).collect();
        super::inline::substitute(&mut self.program, &now);
    }

    /// Puts the expression that computes an input in its place; `producer` has one output and the input's dimensions.
    /// `None` when types forbid it.
    pub fn absorb(&self, input: usize, producer: &Reader) -> Option<Reader> {
        let others = self.inputs.iter().enumerate().filter(|(own, _)| *own != input);
        let mut merged = Reader {
            inputs: others.map(|(_, own)| own.clone()).collect(),
            program: Expression::default(),
            tables: self.tables.clone(),
        };
        let of_producer: Vec<usize> = producer.inputs.iter().map(|own| merged.input(own)).collect();
        let tables: Vec<usize> = producer.tables.iter().map(|own| merged.table(own)).collect();
        let of_producer = |operand| match operand {
            Operand::Input(i) => Operand::Input(of_producer[i]),
            Operand::Table(i) => Operand::Table(tables[i]),
            other => other,
        };
        let offset = append(&mut merged.program, &producer.program, &of_producer);
        let output = producer.program.outputs.first()?;
        let value = shift(output.value, offset, &of_producer);
        let value = merged.stored(value, producer, output)?;
        let own = |operand| match operand {
            Operand::Input(i) if i == input => value,
            Operand::Input(i) if i > input => Operand::Input(i - 1),
            other => other,
        };
        let offset = append(&mut merged.program, &self.program, &own);
        for output in &self.program.outputs {
            let value = shift(output.value, offset, &own);
            merged.program.outputs.push(halite_ops::expression::Output { value, ..*output });
        }
        Some(merged)
    }

    /// Index of an input, which is added when it is not there.
    fn input(&mut self, wanted: &(TensorId, DType, Vec<Size>)) -> usize {
        self.inputs.iter().position(|own| own == wanted).unwrap_or_else(|| {
            self.inputs.push(wanted.clone());
            self.inputs.len() - 1
        })
    }

    /// Index of a table, which is added when it is not there.
    fn table(&mut self, wanted: &(TensorId, DType, Vec<Size>)) -> usize {
        self.tables.iter().position(|own| own == wanted).unwrap_or_else(|| {
            self.tables.push(wanted.clone());
            self.tables.len() - 1
        })
    }

    /// What a reader of the producer's output would have got: bytes where booleans are stored.
    fn stored(
        &mut self,
        value: Operand,
        producer: &Reader,
        output: &halite_ops::expression::Output,
    ) -> Option<Operand> {
        // Only bytes can be booleans, and asking for types costs as much as the producer is long.
        if output.dtype != DType::U8 && matches!(output.value, Operand::Node(_) | Operand::Input(_)) {
            return Some(value);
        }
        let dtypes: Vec<DType> = producer.inputs.iter().map(|(_, dtype, _)| *dtype).collect();
        let types = producer.program.types(&dtypes).ok()?;
        match output.value {
            Operand::Node(i) if types[i] == Type::Bool => {
                Some(self.program.cast(Type::Of(output.dtype), value))
            }
            Operand::Node(_) | Operand::Input(_) => Some(value),
            Operand::Constant(_) | Operand::Table(_) => None,
        }
    }
}

fn renamed(operand: Operand, now: &[Operand]) -> Operand {
    if let Operand::Node(i) = operand { now[i] } else { operand }
}

fn shift(operand: Operand, offset: usize, tensor: &dyn Fn(Operand) -> Operand) -> Operand {
    match operand {
        Operand::Node(i) => Operand::Node(i + offset),
        Operand::Input(_) | Operand::Table(_) => tensor(operand),
        constant => constant,
    }
}

/// Appends the nodes of an expression; where its first node is now.
fn append(to: &mut Expression, from: &Expression, tensor: &dyn Fn(Operand) -> Operand) -> usize {
    let offset = to.nodes.len();
    for node in &from.nodes {
        let operands = node.operands.iter().map(|o| shift(*o, offset, tensor)).collect();
        to.push(Node { operands, function: node.function, to: node.to });
    }
    offset
}

/// The dimensions of an input of something with dimensions `from`, when that is seen with dimensions `to`. `None` when no
/// broadcast says it.
pub(super) fn reseen(input: &[Size], from: &[Size], to: &[Size]) -> Option<Vec<Size>> {
    let elements = |dims: &[Size]| dims.iter().product::<Size>();
    if input.iter().all(|size| *size == 1) {
        return Some(Vec::new());
    }
    if input == from || elements(input) == elements(from) {
        return Some(to.to_vec());
    }
    let one = Size::constant(1);
    let lead = from.len().checked_sub(input.len())?;
    let own = [&vec![one; lead], input].concat();
    let mut seen = Vec::with_capacity(to.len());
    for (before, after) in groups(from, to)? {
        let (own, from, to) = (&own[before.clone()], &from[before], &to[after]);
        match () {
            // Some of the dimensions may be repeated where only those of one element come and go.
            () if solid(from).eq(solid(to)) => {
                let mut sizes = own.iter().zip(from).filter(|(_, from)| **from != 1).map(|(own, _)| *own);
                seen.extend(to.iter().map(|d| if *d == 1 { one } else { sizes.next().unwrap_or(one) }));
            }
            () if own.iter().all(|size| *size == 1) => seen.extend(to.iter().map(|_| one)),
            () if own == from => seen.extend_from_slice(to),
            () => return None,
        }
    }
    Some(seen)
}

/// Dimensions of more than one element.
fn solid(dims: &[Size]) -> impl Iterator<Item = Size> {
    dims.iter().copied().filter(|size| *size != 1)
}

/// The least runs of dimensions that have as many elements here as there, in order.
fn groups(from: &[Size], to: &[Size]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let (mut groups, mut begin) = (Vec::new(), (0, 0));
    let (mut end, mut counts) = ((0, 0), (Size::constant(1), Size::constant(1)));
    while end.0 < from.len() || end.1 < to.len() {
        // Elements are fewer on one side, or both sides begin.
        let here = counts.0 == counts.1 && end.0 < from.len() || counts.0.is_below(counts.1) == Some(true);
        if here {
            counts.0 *= *from.get(end.0)?;
            end.0 += 1;
        } else {
            counts.1 *= *to.get(end.1)?;
            end.1 += 1;
        }
        if counts.0 == counts.1 && end.0 > begin.0 && end.1 > begin.1 {
            groups.push((begin.0..end.0, begin.1..end.1));
            (begin, counts) = (end, (Size::constant(1), Size::constant(1)));
        }
    }
    // Dimensions of one element may be left on one side.
    if begin != end {
        let (before, after) = groups.last_mut()?;
        (before.end, after.end) = end;
    }
    (counts.0 == counts.1).then_some(groups)
}

/// Whether a node is a function of the operands.
pub(super) fn is_call(node: &Node, function: Function, operands: &[Operand]) -> bool {
    node.function == function && node.operands == operands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_seen_through() {
        let sizes = |dims: &[u64]| dims.iter().map(Size::from).collect::<Vec<_>>();
        let reseen = |input: &[u64], from: &[u64], to: &[u64]| {
            let found = reseen(&sizes(input), &sizes(from), &sizes(to));
            found.map(|dims| dims.iter().map(|size| size.exact()).collect::<Vec<_>>())
        };
        assert_eq!(reseen(&[4, 1], &[4, 5], &[1, 4, 1, 5]), Some(vec![1, 4, 1, 1]));
        assert_eq!(reseen(&[5], &[4, 5], &[4, 5, 1]), Some(vec![1, 5, 1]));
        assert_eq!(reseen(&[4, 5], &[4, 5], &[20]), Some(vec![20]));
        assert_eq!(reseen(&[], &[4, 5], &[2, 10]), Some(vec![]));
        assert_eq!(reseen(&[5], &[4, 5], &[20]), None);
        // Images and windows are taken apart, or become one; what is the same for all of them, or for none, stays so.
        assert_eq!(reseen(&[1, 3, 7, 7], &[16, 3, 7, 7], &[2, 8, 3, 7, 7]), Some(vec![1, 1, 3, 7, 7]));
        assert_eq!(reseen(&[16, 1, 7, 7], &[16, 3, 7, 7], &[2, 8, 3, 7, 7]), Some(vec![2, 8, 1, 7, 7]));
        assert_eq!(reseen(&[2, 8, 1, 1, 7], &[2, 8, 3, 7, 7], &[16, 3, 7, 7]), Some(vec![16, 1, 1, 7]));
        assert_eq!(reseen(&[8, 1, 1, 7], &[2, 8, 3, 7, 7], &[16, 3, 7, 7]), None);
        assert_eq!(reseen(&[3, 1, 5], &[3, 4, 5], &[12, 1, 5, 1]), None);
        assert_eq!(reseen(&[1, 1, 5], &[3, 4, 5], &[12, 1, 5, 1]), Some(vec![1, 1, 5, 1]));
    }

    #[test]
    fn floats_are_more_work_than_integers() {
        let chain = |dtype: DType, length: usize| {
            let mut program = Expression::default();
            let mut value = Operand::Input(0);
            for _ in 0..length {
                value = program.call(Function::Abs, &[value]);
            }
            program.store(value, dtype);
            let half = Elementwise::new([(dtype, vec![4])], program);
            are_short(&[&half, &half])
        };
        assert!(chain(DType::F32, 48) && !chain(DType::F32, 49) && !chain(DType::F16, 49));
        assert!(chain(DType::I32, 96) && !chain(DType::I32, 97));
        let text = "dequantize $0 0.5 1i8; quantize:i8 %0 0.5 1i8 -> %1:i8";
        assert!(has_floats(&Elementwise::new([(DType::I8, vec![4])], text.parse().unwrap())));
    }

    #[test]
    fn expressions_are_put_into_others() {
        let id = |n| TensorId(n);
        let f32s = |n: u32| (id(n), DType::F32, vec![4.into()]);
        let i8s = |n: u32| (id(n), DType::I8, vec![256.into()]);
        let producer = Reader {
            inputs: vec![f32s(0), f32s(1)],
            program: "gt $0 $1 -> %0:u8".parse().unwrap(),
            tables: Vec::new(),
        };
        let consumer = Reader {
            inputs: vec![f32s(1), (id(2), DType::U8, vec![4.into()])],
            program: "cast:bool $1; select %0 $0 0.5 -> %1:f32".parse().unwrap(),
            tables: Vec::new(),
        };
        let merged = consumer.absorb(1, &producer).unwrap();
        assert_eq!(merged.inputs, [f32s(1), f32s(0)]);
        let text = "gt $1 $0; cast:u8 %0; cast:bool %1; select %2 $0 0.5 -> %3:f32";
        assert_eq!(merged.program.to_string(), text);
        let looked_up = |tables: &[u32], program: &str| Reader {
            inputs: vec![(id(5), DType::I32, vec![4.into()])],
            program: program.parse().unwrap(),
            tables: tables.iter().map(|n| i8s(*n)).collect(),
        };
        let consumer = looked_up(&[7, 8], "lookup:i8 $0 @0; lookup:i8 $0 @1; add %0 %1 -> %2:i8");
        let producer =
            looked_up(&[8, 9], "lookup:i8 $0 @1; lookup:i8 $0 @0; add %0 %1; cast:i32 %2 -> %3:i32");
        let merged = consumer.absorb(0, &producer).unwrap();
        assert_eq!(merged.tables, [i8s(7), i8s(8), i8s(9)]);
        let text = "lookup:i8 $0 @2; lookup:i8 $0 @1; add %0 %1; cast:i32 %2; \
                    lookup:i8 %3 @0; lookup:i8 %3 @1; add %4 %5 -> %6:i8";
        assert_eq!(merged.program.to_string(), text);
    }
}
