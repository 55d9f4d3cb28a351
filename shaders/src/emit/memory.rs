//! Reading and writing four elements of any type: buffers of words, and the elements in words.
//!
//! A buffer is declared as an array of `uint`, `uvec2` or `uvec4`, or as two of them that alias, so that no device needs
//! 8-bit, 16-bit or 64-bit storage. Four elements are 1, 2, 4 or 8 words.

use std::collections::BTreeMap;

use halite_ops::DType;
use spirv::{Decoration, Op, StorageClass};

use halite_spirv::Id;

use super::lanes::{LANES, Lanes, Register};

/// The buffers of a kernel: set 0, binding n is tensor n, inputs before tables and these before results.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    views: BTreeMap<(u32, u32), Id>,
    /// Struct types by words of an element and whether only read.
    blocks: BTreeMap<(u32, bool), Id>,
    /// Bindings that are only read are those below.
    pub(crate) inputs: u32,
}

impl Buffers {
    /// Declares the views that a kernel needs: of each binding, the numbers of words of an element.
    pub(crate) fn declare(&mut self, lanes: &mut Lanes, binding: u32, widths: &[u32]) {
        for width in widths {
            let block = self.block(lanes, *width, binding < self.inputs);
            let pointer = lanes.asm.ty(Op::TypePointer, &[StorageClass::StorageBuffer as u32, block.0]);
            let variable = lanes.asm.variable(pointer, StorageClass::StorageBuffer);
            lanes.asm.decorate(variable, Decoration::DescriptorSet, &[0]);
            lanes.asm.decorate(variable, Decoration::Binding, &[binding]);
            if widths.len() > 1 {
                lanes.asm.decorate(variable, Decoration::Aliased, &[]);
            }
            self.views.insert((binding, *width), variable);
        }
    }

    fn block(&mut self, lanes: &mut Lanes, width: u32, readonly: bool) -> Id {
        if let Some(block) = self.blocks.get(&(width, readonly)) {
            return *block;
        }
        let element = lanes.words_type(width);
        let array = lanes.asm.own_type(Op::TypeRuntimeArray, &[element.0]);
        lanes.asm.decorate(array, Decoration::ArrayStride, &[width * 4]);
        let block = lanes.asm.own_type(Op::TypeStruct, &[array.0]);
        lanes.asm.decorate(block, Decoration::Block, &[]);
        lanes.asm.decorate_member(block, 0, Decoration::Offset, &[0]);
        if readonly {
            lanes.asm.decorate_member(block, 0, Decoration::NonWritable, &[]);
        }
        self.blocks.insert((width, readonly), block);
        block
    }

    fn pointer(&self, lanes: &mut Lanes, binding: u32, width: u32, index: Id) -> Id {
        let variable = self.views[&(binding, width)];
        let element = lanes.words_type(width);
        let pointer = lanes.asm.ty(Op::TypePointer, &[StorageClass::StorageBuffer as u32, element.0]);
        let zero = lanes.word(0);
        lanes.asm.pure(Op::AccessChain, pointer, &[variable.0, zero.0, index.0])
    }

    /// The element at `index` of the view with `width` words in an element.
    pub(crate) fn load(&self, lanes: &mut Lanes, binding: u32, width: u32, index: Id) -> Id {
        let pointer = self.pointer(lanes, binding, width, index);
        let element = lanes.words_type(width);
        lanes.asm.effect(Op::Load, element, &[pointer.0])
    }

    /// Writes the element at `index` of the view with `width` words in an element.
    pub(crate) fn store(&self, lanes: &mut Lanes, binding: u32, width: u32, index: Id, value: Id) {
        let pointer = self.pointer(lanes, binding, width, index);
        lanes.asm.statement(Op::Store, &[pointer.0, value.0]);
    }
}

