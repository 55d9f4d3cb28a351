//! Sizes that only data decide: numbers that the host reads while a function is at work, and what is made of them.

use halite_ops::{
    DType, Operation,
    compact::Compact,
    expression::{Function, Operand, Scalar, Type},
};
use halite_sizes::{Size, Trace};

use super::{Builder, Result};
use crate::graph::{DataSymbol, ElementType, HostWork, Node, NodeOp, Shape, TensorId};

/// Most numbers that are read at one place.
const MOST_READ: u64 = 16;

/// The length of a constant whose beginning is each line of places that is no longer: nothing is computed for these.
const MOST_LINE: u64 = 1 << 13;

/// Most tensors that are looked at for where sizes come from.
const MOST_STEPS: usize = 64;

/// Most nodes that are looked at for what computes a tensor.
const MOST_BACK: usize = 1 << 12;

/// What a size is that no bound is known of, in the example.
const EXAMPLE: i64 = 100;

/// What the elements of an example tensor are at most of which all sizes are read at once: 2 to the power of this.
const EXAMPLE_BITS: u32 = 20;

/// The largest size that data decide where nothing else bounds it.
pub const MOST_SIZE: i64 = 1 << 31;

/// What each of so many sizes that are read together is in the example: they may be those of one tensor.
fn example(count: usize) -> i64 {
    let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    EXAMPLE.min(1 << (EXAMPLE_BITS / count).max(1))
}

/// How many elements a tensor has at least: of sizes that data decide, calls tell. Sizes of 0 do not hide others that are too large to
/// count.
pub(super) fn places(shape: &Shape) -> u64 {
    let least = |size: &Size| if size.is_data() { size.least().max(0) as u64 } else { size.value() };
    shape.sizes().iter().map(|size| least(size).max(1)).fold(1, u64::saturating_mul)
}

/// An element that decides a size.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// Known when the model is compiled, or computed of sizes.
    Known(Size),
    /// A scalar of `i64`, which is computed.
    Data(TensorId),
}

impl Builder {
    /// Lets data decide sizes, as symbols of a trace that is entered.
    pub(crate) fn with_data(&mut self, trace: &Trace) {
        self.trace = Some(trace.clone());
    }

    /// The sizes that data decide.
    pub(crate) fn take_data(&mut self) -> Vec<DataSymbol> {
        std::mem::take(&mut self.data)
    }

    /// Fails where the last node needed a size as a number that only data decide.
    pub(crate) fn check_data(&self) -> Result<()> {
        crate::error::unpinned(&self.location)
    }

    /// The numbers of a small integer tensor, read by the host while the function is at work: sizes from `least` to `most`,
    /// outside of which a call fails. `what` says what they are.
    ///
    /// # Errors
    /// The front end does not have such sizes, or there are too many.
    pub fn read(&mut self, id: TensorId, what: &str, least: i64, most: i64) -> Result<Vec<Size>> {
        let count = self.tensor(id).count();
        let count = if count.is_constant() { count.value() } else { u64::MAX };
        if self.trace.is_none() || count > MOST_READ {
            return Err(self.needs(id, what));
        }
        self.read_each(id, what, &vec![(least, most); count as usize])
    }

