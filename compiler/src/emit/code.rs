//! How the code of a function is put together: registers, constants in registers, calls of imports.

use std::collections::{HashMap, HashSet};

use halite_abi::Code as StatusCode;
use halite_formats::vmfb::requirement;
use halite_sizes::{AtomId, Poly, Trace};
use halite_vm::{
    asm::{Arg, FunctionBuilder, Label, PLAIN, Reg, cell, reference},
    isa::Op,
};

use super::table::Table;
use crate::CompileError;

/// Cells after which the registers of constants are used again.
pub(super) const MOST_CELLS: u16 = 0x7000;
/// Cells that the constants and computed sizes of one command may take. They are all needed until it is recorded.
const COMMAND_CELLS: u16 = 0x4000;

/// A value of 64 bits: its low cell.
pub type Pair = Reg;

/// The code of a function in the making. Registers are handed out; those of constants are found again by their value.
#[derive(Debug)]
pub struct Code {
    builder: FunctionBuilder,
    pub(super) cells: u16,
    /// Where the registers of constants begin, once one was asked for.
    first_constant: Option<u16>,
    refs: u16,
    words: HashMap<u32, Reg>,
    pairs: HashMap<u64, Reg>,
    /// Registers of numbers of the table, by where their columns begin.
    columns: HashMap<u64, Reg>,
    /// Registers of constants and numbers of the table that were loaded in the open block.
    pub(super) loaded: HashSet<u16>,
    /// Whether the code is written in commands, between which alone registers are used again.
    in_commands: bool,
    rows: Option<Rows>,
    pub(super) open: Option<Open>,
    null: Option<Reg>,
    /// Requirements beyond those that follow from instructions.
    pub requirements: u32,
    error: Option<String>,
}

/// What a function for versions with the same code reads of its table.
#[derive(Debug)]
struct Rows {
    table: Table,
    /// The table, and the version's row.
    data: Reg,
    row: Pair,
    /// For an index.
    index: Pair,
}

/// What a function for open sizes computes with.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) trace: Trace,
    /// The values of the symbols.
    pub(super) symbols: Vec<Pair>,
    /// Registers of atoms and polynomials.
    pub(super) atoms: HashMap<AtomId, Pair>,
    pub(super) polys: HashMap<Poly, Pair>,
}

/// A part of a call's arguments.
#[derive(Debug)]
pub enum Part<'a> {
    /// One parameter.
    One(Reg),
    /// A span of `count` elements, flattened.
    Span(usize, &'a [Reg]),
}

impl Code {
    /// An empty function. Its arguments are the first registers of each bank; `cells` of the first bank are named, the rest
    /// is for constants.
    pub fn new(convention: &str, ref_arguments: u16) -> Self {
        Code {
            builder: FunctionBuilder::new(convention),
            cells: 0,
            first_constant: None,
            refs: ref_arguments,
            words: HashMap::new(),
            pairs: HashMap::new(),
            columns: HashMap::new(),
            loaded: HashSet::new(),
            in_commands: false,
            rows: None,
            open: None,
            null: None,
            requirements: requirement::UNWIND,
            error: None,
        }
    }

    /// The function of versions with the same code: its last arguments are their table and a row of it, and
    /// [`Code::varied`] are numbers of that row. `ref_arguments` counts the table.
    pub fn with_rows(convention: &str, ref_arguments: u16, table: Table) -> Self {
        let mut code = Code::new(convention, ref_arguments);
        let (row, index) = (code.pair(), code.pair());
        code.rows = Some(Rows { table, data: reference(ref_arguments - 1), row, index });
        code
    }

    /// The function of a version with open sizes: its last arguments are the values of the trace's symbols.
    pub fn with_symbols(convention: &str, ref_arguments: u16, trace: &Trace) -> Self {
        let mut code = Code::new(convention, ref_arguments);
        let symbols = trace.symbols().iter().map(|_| code.pair()).collect();
        code.set_symbols(trace, symbols);
        code
    }

    /// Lets sizes be computed of symbols that are in these registers.
    pub fn set_symbols(&mut self, trace: &Trace, symbols: Vec<Pair>) {
        let trace = trace.clone();
        self.open = Some(Open { trace, symbols, atoms: HashMap::new(), polys: HashMap::new() });
    }