/// Four elements at `indices` of a tensor.
pub(crate) fn gather(
    lanes: &mut Lanes,
    buffers: &Buffers,
    binding: u32,
    dtype: DType,
    indices: Id,
) -> Register {
    let each = lanes.each_word(indices);
    let mut load = |place: &dyn Fn(&mut Lanes, Id) -> Id| {
        let words: Vec<u32> = each
            .iter()
            .map(|index| {
                let place = place(lanes, *index);
                buffers.load(lanes, binding, 1, place).0
            })
            .collect();
        let ty = lanes.words();
        lanes.asm.pure(Op::CompositeConstruct, ty, &words)
    };
    if dtype.size() == 8 {
        let part = |lanes: &mut Lanes, index: Id, part: u32| {
            let [two, part] = [lanes.word(2), lanes.word(part)];
            let first = lanes.scalar(Op::IMul, &[index, two]);
            lanes.scalar(Op::IAdd, &[first, part])
        };
        let low = load(&|lanes, index| part(lanes, index, 0));
        let high = load(&|lanes, index| part(lanes, index, 1));
        return unpack_pair(lanes, dtype, low, high);
    }
    let words = load(&|lanes, index| word_of(lanes, index, dtype));
    let shifts = shifts(lanes, indices, dtype);
    unpack_each(lanes, dtype, words, shifts)
}

/// The word that an element of at most 32 bits is in.
pub(crate) fn word_of(lanes: &mut Lanes, index: Id, dtype: DType) -> Id {
    let shift = match dtype.size() {
        1 => 2,
        2 => 1,
        _ => return index,
    };
    let shift = lanes.word(shift);
    lanes.scalar(Op::ShiftRightLogical, &[index, shift])
}

/// The bits of that word that elements begin at.
pub(crate) fn shifts(lanes: &mut Lanes, indices: Id, dtype: DType) -> Id {
    let (mask, shift) = match dtype.size() {
        1 => (3, 3),
        2 => (1, 4),
        _ => (0, 0),
    };
    let within = lanes.and(indices, mask);
    lanes.left(within, shift)
}

/// Words of four elements.
pub(crate) fn words_of(dtype: DType) -> u32 {
    dtype.size() as u32
}

/// Words of an element of the wide view of a tensor.
pub(crate) fn width_of(dtype: DType) -> u32 {
    words_of(dtype).min(4)
}

/// The four elements in the words of a wide load, of which 64-bit elements take two.
pub(crate) fn unpack(lanes: &mut Lanes, dtype: DType, vectors: &[Id]) -> Register {
    let first = vectors[0];
    match dtype.size() {
        1 => {
            let words = lanes.splat(first);
            let shifts = lanes.four([0, 8, 16, 24]);
            unpack_each(lanes, dtype, words, shifts)
        }
        2 => {
            let words = lanes.shuffle(first, first, [0, 0, 1, 1]);
            let shifts = lanes.four([0, 16, 0, 16]);
            unpack_each(lanes, dtype, words, shifts)
        }
        8 => {
            let second = vectors[1];
            let low = lanes.shuffle(first, second, [0, 2, 4, 6]);
            let high = lanes.shuffle(first, second, [1, 3, 5, 7]);
            unpack_pair(lanes, dtype, low, high)
        }
        _ if dtype == DType::F32 => Register::Float(lanes.of_bits(first)),
        _ => Register::Word(first),
    }
}

/// Four elements of 64 bits, of which there are the low and the high words.
pub(crate) fn unpack_pair(lanes: &mut Lanes, dtype: DType, low: Id, high: Id) -> Register {
    if dtype == DType::F64 {
        return Register::Float(lanes.of_f64_bits(low, high));
    }
    Register::Pair(low, high)
}

/// Four elements of at most 32 bits, each in a word of its own, from the bit `shifts` on.
pub(crate) fn unpack_each(lanes: &mut Lanes, dtype: DType, words: Id, shifts: Id) -> Register {
    match dtype {
        DType::F32 => return Register::Float(lanes.of_bits(words)),
        _ if dtype.size() > 2 => return Register::Word(words),
        _ => {}
    }
    let moved = lanes.uop(Op::ShiftRightLogical, &[words, shifts]);
    match dtype {
        DType::F16 => {
            let bits = lanes.and(moved, 0xFFFF);
            Register::Float(lanes.of_f16_bits(bits))
        }
        DType::BF16 => {
            let bits = lanes.left(moved, 16);
            Register::Float(lanes.of_bits(bits))
        }
        _ => Register::Word(lanes.wrapped(moved, dtype)),
    }
}

