//! The kernel of an elementwise operation: which elements an invocation reads and writes.
//!
//! An invocation makes 4, 8 or 16 neighbours of each output, so that small elements are read in large vectors too. Where the
//! number of elements is no multiple of that, the last invocation reads and writes word by word, with indices held within the buffer. Numbers that depend on sizes are push constants, so the
//! code is the same for all shapes that are read in the same way; only when there are too many are they in the code.

use halite_ops::{
    DType,
    expression::{Expression, Type},
    runs::Runs,
};
use halite_sizes::{Size, is_worth};
use spirv::{BuiltIn, Decoration, Op, StorageClass};

use halite_spirv::Id;

use super::{
    lanes::{LANES, Lanes, Register},
    layout::{Access, Layout},
    lower::{Tables, lower},
    memory::{Buffers, join, pack, split, unpack, width_of, words_of},
};
use crate::divider::Divider;

/// Most push constants: what every Vulkan device has.
const MOST_PUSH: usize = 32;

/// How invocations are laid out, and what each does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Invocations in a workgroup.
    pub(crate) invocations: u32,
    /// Invocations in a row of the grid.
    pub(crate) row: Size,
    /// Times four elements of an invocation: 1, 2 or 4.
    pub(crate) quads: u32,
    /// Whether the device rounds to `f16`, by 16-bit float arithmetic.
    pub(crate) float16: bool,
    /// Runs of a larger tensor that the result is, in what an invocation makes.
    pub(crate) written: Option<Runs>,
}

/// A kernel's code and the push constants that it reads.
#[derive(Debug)]
pub(crate) struct Emitted {
    /// SPIR-V.
    pub(crate) words: Vec<u32>,
    /// Push constants.
    pub(crate) push: Vec<Size>,
}

/// The kernel of `expression` for inputs of types `dtypes`, and for tables of types and with numbers of entries.
///
/// # Errors
/// Says which function of which type is not there.
pub(crate) fn emit(
    expression: &Expression,
    types: &[Type],
    (dtypes, tables): (&[DType], &[(DType, Size)]),
    layout: &Layout,
    grid: &Grid,
) -> Result<Emitted, String> {
    let mut numbers = numbers(layout, grid.row);
    numbers
        .extend(grid.written.iter().flat_map(|runs| [runs.length, runs.pitch, runs.offset].map(Size::from)));
    let written = numbers.len();
    numbers.extend(tables.iter().map(|(_, entries)| *entries - 1));
    let in_push = numbers.len() <= MOST_PUSH;
    let mut lanes = Lanes { float16: grid.float16, ..Lanes::default() };
    let void = lanes.asm.ty(Op::TypeVoid, &[]);
    let signature = lanes.asm.ty(Op::TypeFunction, &[void.0]);
    let function = lanes.asm.effect(Op::Function, void, &[0, signature.0]);
    let entry = lanes.asm.reserve();
    lanes.asm.block(entry);
    let id = invocation(&mut lanes);
    let numbers_in_code = if in_push {
        push_constants(&mut lanes, numbers.len())
    } else {
        numbers.iter().map(|n| lanes.word(n.exact_word())).collect()
    };
    let lasts = &numbers_in_code[written..];
    let runs = grid.written.map(|_| [1, 2, 3].map(|back| numbers_in_code[written - back]));
    let tables = tables.iter().zip(lasts).map(|((dtype, _), last)| (*dtype, *last)).collect();
    let mut kernel = KernelBuilder {
        lanes,
        buffers: Buffers::default(),
        layout,
        dtypes,
        tables,
        numbers: numbers_in_code,
        quads: grid.quads,
        has_tail: !is_worth(|| layout.elements.is_multiple_of(LANES * grid.quads)),
        runs,
    };
    kernel.declare(expression);
    kernel.body(id, expression, types)?;
    let mut asm = kernel.lanes.asm;
    asm.statement(Op::Return, &[]);
    asm.statement(Op::FunctionEnd, &[]);
    Ok(Emitted {
        words: asm.finish(function, "main", [grid.invocations, 1, 1]),
        push: if in_push { numbers } else { Vec::new() },
    })
}

