//! The choice among versions with open sizes: the first whose guards the sizes of the inputs at hand keep.

use std::collections::BTreeMap;

use halite_abi::{Code as StatusCode, export, import::hal};
use halite_formats::vmfb::{Attr, requirement};
use halite_sizes::Rule;
use halite_vm::{
    asm::{Label, Reg, reference},
    isa::Op,
};

use super::{call::convention, code::Code, module::Writer, refusal::refusal};
use crate::{CompileError, Function, graph::Graph};

/// What the choice is written from.
pub struct OpenChoice<'a> {
    /// The function.
    pub function: &'a Function,
    /// The functions of its versions.
    pub ordinals: &'a [u32],
}

/// The dimensions of inputs, by input and dimension.
type Dims = BTreeMap<(usize, usize), Reg>;

impl OpenChoice<'_> {
    /// Writes the exported function.
    pub fn write(&self, writer: &mut Writer, name: &str, attrs: Vec<Attr>) -> Result<u32, CompileError> {
        let graph = &self.function.versions[0];
        let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
        let arguments = inputs + export::FENCES;
        let mut code = Code::new(&convention(arguments, outputs), arguments as u16);
        code.requirements |= requirement::YIELD;
        let (fits, flag) = (code.word(), code.word());
        let results: Vec<Reg> = (0..outputs).map(|_| code.reference()).collect();
        let ranks: Vec<Reg> = (0..inputs).map(|_| code.word()).collect();
        let dims = self.registers(&mut code);
        for (input, rank) in ranks.iter().enumerate() {
            writer.call(&mut code, hal::BUFFER_VIEW_RANK, &[reference(input as u16)], &[*rank]);
        }
        for (version, ordinal) in self.function.versions.iter().zip(self.ordinals) {
            let next = code.label();
            sizes(writer, &mut code, version, (&ranks, &dims, (fits, flag)), next);
            let mut args: Vec<Reg> = (0..arguments as u16).map(reference).collect();
            if let Some(open) = &version.open {
                let symbols: Vec<Reg> = open.symbols.iter().map(|place| dims[place]).collect();
                code.set_symbols(&open.trace, symbols.clone());
                guards(&mut code, version, &dims, (fits, flag), next);
                args.extend(symbols);
            }
            code.call(*ordinal, &args, &results);
            code.op(Op::Return, &[results.clone().into()]);
            code.block(next);
        }
        code.fail_with(StatusCode::InvalidArgument, &refusal(self.function));
        writer.reflected_function(name, true, code, attrs)
    }

    /// A register for each dimension that any version looks at.
    fn registers(&self, code: &mut Code) -> Dims {
        let mut dims = Dims::new();
        for graph in &self.function.versions {
            for (input, port) in graph.inputs.iter().enumerate() {
                for axis in 0..graph.port_sizes(port).len() {
                    dims.entry((input, axis)).or_insert_with(|| code.pair());
                }
            }
        }
        dims
    }
}

/// Reads the dimensions, and goes on where their number and those that are known are a version's.
fn sizes(
    writer: &mut Writer,
    code: &mut Code,
    graph: &Graph,
    (ranks, dims, (fits, flag)): (&[Reg], &Dims, (Reg, Reg)),
    next: Label,
) {
    let one = code.i32(1);
    code.op(Op::OrI32, &[one.into(), one.into(), fits.into()]);
    for (port, rank) in graph.inputs.iter().zip(ranks) {
        let wanted = code.i32(graph.port_sizes(port).len() as i32);
        code.op(Op::CmpEqI32, &[(*rank).into(), wanted.into(), flag.into()]);
        code.op(Op::AndI32, &[fits.into(), flag.into(), fits.into()]);
    }
    let go = code.label();
    code.branch(fits, go, next);
    code.block(go);
    for (input, port) in graph.inputs.iter().enumerate() {
        for (axis, size) in graph.port_sizes(port).iter().enumerate() {
            let own = dims[&(input, axis)];
            let place = code.i32(axis as i32);
            writer.call(code, hal::BUFFER_VIEW_DIM, &[reference(input as u16), place], &[own]);
            if size.is_constant() {
                let wanted = code.i64(size.signed_value());
                code.op(Op::CmpEqI64, &[own.into(), wanted.into(), flag.into()]);
                code.op(Op::AndI32, &[fits.into(), flag.into(), fits.into()]);
            }
        }
    }
    let go = code.label();
    code.branch(fits, go, next);
    code.block(go);
}

/// Goes on where open dimensions are what they are computed to be, and the guards are kept.
fn guards(code: &mut Code, graph: &Graph, dims: &Dims, (fits, flag): (Reg, Reg), next: Label) {
    let Some(open) = &graph.open else { return };
    let one = code.i32(1);
    code.op(Op::OrI32, &[one.into(), one.into(), fits.into()]);
    for (input, port) in graph.inputs.iter().enumerate() {
        for (axis, size) in graph.port_sizes(port).iter().enumerate() {
            if !size.is_constant() && !open.symbols.contains(&(input, axis)) {
                code.begin_command();
                let wanted = code.amount(&[*size]);
                let own = dims[&(input, axis)];
                code.op(Op::CmpEqI64, &[own.into(), wanted.into(), flag.into()]);
                code.op(Op::AndI32, &[fits.into(), flag.into(), fits.into()]);
            }
        }
    }
    for guard in open.trace.guards() {
        code.begin_command();
        let (value, zero) = (code.poly(&guard.poly), code.i64(0));
        match guard.rule {
            // 0 <= value, as: value is not below 0.
            Rule::NotNegative => {
                let below = code.i64(-1);
                code.op(Op::CmpLtI64S, &[below.into(), value.into(), flag.into()]);
            }
            Rule::Zero => code.op(Op::CmpEqI64, &[value.into(), zero.into(), flag.into()]),
            Rule::NotZero => code.op(Op::CmpNeI64, &[value.into(), zero.into(), flag.into()]),
        }
        code.op(Op::AndI32, &[fits.into(), flag.into(), fits.into()]);
    }
    let go = code.label();
    code.branch(fits, go, next);
    code.block(go);
}
