//! Finding the version for the sizes of the inputs at hand: a binary search in a sorted table.

use std::collections::BTreeSet;

use halite_abi::{Code as StatusCode, export, import::hal};
use halite_formats::vmfb::{Attr, requirement};
use halite_vm::{
    asm::{Label, Reg, reference},
    isa::Op,
};

use super::{call::convention, code::Code, module::Writer, refusal::refusal, table::Table};
use crate::{CompileError, Function, graph::Graph, plan::group::Groups};

/// What the search is written from.
pub struct Search<'a> {
    /// The function.
    pub function: &'a Function,
    /// Its versions with the same code.
    pub groups: &'a Groups,
    /// Their tables.
    pub tables: &'a [Option<Table>],
    /// Their functions.
    pub ordinals: &'a [u32],
}

/// A dimension of an input that versions differ in.
type Axis = (usize, usize);

/// Registers of the search.
struct Registers {
    low: Reg,
    high: Reg,
    middle: Reg,
    at: Reg,
    entry: Reg,
    sizes: Vec<Reg>,
    flag: Reg,
    keys: Reg,
    table: Reg,
}

impl Search<'_> {
    /// Writes the exported function that calls the version for its inputs.
    pub fn write(&self, writer: &mut Writer, name: &str, attrs: Vec<Attr>) -> Result<u32, CompileError> {
        let (axes, rows) = (self.axes(), self.rows());
        let graph = &self.function.versions[0];
        let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
        let arguments = inputs + export::FENCES;
        let mut code = Code::new(&convention(arguments, outputs), arguments as u16);
        code.requirements |= requirement::YIELD;
        let registers = Registers {
            low: code.pair(),
            high: code.pair(),
            middle: code.pair(),
            at: code.pair(),
            entry: code.pair(),
            sizes: axes.iter().map(|_| code.pair()).collect(),
            flag: code.word(),
            keys: code.reference(),
            table: code.reference(),
        };
        let results: Vec<Reg> = (0..outputs).map(|_| code.reference()).collect();
        let missing = code.label();
        self.sizes(writer, &mut code, &axes, &registers, missing);
        let keys = self.keys(&axes, &rows);
        let (stride, count) = (axes.len() as u64 + 2, keys.len() as u64);
        let bytes: Vec<u8> = keys.concat().iter().flat_map(|number| number.to_le_bytes()).collect();
        let data = writer.data(bytes);
        code.op(Op::ConstRefRodata, &[data.into(), registers.keys.into()]);
        search(&mut code, &registers, stride, count, missing);
        self.calls(writer, &mut code, &registers, stride, &results);
        code.block(missing);
        code.fail_with(StatusCode::InvalidArgument, &refusal(self.function));
        writer.reflected_function(name, true, code, attrs)
    }

    /// Group and row of each version.
    fn rows(&self) -> Vec<(usize, usize)> {
        let mut rows = vec![(0, 0); self.function.versions.len()];
        for (group, versions) in self.groups.iter().enumerate() {
            for (row, version) in versions.iter().enumerate() {
                rows[*version] = (group, row);
            }
        }
        rows
    }

    /// The dimensions that tell versions apart; of those that always have the same size the first. The version that is found
    /// checks all.
    fn axes(&self) -> Vec<Axis> {
        let (mut axes, mut known) = (Vec::new(), BTreeSet::new());
        let first = &self.function.versions[0];
        for (input, port) in first.inputs.iter().enumerate() {
            for axis in 0..first.port_sizes(port).len() {
                let sizes: Vec<u64> = self.function.versions.iter().map(|g| size(g, (input, axis))).collect();
                if sizes.iter().any(|own| *own != sizes[0]) && known.insert(sizes) {
                    axes.push((input, axis));
                }
            }
        }
        axes
    }

    /// Sizes, group and row of each version, by their sizes; of versions for the same sizes the first.
    fn keys(&self, axes: &[Axis], rows: &[(usize, usize)]) -> Vec<Vec<u64>> {
        let versions = self.function.versions.iter().zip(rows);
        let key = |(graph, (group, row)): (&Graph, &(usize, usize))| {
            let sizes = axes.iter().map(|axis| size(graph, *axis));
            sizes.chain([*group as u64, *row as u64]).collect::<Vec<u64>>()
        };
        let mut keys: Vec<Vec<u64>> = versions.map(key).collect();
        keys.sort_by(|a, b| a[..axes.len()].cmp(&b[..axes.len()]));
        keys.dedup_by(|later, first| later[..axes.len()] == first[..axes.len()]);
        keys
    }

    /// Reads the sizes; inputs with another number of dimensions fit no version.
    fn sizes(
        &self,
        writer: &mut Writer,
        code: &mut Code,
        axes: &[Axis],
        registers: &Registers,
        missing: Label,
    ) {
        let first = &self.function.versions[0];
        let mut checked = BTreeSet::new();
        for ((input, axis), size) in axes.iter().zip(&registers.sizes) {
            let view = reference(*input as u16);
            if checked.insert(*input) {
                let rank = first.port_sizes(&first.inputs[*input]).len();
                writer.call(code, hal::BUFFER_VIEW_RANK, &[view], &[registers.flag]);
                let rank = code.i32(rank as i32);
                code.op(Op::CmpEqI32, &[registers.flag.into(), rank.into(), registers.flag.into()]);
                let go = code.label();
                code.branch(registers.flag, go, missing);
                code.block(go);
            }
            let axis = code.i32(*axis as i32);
            writer.call(code, hal::BUFFER_VIEW_DIM, &[view, axis], &[*size]);
        }
    }

    /// Calls the function of the group that was found, with the version's row.
    fn calls(
        &self,
        writer: &mut Writer,
        code: &mut Code,
        registers: &Registers,
        stride: u64,
        results: &[Reg],
    ) {
        let inputs = self.function.versions[0].inputs.len();
        let blocks: Vec<Label> = self.groups.iter().map(|_| code.label()).collect();
        let Registers { at, entry, keys, table, .. } = *registers;
        for (column, to) in [(stride - 2, entry), (stride - 1, registers.middle)] {
            let column = code.size(column);
            code.op(Op::AddI64, &[at.into(), column.into(), registers.low.into()]);
            code.op(Op::BufferLoadI64, &[keys.into(), registers.low.into(), to.into()]);
        }
        let edge = |label: &Label| (*label, Vec::new());
        let cases: Vec<_> = blocks[..1].iter().chain(&blocks).map(edge).collect();
        // The low cell of a pair is a word.
        code.op(Op::BrTable, &[entry.into(), cases.into()]);
        for ((block, own), ordinal) in blocks.iter().zip(self.tables).zip(self.ordinals) {
            code.block(*block);
            let mut args: Vec<Reg> = (0..(inputs + export::FENCES) as u16).map(reference).collect();
            if let Some(own) = own {
                let data = writer.data(own.to_bytes());
                code.op(Op::ConstRefRodata, &[data.into(), table.into()]);
                args.extend([table, registers.middle]);
            }
            code.call(*ordinal, &args, results);
            code.op(Op::Return, &[results.to_vec().into()]);
        }
    }
}