    /// The arguments that a function of the same versions takes: the table and the row, or the values of symbols.
    pub fn row_arguments(&self) -> Vec<Reg> {
        let rows = self.rows.iter().flat_map(|rows| [rows.data, rows.row]);
        rows.chain(self.symbols()).collect()
    }

    /// The registers with the values of symbols.
    pub fn symbols(&self) -> Vec<Pair> {
        self.open.as_ref().map_or_else(Vec::new, |open| open.symbols.clone())
    }

    /// The table, to which numbers were added.
    pub fn take_table(&mut self) -> Option<Table> {
        self.rows.take().map(|rows| rows.table)
    }

    /// A register for a 32-bit value. All are asked for before the first constant.
    pub fn word(&mut self) -> Reg {
        debug_assert!(self.first_constant.is_none(), "named registers come before those of constants");
        self.cells += 1;
        cell(self.cells - 1)
    }

    /// A register for a 64-bit value. All are asked for before the first constant.
    pub fn pair(&mut self) -> Pair {
        debug_assert!(self.first_constant.is_none(), "named registers come before those of constants");
        self.cells = self.cells.next_multiple_of(2) + 2;
        cell(self.cells - 2)
    }

    /// A register for a value that is used at once.
    pub fn temporary(&mut self) -> Pair {
        self.constant_cells(2)
    }

    /// A register for a reference.
    pub fn reference(&mut self) -> Reg {
        self.refs = self.refs.saturating_add(1);
        if self.refs > halite_vm::isa::MAX_REFS {
            self.fail("a function has too many references".to_owned());
        }
        reference(self.refs - 1)
    }

    /// A register that holds no reference.
    pub fn null(&mut self) -> Reg {
        if self.null.is_none() {
            self.null = Some(self.reference());
        }
        self.null.expect("it was made just now")
    }

    /// A register with a 32-bit constant.
    pub fn i32(&mut self, value: i32) -> Reg {
        let bits = value.cast_unsigned();
        let register = match self.words.get(&bits) {
            Some(register) => *register,
            None => {
                let register = self.constant_cells(1);
                self.words.insert(bits, register);
                register
            }
        };
        if self.loaded.insert(register.0) {
            match value {
                0 => self.op(Op::ConstI32Zero, &[register.into()]),
                _ => self.op(Op::ConstI32, &[value.into(), register.into()]),
            }
        }
        register
    }

    /// A register with an unsigned 32-bit constant.
    pub fn u32(&mut self, value: u32) -> Reg {
        self.i32(value.cast_signed())
    }

    /// A register with a 64-bit constant.
    pub fn i64(&mut self, value: i64) -> Pair {
        let bits = value.cast_unsigned();
        let register = match self.pairs.get(&bits) {
            Some(register) => *register,
            None => {
                let register = self.constant_cells(2);
                self.pairs.insert(bits, register);
                register
            }
        };
        if self.loaded.insert(register.0) {
            match value {
                0 => self.op(Op::ConstI64Zero, &[register.into()]),
                _ => self.op(Op::ConstI64, &[value.into(), register.into()]),
            }
        }
        register
    }

    /// A register with a size or an offset.
    pub fn size(&mut self, value: u64) -> Pair {
        match i64::try_from(value) {
            Ok(value) => self.i64(value),
            Err(_) => {
                self.fail(format!("{value} bytes are too many"));
                self.i64(0)
            }
        }
    }

    /// A register with the number that the version at work has of these, one for each version.
    pub fn varied(&mut self, values: &[u64]) -> Pair {
        let first = values.first().copied().unwrap_or(0);
        if values.iter().all(|value| *value == first) {
            return self.size(first);
        }
        if let Some(large) = values.iter().find(|value| i64::try_from(**value).is_err()) {
            self.fail(format!("{large} bytes are too many"));
        }
        let Some(rows) = &mut self.rows else {
            self.fail("versions without a table differ".to_owned());
            return self.i64(0);
        };
        let (column, data, row, index) = (rows.table.column(values), rows.data, rows.row, rows.index);
        if let Some(register) = self.columns.get(&column).filter(|known| self.loaded.contains(&known.0)) {
            return *register;
        }
        let start = self.size(column);
        let register = match self.columns.get(&column) {
            Some(register) => *register,
            None => {
                let register = self.constant_cells(2);
                self.columns.insert(column, register);
                register
            }
        };
        self.op(Op::AddI64, &[start.into(), row.into(), index.into()]);
        self.op(Op::BufferLoadI64, &[data.into(), index.into(), register.into()]);
        self.loaded.insert(register.0);
        register
    }

