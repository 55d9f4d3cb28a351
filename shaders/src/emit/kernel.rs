//! Owns the kernel of an elementwise operation: which elements an invocation reads and writes. Does not own: what it
//! computes of them (`lower`), or how elements lie in words (`memory`).
//!
//! An invocation makes four neighbours of each output. Where their number is no multiple of four, the last invocation reads
//! and writes word by word, with indices held within the buffer. Numbers that depend on sizes are push constants, so the
//! code is the same for all shapes that are read in the same way; only when there are too many are they in the code.

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use super::{
    assembler::Id,
    expression::Expression,
    function::Type,
    lanes::{LANES, Lanes, Register},
    layout::{Access, Layout, divider},
    lower::lower,
    memory::{Buffers, pack, unpack, unpack_each, width_of, words_of},
};
use crate::DType;

/// Most push constants: what every Vulkan device has.
const MOST_PUSH: usize = 32;

/// A kernel's code and the push constants that it reads.
#[derive(Debug)]
pub(crate) struct Emitted {
    /// SPIR-V.
    pub(crate) words: Vec<u32>,
    /// Push constants.
    pub(crate) push: Vec<u32>,
}

/// The kernel of `expression` for inputs of types `dtypes`; `invocations` in a workgroup, `row` in a row of the grid.
///
/// # Errors
/// Says which function of which type is not there.
pub(crate) fn emit(
    expression: &Expression,
    types: &[Type],
    dtypes: &[DType],
    layout: &Layout,
    invocations: u32,
    row: u32,
) -> Result<Emitted, String> {
    let numbers = numbers(layout, row);
    let in_push = numbers.len() <= MOST_PUSH;
    let mut lanes = Lanes::default();
    let void = lanes.asm.ty(Op::TypeVoid, &[]);
    let signature = lanes.asm.ty(Op::TypeFunction, &[void.0]);
    let function = lanes.asm.effect(Op::Function, void, &[0, signature.0]);
    let entry = lanes.asm.reserve();
    lanes.asm.block(entry);
    let id = invocation(&mut lanes);
    let numbers_in_code = if in_push {
        push_constants(&mut lanes, numbers.len())
    } else {
        numbers.iter().map(|n| lanes.word(*n)).collect()
    };
    let mut kernel = Kernel { lanes, buffers: Buffers::default(), layout, dtypes, numbers: numbers_in_code };
    kernel.declare(expression);
    kernel.body(id, expression, types)?;
    let mut asm = kernel.lanes.asm;
    asm.statement(Op::Return, &[]);
    asm.statement(Op::FunctionEnd, &[]);
    Ok(Emitted { words: asm.finish(function, invocations), push: if in_push { numbers } else { Vec::new() } })
}

/// Elements, invocations in a row of the grid; then, if there are coordinates, (size, factor, shift) of each dimension but the
/// outermost, and the strides that are not 0.
fn numbers(layout: &Layout, row: u32) -> Vec<u32> {
    let mut numbers = vec![layout.elements, row];
    if layout.has_coordinates() {
        for dim in &layout.dims[1..] {
            let [factor, shift] = divider(*dim);
            numbers.extend([*dim, factor, shift]);
        }
    }
    for access in &layout.accesses {
        if let Access::Row(strides) | Access::Column(strides) | Access::Gather(strides) = access {
            numbers.extend(strides.iter().filter(|s| **s != 0));
        }
    }
    numbers
}

/// x and y of the invocation.
fn invocation(lanes: &mut Lanes) -> [Id; 2] {
    let vector = lanes.words_type(3);
    let pointer = lanes.asm.ty(Op::TypePointer, &[StorageClass::Input as u32, vector.0]);
    let variable = lanes.asm.variable(pointer, StorageClass::Input);
    lanes.asm.decorate(variable, Decoration::BuiltIn, &[BuiltIn::GlobalInvocationId as u32]);
    let id = lanes.asm.effect(Op::Load, vector, &[variable.0]);
    [lanes.extract(id, 0), lanes.extract(id, 1)]
}