/// Elements, invocations in a row of the grid; then, if there are coordinates, (size, factor, shift) of each dimension but the
/// outermost; and for each input the strides that are not 0, and its first element if that is another than 0.
fn numbers(layout: &Layout, row: Size) -> Vec<Size> {
    let mut numbers = vec![layout.elements, row];
    if layout.has_coordinates() {
        for dim in &layout.dims[1..] {
            let Divider { factor, shift } = Divider::of(*dim);
            // Above the shift, whether it is 1, which no factor divides by.
            let is_one = match may_be_one(*dim) {
                true => Size::constant(1) - (*dim - 1).max(0).min(1),
                false => 0.into(),
            };
            numbers.extend([*dim, factor, shift + is_one * 32]);
        }
    }
    for access in &layout.accesses {
        if let Access::Row(walk) | Access::Column(walk) | Access::Gather(walk) = access {
            numbers.extend(walk.strides.iter().filter(|stride| **stride != 0));
            numbers.extend((!walk.is_at_start()).then_some(walk.offset));
        }
    }
    numbers
}

/// Whether data may decide that a size is 1.
pub(crate) fn may_be_one(size: Size) -> bool {
    size.is_data() && size.least() <= 1
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

/// A kernel in the making.
pub(crate) struct KernelBuilder<'a> {
    pub(crate) lanes: Lanes,
    pub(crate) buffers: Buffers,
    pub(crate) layout: &'a Layout,
    pub(crate) dtypes: &'a [DType],
    /// The type of each table, and the number of its last entry.
    pub(crate) tables: Vec<(DType, Id)>,
    /// The numbers of [`numbers`], and behind them those of `tables`.
    pub(crate) numbers: Vec<Id>,
    /// Times four elements of an invocation.
    pub(crate) quads: u32,
    /// Whether the elements of the last invocation may be fewer.
    pub(crate) has_tail: bool,
    /// Of what invocations make, where it is runs of a larger tensor: the place of the first, the distance of runs, and their length.
    pub(crate) runs: Option<[Id; 3]>,
}