    /// The same for 32-bit numbers.
    pub fn varied_word(&mut self, values: &[u32]) -> Reg {
        match values {
            [first, rest @ ..] if rest.iter().all(|value| value == first) => self.u32(*first),
            // The low cell of a pair is a word.
            _ => self.varied(&values.iter().map(|value| u64::from(*value)).collect::<Vec<_>>()),
        }
    }

    /// Cells for a constant or for what is computed.
    pub(super) fn constant_cells(&mut self, count: u16) -> Reg {
        let first = *self.first_constant.get_or_insert(self.cells);
        if self.cells > MOST_CELLS {
            if self.in_commands {
                self.fail(format!("a command has more than {COMMAND_CELLS} constants and computed sizes"));
            }
            self.forget();
            self.cells = first;
        }
        if count == 2 {
            self.cells = self.cells.next_multiple_of(2);
        }
        self.cells += count;
        cell(self.cells - count)
    }

    /// What was computed of symbols is computed anew: they have other values from here on.
    pub(super) fn forget_computed(&mut self) {
        if let Some(open) = &mut self.open {
            open.atoms.clear();
            open.polys.clear();
        }
    }

    /// Begins a command, none of whose registers is there yet: where few are left, they are used again from here on, and not
    /// between two of its arguments.
    pub(super) fn begin_command(&mut self) {
        self.in_commands = true;
        if self.cells > MOST_CELLS - COMMAND_CELLS {
            self.forget();
        }
    }

    /// Registers of constants and of what is computed are used again.
    pub(super) fn forget(&mut self) {
        self.words.clear();
        self.pairs.clear();
        self.columns.clear();
        self.loaded.clear();
        if let Some(open) = &mut self.open {
            open.atoms.clear();
            open.polys.clear();
        }
        if let Some(first) = self.first_constant {
            self.cells = first;
        }
    }

    /// A block to be placed.
    pub fn label(&mut self) -> Label {
        self.builder.label()
    }

    /// Places a block here. Constants are loaded anew in it.
    pub fn block(&mut self, label: Label) {
        self.loaded.clear();
        self.builder.block(label);
    }

    /// Appends an instruction.
    pub fn op(&mut self, op: Op, args: &[Arg]) {
        if let Err(error) = self.builder.op(op, args) {
            self.fail(error.to_string());
        }
    }

    /// Calls a function that is not variadic.
    pub fn call(&mut self, function: u32, args: &[Reg], results: &[Reg]) {
        self.op(Op::Call, &[function.into(), args.to_vec().into(), results.to_vec().into()]);
    }

    /// Calls a variadic import.
    pub fn call_variadic(&mut self, function: u32, parts: &[Part<'_>], results: &[Reg]) {
        let (segments, args) = flatten(parts);
        self.op(Op::CallVariadic, &[function.into(), segments.into(), args.into(), results.to_vec().into()]);
    }

    /// Calls a variadic import that may suspend, and goes on in a new block.
    pub fn call_yieldable(&mut self, function: u32, parts: &[Part<'_>], results: &[Reg]) {
        let (segments, args) = flatten(parts);
        self.requirements |= requirement::YIELD;
        let next = self.label();
        self.op(
            Op::CallVariadicYieldable,
            &[function.into(), segments.into(), args.into(), Arg::Target(next), results.to_vec().into()],
        );
        self.block(next);
    }

    /// Goes to a block.
    pub fn jump(&mut self, to: Label) {
        self.op(Op::Br, &[to.into()]);
    }

    /// Goes to one of two blocks.
    pub fn branch(&mut self, condition: Reg, yes: Label, no: Label) {
        self.op(Op::CondBr, &[condition.into(), yes.into(), no.into()]);
    }

    /// Ends the call with an error, and leaves the block.
    pub fn fail_with(&mut self, code: StatusCode, message: &str) {
        let code = self.u32(code as u32);
        let mut end = message.len().min(usize::from(u16::MAX));
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        self.op(Op::Fail, &[code.into(), message[..end].into()]);
    }

    /// Keeps the first error for [`Code::finish`].
    pub(super) fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// The function and its requirements.
    ///
    /// # Errors
    /// Something did not fit.
    pub fn finish(self) -> Result<(FunctionBuilder, u32), CompileError> {
        match self.error {
            Some(error) => Err(CompileError::Write(error)),
            None => Ok((self.builder, self.requirements)),
        }
    }
}

fn flatten(parts: &[Part<'_>]) -> (Vec<u16>, Vec<Reg>) {
    let (mut segments, mut args) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::One(register) => {
                segments.push(PLAIN);
                args.push(*register);
            }
            Part::Span(count, registers) => {
                segments.push(u16::try_from(*count).unwrap_or(u16::MAX));
                args.extend_from_slice(registers);
            }
        }
    }
    (segments, args)
}

#[cfg(test)]
mod tests {
    use halite_sizes::Size;
    use halite_vm::{Context, Invocation, Module, Value, asm::ModuleBuilder};