/// Declares and reads push constants.
fn push_constants(lanes: &mut Lanes, count: usize) -> Vec<Id> {
    let word = lanes.u32_scalar();
    let block = lanes.asm.own_type(Op::TypeStruct, &vec![word.0; count]);
    lanes.asm.decorate(block, Decoration::Block, &[]);
    let indices: Vec<u32> = (0..).take(count).collect();
    for index in &indices {
        lanes.asm.decorate_member(block, *index, Decoration::Offset, &[index * 4]);
    }
    let class = StorageClass::PushConstant;
    let pointer = lanes.asm.ty(Op::TypePointer, &[class as u32, block.0]);
    let member = lanes.asm.ty(Op::TypePointer, &[class as u32, word.0]);
    let variable = lanes.asm.variable(pointer, class);
    let load = |index: &u32| {
        let place = lanes.word(*index);
        let pointer = lanes.asm.pure(Op::AccessChain, member, &[variable.0, place.0]);
        lanes.asm.effect(Op::Load, word, &[pointer.0])
    };
    indices.iter().map(load).collect()
}

struct Kernel<'a> {
    lanes: Lanes,
    buffers: Buffers,
    layout: &'a Layout,
    dtypes: &'a [DType],
    /// The numbers of [`numbers`].
    numbers: Vec<Id>,
}