    /// The same, where each number has its own least and largest value.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn read_each(&mut self, id: TensorId, what: &str, bounds: &[(i64, i64)]) -> Result<Vec<Size>> {
        let Some(trace) = self.trace.clone() else { return Err(self.needs(id, what)) };
        if self.element(id).is_float() {
            return Err(self.invalid(format!("{what} are floats")));
        }
        let numbers = self.cast(id, DType::I64)?;
        let numbers = self.reshape(numbers, &[bounds.len() as u64])?;
        if bounds.is_empty() {
            return Ok(Vec::new());
        }
        let name = format!("{what}, which {} computes", self.location());
        let mut symbols = Vec::new();
        let first = trace.symbol_count() as u32;
        for (index, (least, most)) in bounds.iter().copied().enumerate() {
            let name = if bounds.len() == 1 { name.clone() } else { format!("number {index} of {name}") };
            // Sizes that can be 0 or 1 alone are no less general.
            let range_end = most.max(2);
            let example = example(bounds.len()).clamp(2.max(least), range_end);
            symbols.push(trace.data_symbol(&name, example, least, range_end));
            self.data.push(DataSymbol { name, least, most });
        }
        self.push(NodeOp::Host(HostWork::Read { first }), &[numbers], &[] as &[(ElementType, Vec<Size>)])?;
        Ok(symbols)
    }

    /// The only element of a tensor of integers as a size, which the host reads once however often it is asked for.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn read_number(&mut self, id: TensorId, what: &str) -> Result<Size> {
        if let Some(known) = self.number_read(id) {
            return Ok(known);
        }
        let sizes = self.read(id, what, 0, MOST_SIZE)?;
        let [size] = sizes[..] else {
            return Err(self.invalid(format!("{what} is {} numbers", sizes.len())));
        };
        if self.is_in_body() {
            self.numbers.insert(id, size);
        }
        Ok(size)
    }

    /// The size that the only element of a tensor is, if it is known or was read before.
    pub fn number_read(&self, id: TensorId) -> Option<Size> {
        if let Some([known]) = self.size_values(id).as_deref() {
            return Some(*known);
        }
        self.numbers.get(&id).copied()
    }

    /// The tensor that another repeats.
    pub fn repeated_of(&self, id: TensorId) -> Option<TensorId> {
        self.repeated.get(id)
    }

    /// Whether sizes may be numbers that data decide.
    pub fn takes_data(&self) -> bool {
        self.trace.is_some()
    }

    /// The elements of a small tensor that decides sizes, each known or a scalar of `i64`.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn numbers_of(&mut self, id: TensorId, what: &str) -> Result<Vec<Number>> {
        let mut numbers = Vec::new();
        for part in self.known_parts(id) {
            match part {
                Ok(known) => numbers.extend(known.into_iter().map(Number::Known)),
                Err(id) => {
                    let count = self.tensor(id).count();
                    if self.trace.is_none() || !count.is_constant() || count > MOST_READ {
                        return Err(self.needs(id, what));
                    }
                    if self.element(id).is_float() {
                        return Err(self.invalid(format!("{what} are floats")));
                    }
                    let line = self.cast(id, DType::I64)?;
                    let line = self.reshape(line, &[count.value()])?;
                    for index in 0..count.value() {
                        let one = self.slice(line, &[super::Range { start: index, step: 1, count: 1 }])?;
                        numbers.push(Number::Data(self.reshape(one, &[])?));
                    }
                }
            }
        }
        Ok(numbers)
    }

    /// Sizes that the host reads at once, of scalars that are computed, each with its least and largest value.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn read_scalars(&mut self, scalars: &[(TensorId, i64, i64)], what: &str) -> Result<Vec<Size>> {
        let mut sizes = Vec::new();
        for part in scalars.chunks(MOST_READ as usize) {
            let mut all = Vec::new();
            for (scalar, ..) in part {
                all.push(self.reshape(*scalar, &[1])?);
            }
            let line = self.concat(&all, 0)?;
            let bounds: Vec<(i64, i64)> = part.iter().map(|(_, least, most)| (*least, *most)).collect();
            sizes.extend(self.read_each(line, what, &bounds)?);
        }
        Ok(sizes)
    }

    /// A symbol for sizes of which one counts, by what is computed: the one of either branch, or of each run of a loop.
    /// Whoever asks sets it by a node ([`Builder::setting`]). None where the front end does not have such sizes.
    pub fn joined_size(&mut self, what: &str, sizes: [Size; 2]) -> Option<Size> {
        let trace = self.trace.clone()?;
        let name = format!("{what} of {}", self.location());
        let least = sizes.iter().map(|size| size.least()).min().unwrap_or(0).max(0);
        let most = sizes.iter().map(|size| size.most()).max().unwrap_or(0).clamp(least, MOST_SIZE);
        let example = sizes.iter().map(|size| size.signed_value()).max().unwrap_or(0);
        self.data.push(DataSymbol { name: name.clone(), least, most });
        Some(trace.data_symbol(&name, example.clamp(least, most.max(2)), least, most.max(2)))
    }

    /// A symbol for a size that data decide, without anything that is read: whoever asks sets it ([`Builder::set`]). None where
    /// the front end does not have such sizes.
    pub fn size_of_data(&mut self, what: &str, least: i64, most: i64) -> Option<Size> {
        let trace = self.trace.clone()?;
        let name = format!("{what} of {}", self.location());
        self.data.push(DataSymbol { name: name.clone(), least, most });
        Some(trace.data_symbol(&name, EXAMPLE.clamp(least, most.max(2)), least, most.max(2)))
    }

    /// Gives symbols, which came about one behind the other, values that are computed of others.
    ///
    /// # Errors
    /// The work was ended.
    pub fn set(&mut self, symbols: &[Size], values: &[Size]) -> Result<()> {
        let Some(first) = symbols.first().and_then(|first| first.symbols().first().copied()) else {
            return Ok(());
        };
        self.push(
            NodeOp::Host(HostWork::Set { first, values: values.to_vec() }),
            &[],
            &[] as &[(ElementType, Vec<Size>)],
        )
        .map(drop)
    }

    /// Number of symbols so far.
    pub fn symbols(&self) -> usize {
        self.trace.as_ref().map_or(0, Trace::symbol_count)
    }

    /// Whether whoever runs the innermost region waits for the device in it: for numbers that decide sizes or what is done.
    pub fn waits(&self) -> bool {
        self.open.last().is_some_and(|region| self.waits_in(&region.nodes))
    }

    fn waits_in(&self, nodes: &[Node]) -> bool {
        let is_constant = |id: &TensorId| self.tensor(*id).constant.is_some();
        nodes.iter().any(|node| match &node.op {
            NodeOp::Host(_) | NodeOp::If(_) => true,
            NodeOp::Loop(body) => {
                let known = node.inputs[..2].iter().chain(&body.results[..1]).all(is_constant);
                !known || self.waits_in(&body.nodes)
            }
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View => false,
        })
    }

    /// The node that gives symbols their values.
    pub fn setting(&self, symbols: &[Size], values: Vec<Size>) -> Option<Node> {
        let first = *symbols.first()?.symbols().first()?;
        let op = NodeOp::Host(HostWork::Set { first, values });
        Some(Node { op, inputs: Vec::new(), outputs: Vec::new(), location: self.location.clone() })
    }

    /// Sizes that are computed on the device: each is read where it comes about, so that those beside it that are known stay so.
    pub(super) fn sizes_of_data(&mut self, id: TensorId, what: &str) -> Result<Vec<Size>> {
        let mut sizes = Vec::new();
        for part in self.known_parts(id) {
            match part {
                Ok(known) => sizes.extend(known),
                Err(id) => sizes.extend(self.read(id, what, 0, MOST_SIZE)?),
            }
        }
        Ok(sizes)
    }

    /// The elements of a tensor, as far as they are known, and the tensors that the others are in.
    fn known_parts(&self, id: TensorId) -> Vec<std::result::Result<Vec<Size>, TensorId>> {
        let mut parts = Vec::new();
        // The last comes first.
        let mut open = vec![id];
        let mut steps = 0;
        while let Some(id) = open.pop() {
            if let Some(known) = self.size_values(id) {
                parts.push(Ok(known));
                continue;
            }
            steps += 1;
            match self.parts_of(id).filter(|_| steps < MOST_STEPS) {
                Some(inner) => open.extend(inner.into_iter().rev()),
                None => parts.push(Err(id)),
            }
        }
        parts
    }

    /// The tensors whose elements, one behind the other, are those of a tensor.
    pub(super) fn parts_of(&self, id: TensorId) -> Option<Vec<TensorId>> {
        let nodes = self.open.iter().rev().flat_map(|region| region.nodes.iter().rev());
        let mut nodes = nodes.take(MOST_BACK);
        let node = nodes.find(|node| node.outputs.contains(&id))?;
        match &node.op {
            NodeOp::View if self.element(node.inputs[0]) == self.element(id) => Some(node.inputs.clone()),
            NodeOp::Operation(Operation::Concat(concat)) if concat.outer == 1 => Some(node.inputs.clone()),
            _ => None,
        }
    }

    /// The places of a line at which a condition holds, in order, as a vector of `i64` with as many elements.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn places_where(&mut self, condition: TensorId) -> Result<TensorId> {
        if let Some(known) = self.places_of.get(&condition) {
            return Ok(*known);
        }
        let length = self.tensor(condition).count();
        let line = self.reshape_to(condition, &[length])?;
        let ones = self.map(&[line], DType::I32, |program, x| {
            let holds = program.cast(Type::Bool, x[0]);
            program.cast(Type::Of(DType::I32), holds)
        })?;
        let counts = self.cumulative_sum(ones, 0, false, false)?;
        let made = Operation::Compact(Compact { length });
        let outputs = [(DType::I32.into(), vec![length]), (DType::I64.into(), vec![Size::constant(1)])];
        let made = self.kernel(made, &[counts], &outputs)?;
        let most = length.most().min(MOST_SIZE);
        let count = self.read(made[1], "the number of places found", 0, most)?[0];
        let places = self.first(made[0], count)?;
        let places = self.cast(places, DType::I64)?;
        if self.is_in_body() {
            self.places_of.insert(condition, places);
        }
        Ok(places)
    }

    /// The coordinates of the elements for which a condition holds, in order: a vector of `i64` for each dimension.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn coordinates_where(&mut self, condition: TensorId) -> Result<Vec<TensorId>> {
        let mut dims = self.sizes(condition).to_vec();
        let mut rest = self.places_where(condition)?;
        let mut columns = Vec::new();
        while let Some(size) = dims.pop() {
            if dims.is_empty() {
                columns.push(rest);
                break;
            }
            let size = self.computed(DType::I64, &[], vec![size])?;
            columns.push(self.binary(Function::Mod, rest, size)?);
            rest = self.binary(Function::Div, rest, size)?;
        }
        columns.reverse();
        Ok(columns)
    }

    /// The first elements of a vector. That there are as many is known.
    pub(crate) fn first(&mut self, vector: TensorId, count: Size) -> Result<TensorId> {
        let (element, source) = (self.element(vector), self.tensor(vector).count());
        let copy = halite_ops::copy::StridedCopy {
            source,
            shape: vec![count],
            strides: vec![1.into()],
            offset: 0.into(),
            dtype: element.storage(),
        };
        self.kernel1(Operation::StridedCopy(copy), &[vector], element, &[count])
    }

    /// 0, 1, 2, …: as many as a size says that may be open.
    ///
    /// # Errors
    /// A constant would have too many elements.
    pub fn line_of_places(&mut self, element: impl Into<ElementType>, count: Size) -> Result<TensorId> {
        let element = element.into();
        if count.is_constant() {
            return self.places(element, &[count.value()]);
        }
        if count.is_at_most(MOST_LINE) {
            let line = match self.line {
                Some(line) => line,
                None => self.places(DType::I64, &[MOST_LINE])?,
            };
            self.line = Some(line);
            let places = self.first(line, count)?;
            return self.cast(places, element);
        }
        let one = self.float(DType::I32, 1.0)?;
        let ones = self.expand_to(one, &[count])?;
        let places = self.cumulative_sum(ones, 0, true, false)?;
        self.cast(places, element)
    }

    /// `start`, `start + step`, … below `limit`, where these scalars are not known before data are.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn range_of(&mut self, [start, limit, step]: [TensorId; 3]) -> Result<TensorId> {
        let element = self.element(start);
        let count = self.map(&[start, limit, step], DType::I64, |program, x| {
            let length = program.call(Function::Sub, &[x[1], x[0]]);
            if element.is_float() {
                let times = program.call(Function::Div, &[length, x[2]]);
                let whole = program.call(Function::Ceil, &[times]);
                let zero = Operand::Constant(Scalar::Float(0.0));
                let count = program.call(Function::Max, &[whole, zero]);
                return program.cast(Type::Of(DType::I64), count);
            }
            let zero = Operand::Constant(Scalar::Int(0, element.storage()));
            // Truncated division, and one more where something is left in the direction of the step.
            let times = program.call(Function::Div, &[length, x[2]]);
            let back = program.call(Function::Mul, &[times, x[2]]);
            let rest = program.call(Function::Sub, &[length, back]);
            let is_left = program.call(Function::Ne, &[rest, zero]);
            let one = program.cast(Type::Of(element.storage()), is_left);
            let more = program.call(Function::Add, &[times, one]);
            let up = program.call(Function::Gt, &[x[2], zero]);
            let ahead = program.call(Function::Gt, &[length, zero]);
            let behind = program.call(Function::Lt, &[length, zero]);
            let there = program.call(Function::Select, &[up, ahead, behind]);
            let count = program.call(Function::Select, &[there, more, zero]);
            program.cast(Type::Of(DType::I64), count)
        })?;
        let count = self.read(count, "the number of elements of a range", 0, MOST_SIZE)?[0];
        self.range_along([start, limit, step], count)
    }

    /// `start`, `start + step`, … of these scalars: so many numbers as there are below `limit`.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn range_along(&mut self, [start, _, step]: [TensorId; 3], count: Size) -> Result<TensorId> {
        let element = self.element(start);
        let places = self.line_of_places(element, count)?;
        self.map(&[start, places, step], element, |program, x| {
            let along = program.call(Function::Mul, &[x[1], x[2]]);
            program.call(Function::Add, &[x[0], along])
        })
    }

    /// Whether nodes go to the body of the function, and not to a region inside of it.
    fn is_in_body(&self) -> bool {
        self.open.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_open_lines_are_the_beginning_of_one_constant() {
        let trace = Trace::new();
        let _entered = trace.enter();
        let mut b = Builder::new();
        let [few, more] = [5, 60].map(|count| trace.symbol("count", count, 2, 1 << 20));
        let lines = [few, more].map(|count| b.line_of_places(DType::I64, count).unwrap());
        let node = |id| b.open[0].nodes.iter().find(|node: &&Node| node.outputs.contains(&id)).unwrap();
        assert_eq!(node(lines[0]).inputs, node(lines[1]).inputs);
        assert!(b.tensor(node(lines[0]).inputs[0]).constant.is_some());
        assert_eq!(b.open[0].nodes.len(), 2);
        // What is longer is computed.
        let many = trace.symbol("many", MOST_LINE + 1, 2, 1 << 20);
        b.line_of_places(DType::I64, many).unwrap();
        assert!(b.open[0].nodes.len() > 3);
    }
}