    use super::*;

    /// Commands of five different constants each, more of them than there are registers: all five are there at the end of each.
    #[test]
    fn constants_of_a_command_stay_until_its_end() {
        let mut code = Code::new("0v_I", 0);
        let sum = code.pair();
        code.op(Op::ConstI64Zero, &[sum.into()]);
        let (commands, each) = (7001i64, 5i64);
        for command in 0..commands {
            code.begin_command();
            let args: Vec<Pair> = (0..each).map(|index| code.i64(1 + command * each + index)).collect();
            for arg in args {
                code.op(Op::AddI64, &[sum.into(), arg.into(), sum.into()]);
            }
        }
        code.op(Op::Return, &[vec![sum].into()]);
        let count = commands * each;
        assert!(matches!(run(code)[..], [Value::I64(sum)] if sum == count * (count + 1) / 2));
    }

    /// The same where what fills the registers is computed of sizes: a constant of a command is still there behind them.
    #[test]
    fn constants_stay_while_sizes_are_computed() {
        let trace = Trace::new();
        let _entered = trace.enter();
        let n = trace.symbol("n", 3, 1, 100);
        let mut code = Code::new("0v_I", 0);
        let (sum, symbol) = (code.pair(), code.pair());
        code.op(Op::ConstI64Zero, &[sum.into()]);
        code.op(Op::ConstI64, &[3i64.into(), symbol.into()]);
        code.set_symbols(&trace, vec![symbol]);
        let (commands, each) = (900i64, 10i64);
        for command in 0..commands {
            code.begin_command();
            let held = code.i64(7);
            let sizes: Vec<Pair> = (0..each)
                .map(|index| code.amount(&[n * n + n * Size::from(2 + command * each + index)]))
                .collect();
            for register in sizes.into_iter().chain([held]) {
                code.op(Op::AddI64, &[sum.into(), register.into(), sum.into()]);
            }
        }
        code.op(Op::Return, &[vec![sum].into()]);
        let count = commands * each;
        let wanted = count * 9 + 3 * (2 * count + count * (count - 1) / 2) + 7 * commands;
        let found = run(code);
        assert!(matches!(found[..], [Value::I64(sum)] if sum == wanted), "{found:?} {wanted}");
    }

    fn run(code: Code) -> Vec<Value> {
        let mut builder = ModuleBuilder::new("m");
        builder.ty("i64");
        builder.function(Some("f"), code.finish().unwrap().0).unwrap();
        let module = Module::load(builder.finish()).unwrap();
        let context = Context::new(&[], &[module]).unwrap();
        let function = context.lookup("m", "f").unwrap();
        context.invoke(&function, &[], &Invocation::default()).unwrap()
    }

    /// More constants than there are registers, each checked against a sum.
    #[test]
    fn registers_of_constants_are_used_again() {
        let mut code = Code::new("0v_I", 0);
        let sum = code.pair();
        code.op(Op::ConstI64Zero, &[sum.into()]);
        let count = 40_000i64;
        for value in 1..=count {
            let value = code.i64(value);
            code.op(Op::AddI64, &[sum.into(), value.into(), sum.into()]);
        }
        code.op(Op::Return, &[vec![sum].into()]);
        let found = run(code);
        assert!(matches!(found[..], [Value::I64(sum)] if sum == count * (count + 1) / 2), "{found:?}");
    }
}
