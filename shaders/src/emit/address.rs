//! The elements that a kernel reads by coordinates: indices into broadcast inputs, and the loads.

use halite_ops::DType;
use spirv::{GlslStd450Op, Op};

use halite_spirv::Id;

use super::{
    kernel::{KernelBuilder, may_be_one},
    lanes::Register,
    layout::{Access, Walk},
    memory::{gather, shifts, unpack, unpack_each, unpack_pair, width_of, word_of, words_of},
};

impl KernelBuilder<'_> {
    /// Four elements of an input that does not lie as the outputs, from `base` of the outputs on. `stride` is the number of
    /// its first stride among the kernel's numbers, and moves behind its last.
    pub(crate) fn elsewhere(&mut self, binding: u32, base: Id, stride: &mut usize) -> Register {
        let dtype = self.dtypes[binding as usize];
        let layout = self.layout;
        match &layout.accesses[binding as usize] {
            Access::Column(walk) => {
                let base = self.held(base);
                let index = self.index(base, walk, stride, false);
                self.same(binding, dtype, index)
            }
            Access::Row(walk) => {
                let base = self.held(base);
                let index = self.index(base, walk, stride, false);
                self.row(binding, dtype, index)
            }
            Access::Gather(walk) => {
                let places = self.places(base);
                let index = self.index(places, walk, stride, true);
                gather(&mut self.lanes, &self.buffers, binding, dtype, index)
            }
            Access::Single | Access::Linear => {
                let zero = self.lanes.word(0);
                self.same(binding, dtype, zero)
            }
        }
    }

    /// The number of the first of four elements, held below the number of elements: where rows are whole, four that begin
    /// behind the end are not stored, but must not be read from there either.
    fn held(&mut self, base: Id) -> Id {
        if self.quads == 1 || !self.has_tail {
            return base;
        }
        let four = self.lanes.word(4);
        let last = self.lanes.scalar(Op::ISub, &[self.numbers[0], four]);
        let ty = self.lanes.u32_scalar();
        self.lanes.asm.ext(GlslStd450Op::UMin, ty, &[base, last])
    }

    /// Four neighbours.
    fn row(&mut self, binding: u32, dtype: DType, index: Id) -> Register {
        let width = width_of(dtype);
        // An index of elements is four for each quad; an index of vectors one, or two for 64 bits.
        let shift = self.lanes.word(if words_of(dtype) > width { 1 } else { 2 });
        let first = self.lanes.scalar(Op::ShiftRightLogical, &[index, shift]);
        let vectors: Vec<Id> = (0..words_of(dtype) / width)
            .map(|part| {
                let part = self.lanes.word(part);
                let place = self.lanes.scalar(Op::IAdd, &[first, part]);
                self.buffers.load(&mut self.lanes, binding, width, place)
            })
            .collect();
        unpack(&mut self.lanes, dtype, &vectors)
    }

    /// Numbers of the four elements, those behind the last being the last.
    fn places(&mut self, base: Id) -> Id {
        let first = self.lanes.splat(base);
        let offsets = self.lanes.four([0, 1, 2, 3]);
        let all = self.lanes.uadd(first, offsets);
        let one = self.lanes.word(1);
        let last = self.lanes.scalar(Op::ISub, &[self.numbers[0], one]);
        let last = self.lanes.splat(last);
        self.lanes.uext(GlslStd450Op::UMin, &[all, last])
    }

    /// A high word, shifted: the quotient of `rest`, which is the number itself where the divisor may be 1 and is.
    fn shifted(&mut self, [rest, high, shift]: [Id; 3], may_be_one: bool, each: bool) -> Id {
        let operation = |kernel: &mut Self, op, a: Id, b: Id| {
            if each { kernel.lanes.uop(op, &[a, b]) } else { kernel.lanes.scalar(op, &[a, b]) }
        };
        if !may_be_one {
            return operation(self, Op::ShiftRightLogical, high, shift);
        }
        let word = |kernel: &mut Self, value: u32| {
            let word = kernel.lanes.word(value);
            if each { kernel.lanes.splat(word) } else { word }
        };
        let (mask, five) = (word(self, 31), word(self, 5));
        let amount = operation(self, Op::BitwiseAnd, shift, mask);
        let is_one = operation(self, Op::ShiftRightLogical, shift, five);
        let divided = operation(self, Op::ShiftRightLogical, high, amount);
        let whole = operation(self, Op::IMul, rest, is_one);
        operation(self, Op::IAdd, divided, whole)
    }

    /// The index into an input of the element or, when `each`, elements at `place` of the output. Walks backwards wrap.
    fn index(&mut self, place: Id, walk: &Walk, stride: &mut usize, each: bool) -> Id {
        let operation = |kernel: &mut Self, op, a: Id, b: Id| {
            if each { kernel.lanes.uop(op, &[a, b]) } else { kernel.lanes.scalar(op, &[a, b]) }
        };
        let number = |kernel: &mut Self, index: usize| {
            let number = kernel.numbers[index];
            if each { kernel.lanes.splat(number) } else { number }
        };
        let strides = &walk.strides;
        let mut coordinates = Vec::with_capacity(strides.len());
        let mut rest = place;
        for dim in (1..strides.len()).rev() {
            let [size, factor, shift] = [0, 1, 2].map(|part| number(self, 2 + 3 * (dim - 1) + part));
            let high = self.high_word(rest, factor, each);
            let quotient = self.shifted([rest, high, shift], may_be_one(self.layout.dims[dim]), each);
            let whole = operation(self, Op::IMul, quotient, size);
            coordinates.push(operation(self, Op::ISub, rest, whole));
            rest = quotient;
        }
        coordinates.push(rest);
        coordinates.reverse();
        let mut index: Option<Id> = None;
        for (coordinate, _) in coordinates.iter().zip(strides).filter(|(_, stride)| **stride != 0) {
            let factor = number(self, *stride);
            *stride += 1;
            let part = operation(self, Op::IMul, *coordinate, factor);
            index = Some(match index {
                Some(sum) => operation(self, Op::IAdd, sum, part),
                None => part,
            });
        }
        if walk.is_at_start() {
            return index.unwrap_or(place);
        }
        let first = number(self, *stride);
        *stride += 1;
        match index {
            Some(index) => operation(self, Op::IAdd, index, first),
            None => first,
        }
    }

    fn high_word(&mut self, a: Id, b: Id, each: bool) -> Id {
        if each {
            return self.lanes.product(a, b).1;
        }
        let word = self.lanes.u32_scalar();
        let both = self.lanes.asm.ty(Op::TypeStruct, &[word.0, word.0]);
        let product = self.lanes.asm.pure(Op::UMulExtended, both, &[a.0, b.0]);
        self.lanes.asm.pure(Op::CompositeExtract, word, &[product.0, 1])
    }

    /// One element four times.
    fn same(&mut self, binding: u32, dtype: DType, index: Id) -> Register {
        if dtype.size() == 8 {
            let one = self.lanes.word(1);
            let low = self.lanes.scalar(Op::ShiftLeftLogical, &[index, one]);
            let high = self.lanes.scalar(Op::BitwiseOr, &[low, one]);
            let [low, high] = [low, high].map(|place| self.buffers.load(&mut self.lanes, binding, 1, place));
            let [low, high] = [low, high].map(|word| self.lanes.splat(word));
            return unpack_pair(&mut self.lanes, dtype, low, high);
        }
        let (place, shift) = (word_of(&mut self.lanes, index, dtype), self.lanes.splat(index));
        let word = self.buffers.load(&mut self.lanes, binding, 1, place);
        let words = self.lanes.splat(word);
        let shifts = shifts(&mut self.lanes, shift, dtype);
        unpack_each(&mut self.lanes, dtype, words, shifts)
    }
}