/// Searches between the entries `low` and `high`, and goes on with where the entry that was found begins in `at`.
fn search(code: &mut Code, registers: &Registers, stride: u64, count: u64, missing: Label) {
    let Registers { low, high, middle, at, entry, flag, keys, .. } = *registers;
    let [head, look, above, below, found] = [(); 5].map(|()| code.label());
    code.op(Op::ConstI64Zero, &[low.into()]);
    let end = code.size(count);
    code.op(Op::OrI64, &[end.into(), end.into(), high.into()]);
    code.jump(head);
    code.block(head);
    code.op(Op::CmpLtI64S, &[low.into(), high.into(), flag.into()]);
    code.branch(flag, look, missing);
    code.block(look);
    code.op(Op::AddI64, &[low.into(), high.into(), middle.into()]);
    let half = code.i32(1);
    code.op(Op::ShrI64U, &[middle.into(), half.into(), middle.into()]);
    let stride = code.size(stride);
    code.op(Op::MulI64, &[middle.into(), stride.into(), at.into()]);
    for (column, size) in (0..).zip(&registers.sizes) {
        let column = code.size(column);
        code.op(Op::AddI64, &[at.into(), column.into(), entry.into()]);
        code.op(Op::BufferLoadI64, &[keys.into(), entry.into(), entry.into()]);
        for (less, more, to) in [(size, &entry, below), (&entry, size, above)] {
            let next = code.label();
            code.op(Op::CmpLtI64S, &[(*less).into(), (*more).into(), flag.into()]);
            code.branch(flag, to, next);
            code.block(next);
        }
    }
    code.jump(found);
    code.block(below);
    code.op(Op::OrI64, &[middle.into(), middle.into(), high.into()]);
    code.jump(head);
    code.block(above);
    let one = code.i64(1);
    code.op(Op::AddI64, &[middle.into(), one.into(), low.into()]);
    code.jump(head);
    code.block(found);
}

fn size(graph: &Graph, (input, axis): Axis) -> u64 {
    graph.port_sizes(&graph.inputs[input])[axis].exact()
}