impl Kernel<'_> {
    fn declare(&mut self, expression: &Expression) {
        let tail = self.layout.has_tail();
        let wide = |dtype: DType| {
            let width = width_of(dtype);
            if tail && width > 1 { vec![width, 1] } else { vec![width] }
        };
        self.buffers.inputs = self.dtypes.len() as u32;
        let inputs = self.layout.accesses.iter().zip(self.dtypes).map(|(access, dtype)| match access {
            Access::Linear => wide(*dtype),
            Access::Row(_) => vec![width_of(*dtype)],
            Access::Single | Access::Column(_) | Access::Gather(_) => vec![1],
        });
        let outputs = expression.outputs.iter().map(|output| wide(output.dtype));
        for (binding, widths) in (0..).zip(inputs.chain(outputs)) {
            self.buffers.declare(&mut self.lanes, binding, &widths);
        }
    }

    fn body(&mut self, [x, y]: [Id; 2], expression: &Expression, types: &[Type]) -> Result<(), String> {
        let [elements, row] = [self.numbers[0], self.numbers[1]];
        let above = self.lanes.scalar(Op::IMul, &[y, row]);
        let quad = self.lanes.scalar(Op::IAdd, &[x, above]);
        let two = self.lanes.word(2);
        // Compared as numbers of four, lest the number of the first element overflow.
        let three = self.lanes.word(3);
        let up = self.lanes.scalar(Op::IAdd, &[elements, three]);
        let quads = self.lanes.scalar(Op::ShiftRightLogical, &[up, two]);
        let inside = self.lanes.test(Op::ULessThan, quad, quads);
        let branch = self.lanes.asm.begin_if(inside);
        let base = self.lanes.scalar(Op::ShiftLeftLogical, &[quad, two]);
        let full = self.layout.has_tail().then(|| {
            let whole = self.lanes.scalar(Op::ShiftRightLogical, &[elements, two]);
            self.lanes.test(Op::ULessThan, quad, whole)
        });
        let inputs = self.inputs(quad, base, full);
        let results = lower(&mut self.lanes, expression, types, self.dtypes, &inputs)?;
        let packed: Vec<(u32, DType, Vec<Id>)> = (self.buffers.inputs..)
            .zip(&expression.outputs)
            .zip(results)
            .map(|((binding, output), value)| {
                (binding, output.dtype, pack(&mut self.lanes, output.dtype, value))
            })
            .collect();
        self.store(quad, full, &packed);
        self.lanes.asm.end_if(branch);
        Ok(())
    }

    /// The four elements of each input.
    fn inputs(&mut self, quad: Id, base: Id, full: Option<Id>) -> Vec<Register> {
        let linear = self.linear(quad, full);
        let layout = self.layout;
        let mut stride = 2 + if layout.has_coordinates() { 3 * (layout.dims.len() - 1) } else { 0 };
        let mut registers = Vec::new();
        for (binding, (access, dtype)) in (0..).zip(layout.accesses.iter().zip(self.dtypes)) {
            let register = match access {
                Access::Linear => unpack(&mut self.lanes, *dtype, &linear[binding as usize]),
                Access::Single => {
                    let zero = self.lanes.word(0);
                    self.same(binding, *dtype, zero)
                }
                Access::Column(strides) => {
                    let index = self.index(base, strides, &mut stride, false);
                    self.same(binding, *dtype, index)
                }
                Access::Row(strides) => {
                    let index = self.index(base, strides, &mut stride, false);
                    let two = self.lanes.word(2);
                    let quad = self.lanes.scalar(Op::ShiftRightLogical, &[index, two]);
                    let vectors = self.wide(binding, *dtype, quad);
                    unpack(&mut self.lanes, *dtype, &vectors)
                }
                Access::Gather(strides) => {
                    let places = self.places(base);
                    let index = self.index(places, strides, &mut stride, true);
                    self.gather(binding, *dtype, index)
                }
            };
            registers.push(register);
        }
        registers
    }

    /// The words of the inputs that lie as the outputs; none of the others.
    fn linear(&mut self, quad: Id, full: Option<Id>) -> Vec<Vec<Id>> {
        let all: Vec<(u32, DType)> = (0..).zip(self.dtypes.iter().copied()).collect();
        let (layout, dtypes) = (self.layout, self.dtypes);
        let is_linear = |binding: u32| layout.accesses[binding as usize] == Access::Linear;
        let none = vec![Vec::new(); dtypes.len()];
        let load = |kernel: &mut Self, whole: bool| -> Vec<Vec<Id>> {
            let mut loaded = none.clone();
            for (binding, dtype) in all.iter().filter(|(binding, _)| is_linear(*binding)) {
                loaded[*binding as usize] = if whole {
                    kernel.wide(*binding, *dtype, quad)
                } else {
                    kernel.word_by_word(*binding, *dtype, quad)
                };
            }
            loaded
        };
        let Some(full) = full else { return load(self, true) };
        if !all.iter().any(|(binding, _)| is_linear(*binding)) {
            return none;
        }
        let mut branch = self.lanes.asm.begin_if(full);
        let whole = load(self, true);
        self.lanes.asm.otherwise(&mut branch);
        let rest = load(self, false);
        let ends = self.lanes.asm.end_if(branch);
        let mut join = |dtype: DType, a: Vec<Id>, b: Vec<Id>| -> Vec<Id> {
            let ty = self.lanes.words_type(width_of(dtype));
            a.into_iter().zip(b).map(|pair| self.lanes.asm.phi(ty, pair, ends)).collect()
        };
        whole.into_iter().zip(rest).zip(dtypes).map(|((a, b), dtype)| join(*dtype, a, b)).collect()
    }

    /// The words of four elements, as the wide view has them.
    fn wide(&mut self, binding: u32, dtype: DType, quad: Id) -> Vec<Id> {
        let width = width_of(dtype);
        let places = self.wide_places(dtype, quad);
        places.into_iter().map(|place| self.buffers.load(&mut self.lanes, binding, width, place)).collect()
    }

    /// Indices into the wide view: one, or two for 64-bit elements.
    fn wide_places(&mut self, dtype: DType, quad: Id) -> Vec<Id> {
        if words_of(dtype) <= LANES {
            return vec![quad];
        }
        let one = self.lanes.word(1);
        let first = self.lanes.scalar(Op::ShiftLeftLogical, &[quad, one]);
        vec![first, self.lanes.scalar(Op::BitwiseOr, &[first, one])]
    }

    /// The same words, read one by one; those behind the tensor are its last.
    fn word_by_word(&mut self, binding: u32, dtype: DType, quad: Id) -> Vec<Id> {
        let (count, width) = (words_of(dtype), width_of(dtype));
        let total = self.total_words(dtype);
        let one = self.lanes.word(1);
        let last = self.lanes.scalar(Op::ISub, &[total, one]);
        let words: Vec<Id> = (0..count)
            .map(|part| {
                let place = self.word_place(quad, count, part);
                let ty = self.lanes.u32_scalar();
                let place = self.lanes.asm.ext(spirv::GlslStd450Op::UMin, ty, &[place, last]);
                self.buffers.load(&mut self.lanes, binding, 1, place)
            })
            .collect();
        if width == 1 {
            return words;
        }
        let ty = self.lanes.words_type(width);
        let vector = |parts: &[Id]| {
            let parts: Vec<u32> = parts.iter().map(|id| id.0).collect();
            self.lanes.asm.pure(Op::CompositeConstruct, ty, &parts)
        };
        words.chunks(width as usize).map(vector).collect()
    }

    /// Index of a word of four elements.
    fn word_place(&mut self, quad: Id, count: u32, part: u32) -> Id {
        let [count, part] = [self.lanes.word(count), self.lanes.word(part)];
        let first = self.lanes.scalar(Op::IMul, &[quad, count]);
        self.lanes.scalar(Op::IAdd, &[first, part])
    }

    /// Words of a tensor with as many elements as the outputs.
    fn total_words(&mut self, dtype: DType) -> Id {
        let elements = self.numbers[0];
        let (add, op, shift) = match dtype.size() {
            1 => (3, Op::ShiftRightLogical, 2),
            2 => (1, Op::ShiftRightLogical, 1),
            8 => (0, Op::ShiftLeftLogical, 1),
            _ => return elements,
        };
        let [add, shift] = [self.lanes.word(add), self.lanes.word(shift)];
        let sum = self.lanes.scalar(Op::IAdd, &[elements, add]);
        self.lanes.scalar(op, &[sum, shift])
    }

    /// Writes the words of four elements of each output.
    fn store(&mut self, quad: Id, full: Option<Id>, packed: &[(u32, DType, Vec<Id>)]) {
        let branch = full.map(|full| self.lanes.asm.begin_if(full));
        for (binding, dtype, vectors) in packed {
            let places = self.wide_places(*dtype, quad);
            for (place, vector) in places.into_iter().zip(vectors) {
                self.buffers.store(&mut self.lanes, *binding, width_of(*dtype), place, *vector);
            }
        }
        let Some(mut branch) = branch else { return };
        self.lanes.asm.otherwise(&mut branch);
        for (binding, dtype, vectors) in packed {
            let (count, width) = (words_of(*dtype), width_of(*dtype));
            let total = self.total_words(*dtype);
            for part in 0..count {
                let vector = vectors[(part / width) as usize];
                let word = if width == 1 { vector } else { self.lanes.extract(vector, part % width) };
                let place = self.word_place(quad, count, part);
                let inside = self.lanes.test(Op::ULessThan, place, total);
                let own = self.lanes.asm.begin_if(inside);
                self.buffers.store(&mut self.lanes, *binding, 1, place, word);
                self.lanes.asm.end_if(own);
            }
        }
        self.lanes.asm.end_if(branch);
    }

    /// Numbers of the four elements, those behind the last being the last.
    fn places(&mut self, base: Id) -> Id {
        let first = self.lanes.splat(base);
        let offsets = self.lanes.four([0, 1, 2, 3]);
        let all = self.lanes.uadd(first, offsets);
        let one = self.lanes.word(1);
        let last = self.lanes.scalar(Op::ISub, &[self.numbers[0], one]);
        let last = self.lanes.splat(last);
        self.lanes.uext(spirv::GlslStd450Op::UMin, &[all, last])
    }

    /// The index into an input of the element or, when `each`, elements at `place` of the output. `stride` is the number of
    /// its first stride among the kernel's numbers, and moves behind its last.
    fn index(&mut self, place: Id, strides: &[u32], stride: &mut usize, each: bool) -> Id {
        let operation = |kernel: &mut Self, op, a: Id, b: Id| {
            if each { kernel.lanes.uop(op, &[a, b]) } else { kernel.lanes.scalar(op, &[a, b]) }
        };
        let number = |kernel: &mut Self, index: usize| {
            let number = kernel.numbers[index];
            if each { kernel.lanes.splat(number) } else { number }
        };
        let mut coordinates = Vec::with_capacity(strides.len());
        let mut rest = place;
        for dim in (1..strides.len()).rev() {
            let [size, factor, shift] = [0, 1, 2].map(|part| number(self, 2 + 3 * (dim - 1) + part));
            let high = self.high_word(rest, factor, each);
            let sum = operation(self, Op::IAdd, high, rest);
            let quotient = operation(self, Op::ShiftRightLogical, sum, shift);
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
        index.unwrap_or(place)
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
        if dtype == DType::I64 {
            let one = self.lanes.word(1);
            let low = self.lanes.scalar(Op::ShiftLeftLogical, &[index, one]);
            let high = self.lanes.scalar(Op::BitwiseOr, &[low, one]);
            let [low, high] = [low, high].map(|place| self.buffers.load(&mut self.lanes, binding, 1, place));
            return Register::Pair(self.lanes.splat(low), self.lanes.splat(high));
        }
        let (place, shift) = (self.word_of(index, dtype), self.lanes.splat(index));
        let word = self.buffers.load(&mut self.lanes, binding, 1, place);
        let words = self.lanes.splat(word);
        let shifts = self.shifts(shift, dtype);
        unpack_each(&mut self.lanes, dtype, words, shifts)
    }

    /// Four elements.
    fn gather(&mut self, binding: u32, dtype: DType, indices: Id) -> Register {
        let each = self.lanes.each_word(indices);
        let ty = self.lanes.words();
        let mut load = |place: &dyn Fn(&mut Self, Id) -> Id| {
            let words: Vec<u32> = each
                .iter()
                .map(|index| {
                    let place = place(self, *index);
                    self.buffers.load(&mut self.lanes, binding, 1, place).0
                })
                .collect();
            self.lanes.asm.pure(Op::CompositeConstruct, ty, &words)
        };
        if dtype == DType::I64 {
            let part = |kernel: &mut Self, index: Id, part: u32| kernel.word_place(index, 2, part);
            let low = load(&|kernel, index| part(kernel, index, 0));
            let high = load(&|kernel, index| part(kernel, index, 1));
            return Register::Pair(low, high);
        }
        let words = load(&|kernel, index| kernel.word_of(index, dtype));
        let shifts = self.shifts(indices, dtype);
        unpack_each(&mut self.lanes, dtype, words, shifts)
    }

    /// The word that an element of at most 32 bits is in.
    fn word_of(&mut self, index: Id, dtype: DType) -> Id {
        let shift = match dtype.size() {
            1 => 2,
            2 => 1,
            _ => return index,
        };
        let shift = self.lanes.word(shift);
        self.lanes.scalar(Op::ShiftRightLogical, &[index, shift])
    }

    /// The bits of that word that elements begin at.
    fn shifts(&mut self, indices: Id, dtype: DType) -> Id {
        let (mask, shift) = match dtype.size() {
            1 => (3, 3),
            2 => (1, 4),
            _ => (0, 0),
        };
        let within = self.lanes.and(indices, mask);
        self.lanes.left(within, shift)
    }
}