/// The words of a wide store of four values.
pub(crate) fn pack(lanes: &mut Lanes, dtype: DType, value: Register) -> Vec<Id> {
    match value {
        Register::Bool(x) => {
            let [one, zero] = [lanes.u(1), lanes.u(0)];
            let words = lanes.uselect(x, one, zero);
            vec![pack_bytes(lanes, words)]
        }
        Register::Pair(low, high) => pack_pair(lanes, low, high),
        Register::Float(x) if dtype == DType::F64 => {
            let (low, high) = lanes.f64_bits(x);
            pack_pair(lanes, low, high)
        }
        Register::Float(x) if dtype == DType::F32 => vec![lanes.bits(x)],
        Register::Float(x) if dtype == DType::F16 && lanes.float16 => vec![lanes.halves_of(x)],
        Register::Float(x) => {
            let halves = if dtype == DType::F16 { lanes.f16_bits(x) } else { lanes.bf16_bits(x) };
            vec![pack_halves(lanes, halves)]
        }
        Register::Word(x) if dtype.size() == 1 => vec![pack_bytes(lanes, x)],
        Register::Word(x) if dtype.size() == 2 => {
            let halves = lanes.and(x, 0xFFFF);
            vec![pack_halves(lanes, halves)]
        }
        Register::Word(x) => vec![x],
    }
}

/// Vectors of `to` words out of vectors of `from` words, which are fewer.
pub(crate) fn join(lanes: &mut Lanes, parts: &[Id], from: u32, to: u32) -> Vec<Id> {
    if from == to {
        return parts.to_vec();
    }
    let ty = lanes.words_type(to);
    let vector = |parts: &[Id]| {
        let parts: Vec<u32> = parts.iter().map(|id| id.0).collect();
        lanes.asm.pure(Op::CompositeConstruct, ty, &parts)
    };
    parts.chunks((to / from) as usize).map(vector).collect()
}

/// The words of quad `quad` out of vectors of `width` words that hold several quads.
pub(crate) fn split(lanes: &mut Lanes, vectors: &[Id], quad: u32, dtype: DType, width: u32) -> Vec<Id> {
    let count = words_of(dtype);
    let first = quad * count;
    match (count, width) {
        (1, 2..) => vec![lanes.extract(vectors[(first / width) as usize], first % width)],
        (2, 4) => {
            let vector = vectors[(first / 4) as usize];
            let ty = lanes.words_type(2);
            let place = first % 4;
            vec![lanes.asm.pure(Op::VectorShuffle, ty, &[vector.0, vector.0, place, place + 1])]
        }
        _ => vectors[(first / width) as usize..((first + count) / width) as usize].to_vec(),
    }
}

fn pack_pair(lanes: &mut Lanes, low: Id, high: Id) -> Vec<Id> {
    vec![lanes.shuffle(low, high, [0, 4, 1, 5]), lanes.shuffle(low, high, [2, 6, 3, 7])]
}

/// Two words of the four lower halves of words, whose upper halves are 0.
fn pack_halves(lanes: &mut Lanes, halves: Id) -> Id {
    let shifts = lanes.four([0, 16, 0, 16]);
    let moved = lanes.uop(Op::ShiftLeftLogical, &[halves, shifts]);
    let parts = lanes.each_word(moved);
    let first = lanes.scalar(Op::BitwiseOr, &[parts[0], parts[1]]);
    let second = lanes.scalar(Op::BitwiseOr, &[parts[2], parts[3]]);
    let ty = lanes.words_type(2);
    lanes.asm.pure(Op::CompositeConstruct, ty, &[first.0, second.0])
}

fn pack_bytes(lanes: &mut Lanes, words: Id) -> Id {
    let bytes = lanes.and(words, 0xFF);
    let shifts = lanes.four([0, 8, 16, 24]);
    let moved = lanes.uop(Op::ShiftLeftLogical, &[bytes, shifts]);
    let parts = lanes.each_word(moved);
    let mut word = parts[0];
    for part in &parts[1..LANES as usize] {
        word = lanes.scalar(Op::BitwiseOr, &[word, *part]);
    }
    word
}