impl KernelBuilder<'_> {
    /// Words of a tensor that lies as the outputs, for an invocation.
    fn words(&self, dtype: DType) -> u32 {
        words_of(dtype) * self.quads
    }

    /// Words of a vector of the view that they are read and written with.
    fn width(&self, dtype: DType) -> u32 {
        self.words(dtype).min(4)
    }

    fn declare(&mut self, expression: &Expression) {
        let tail = self.has_tail;
        let wide = |dtype: DType| {
            let width = self.width(dtype);
            if tail && width > 1 { vec![width, 1] } else { vec![width] }
        };
        let inputs = self.layout.accesses.iter().zip(self.dtypes).map(|(access, dtype)| match access {
            Access::Linear => wide(*dtype),
            Access::Row(_) => vec![width_of(*dtype)],
            Access::Single | Access::Column(_) | Access::Gather(_) => vec![1],
        });
        let tables = self.tables.iter().map(|_| vec![1]);
        let outputs = expression.outputs.iter().map(|output| wide(output.dtype));
        let all: Vec<Vec<u32>> = inputs.chain(tables).chain(outputs).collect();
        self.buffers.inputs = (self.dtypes.len() + self.tables.len()) as u32;
        for (binding, widths) in (0..).zip(all) {
            self.buffers.declare(&mut self.lanes, binding, &widths);
        }
    }

    fn body(&mut self, [x, y]: [Id; 2], expression: &Expression, types: &[Type]) -> Result<(), String> {
        let [elements, row] = [self.numbers[0], self.numbers[1]];
        let above = self.lanes.scalar(Op::IMul, &[y, row]);
        let own = self.lanes.scalar(Op::IAdd, &[x, above]);
        // Compared as numbers of invocations, lest the number of the first element overflow.
        let each = LANES * self.quads;
        let [rest, shift] = [self.lanes.word(each - 1), self.lanes.word(each.trailing_zeros())];
        let up = self.lanes.scalar(Op::IAdd, &[elements, rest]);
        let invocations = self.lanes.scalar(Op::ShiftRightLogical, &[up, shift]);
        let inside = self.lanes.test(Op::ULessThan, own, invocations);
        let branch = self.lanes.asm.begin_if(inside);
        let full = self.has_tail.then(|| {
            let whole = self.lanes.scalar(Op::ShiftRightLogical, &[elements, shift]);
            self.lanes.test(Op::ULessThan, own, whole)
        });
        let linear = self.linear(own, full);
        let base = self.lanes.scalar(Op::ShiftLeftLogical, &[own, shift]);
        let mut packed: Vec<Vec<Id>> = vec![Vec::new(); expression.outputs.len()];
        for quad in 0..self.quads {
            let inputs = self.inputs(quad, base, &linear);
            let first = self.dtypes.len() as u32;
            let tables = Tables { buffers: &self.buffers, first, tables: &self.tables };
            let results = lower(&mut self.lanes, expression, types, self.dtypes, &inputs, &tables)?;
            for ((parts, output), value) in packed.iter_mut().zip(&expression.outputs).zip(results) {
                parts.extend(pack(&mut self.lanes, output.dtype, value));
            }
        }
        let stored: Vec<(u32, DType, Vec<Id>)> = (self.buffers.inputs..)
            .zip(&expression.outputs)
            .zip(packed)
            .map(|((binding, output), parts)| {
                let width = self.width(output.dtype);
                let vectors = join(&mut self.lanes, &parts, width_of(output.dtype), width);
                (binding, output.dtype, vectors)
            })
            .collect();
        let to = self.run_place(own);
        self.store(to, full, &stored);
        self.lanes.asm.end_if(branch);
        Ok(())
    }

    /// The four elements of each input for one of an invocation's quads.
    fn inputs(&mut self, quad: u32, base: Id, linear: &[Vec<Id>]) -> Vec<Register> {
        let (layout, dtypes) = (self.layout, self.dtypes);
        let offset = self.lanes.word(quad * LANES);
        let base = self.lanes.scalar(Op::IAdd, &[base, offset]);
        let mut stride = 2 + if layout.has_coordinates() { 3 * (layout.dims.len() - 1) } else { 0 };
        let mut register = |(binding, (access, dtype)): (u32, (&Access, &DType))| {
            if *access != Access::Linear {
                return self.elsewhere(binding, base, &mut stride);
            }
            let width = self.width(*dtype);
            let part = split(&mut self.lanes, &linear[binding as usize], quad, *dtype, width);
            unpack(&mut self.lanes, *dtype, &part)
        };
        (0..).zip(layout.accesses.iter().zip(dtypes)).map(&mut register).collect()
    }

    /// The words of the inputs that lie as the outputs, for all of an invocation's quads; none of the others.
    fn linear(&mut self, own: Id, full: Option<Id>) -> Vec<Vec<Id>> {
        let (layout, dtypes) = (self.layout, self.dtypes);
        let load = |kernel: &mut Self, whole: bool| -> Vec<Vec<Id>> {
            let mut loaded = vec![Vec::new(); dtypes.len()];
            for (binding, dtype) in dtypes.iter().enumerate() {
                if layout.accesses[binding] == Access::Linear {
                    loaded[binding] = kernel.load(binding as u32, *dtype, own, whole);
                }
            }
            loaded
        };
        let Some(full) = full else { return load(self, true) };
        if !layout.accesses.contains(&Access::Linear) {
            return vec![Vec::new(); dtypes.len()];
        }
        let mut branch = self.lanes.asm.begin_if(full);
        let whole = load(self, true);
        self.lanes.asm.otherwise(&mut branch);
        let rest = load(self, false);
        let ends = self.lanes.asm.end_if(branch);
        let mut join = |dtype: DType, a: Vec<Id>, b: Vec<Id>| -> Vec<Id> {
            let ty = self.lanes.words_type(self.words(dtype).min(4));
            a.into_iter().zip(b).map(|pair| self.lanes.asm.phi(ty, pair, ends)).collect()
        };
        whole.into_iter().zip(rest).zip(dtypes).map(|((a, b), dtype)| join(*dtype, a, b)).collect()
    }

    /// The words of an invocation's elements, as vectors; when not `whole`, read one by one, those behind the tensor being
    /// its last.
    fn load(&mut self, binding: u32, dtype: DType, own: Id, whole: bool) -> Vec<Id> {
        let (count, width) = (self.words(dtype), self.width(dtype));
        if whole {
            let place = |kernel: &mut Self, part| kernel.place(own, count / width, part);
            return (0..count / width)
                .map(|part| {
                    let place = place(self, part);
                    self.buffers.load(&mut self.lanes, binding, width, place)
                })
                .collect();
        }
        let total = self.total_words(dtype);
        let one = self.lanes.word(1);
        let last = self.lanes.scalar(Op::ISub, &[total, one]);
        let words: Vec<Id> = (0..count)
            .map(|part| {
                let place = self.place(own, count, part);
                let ty = self.lanes.u32_scalar();
                let place = self.lanes.asm.ext(spirv::GlslStd450Op::UMin, ty, &[place, last]);
                self.buffers.load(&mut self.lanes, binding, 1, place)
            })
            .collect();
        join(&mut self.lanes, &words, 1, width)
    }

    /// `own * count + part`.
    pub(crate) fn place(&mut self, own: Id, count: u32, part: u32) -> Id {
        let [count, part] = [self.lanes.word(count), self.lanes.word(part)];
        let first = self.lanes.scalar(Op::IMul, &[own, count]);
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

    /// Where in the outputs what an invocation makes is stored.
    fn run_place(&mut self, own: Id) -> Id {
        let Some([first, pitch, length]) = self.runs else { return own };
        let run = self.lanes.scalar(Op::UDiv, &[own, length]);
        let above = self.lanes.scalar(Op::IMul, &[run, length]);
        let within = self.lanes.scalar(Op::ISub, &[own, above]);
        let begin = self.lanes.scalar(Op::IMul, &[run, pitch]);
        let place = self.lanes.scalar(Op::IAdd, &[begin, within]);
        self.lanes.scalar(Op::IAdd, &[place, first])
    }

    /// Writes the words of an invocation's elements of each output.
    fn store(&mut self, own: Id, full: Option<Id>, stored: &[(u32, DType, Vec<Id>)]) {
        let branch = full.map(|full| self.lanes.asm.begin_if(full));
        for (binding, dtype, vectors) in stored {
            let (count, width) = (self.words(*dtype), self.width(*dtype));
            for (part, vector) in (0..).zip(vectors) {
                let place = self.place(own, count / width, part);
                self.buffers.store(&mut self.lanes, *binding, width, place, *vector);
            }
        }
        let Some(mut branch) = branch else { return };
        self.lanes.asm.otherwise(&mut branch);
        for (binding, dtype, vectors) in stored {
            let (count, width) = (self.words(*dtype), self.width(*dtype));
            let total = self.total_words(*dtype);
            for part in 0..count {
                let vector = vectors[(part / width) as usize];
                let word = if width == 1 { vector } else { self.lanes.extract(vector, part % width) };
                let place = self.place(own, count, part);
                let inside = self.lanes.test(Op::ULessThan, place, total);
                let branch = self.lanes.asm.begin_if(inside);
                self.buffers.store(&mut self.lanes, *binding, 1, place, word);
                self.lanes.asm.end_if(branch);
            }
        }
        self.lanes.asm.end_if(branch);
    }
}
