//! Sizes that data decide: the host waits, reads their numbers, looks whether they are such as were promised, and allocates the
//! memory whose sizes are known from there on.

use halite_abi::{Code as StatusCode, MemoryType, import::hal};
use halite_sizes::{Guard, Rule, Size};
use halite_vm::{asm::Reg, isa::Op};

use super::{call::Call, code::Pair, needs};
use crate::plan::{flow::Number, schedule::Memory};

impl Call<'_> {
    /// Sets the symbols that data decide to 0, so that segments before they are known have one recording.
    pub(super) fn forget_data(&mut self) {
        let graph = self.version.graphs[0];
        let Some(open) = &graph.open else { return };
        let symbols = self.code.symbols();
        for symbol in &symbols[open.symbols.len()..] {
            self.code.op(Op::ConstI64Zero, &[(*symbol).into()]);
        }
    }

    /// Reads the values of symbols, and begins an era.
    pub(super) fn read(&mut self, first: u32, count: u32, offset: u64) {
        let symbols = self.code.symbols();
        for index in 0..count {
            let symbol = symbols[(first + index) as usize];
            let (value, high) = self.number;
            self.number(Number::Read(offset + 8 * u64::from(index)), value, high);
            self.code.op(Op::OrI64, &[value.into(), value.into(), symbol.into()]);
        }
        self.begin(first, count, &symbols);
        self.promises(first, first + count);
        self.begin_era(self.version.flow().era_of(first));
    }

    /// Gives symbols values that are computed of others, and begins an era. What was promised of symbols that a loop sets again, before it or
    /// in its runs, is checked behind it.
    pub(super) fn set(&mut self, first: u32, values: &[Size], settles: bool) {
        self.code.begin_command();
        let symbols = self.code.symbols();
        // All are computed before the first is changed.
        let computed: Vec<Pair> = values
            .iter()
            .map(|value| {
                let (own, now) = (self.code.temporary(), self.code.amount(&[*value]));
                self.code.op(Op::OrI64, &[now.into(), now.into(), own.into()]);
                own
            })
            .collect();
        for (symbol, value) in symbols[first as usize..].iter().zip(computed) {
            self.code.op(Op::OrI64, &[value.into(), value.into(), (*symbol).into()]);
        }
        let count = values.len() as u32;
        self.begin(first, count, &symbols);
        if settles {
            self.promises(first, first + count);
        }
        self.begin_era(self.version.flow().era_of(first));
    }

    /// Checks what was promised of a symbol whose value counts now.
    pub(super) fn settle(&mut self, symbol: u32) {
        self.promises(symbol, symbol + 1);
    }

    fn begin(&mut self, first: u32, count: u32, symbols: &[Pair]) {
        // What was computed of older values counts no more.
        self.code.forget_computed();
        for index in first..first + count {
            self.code.begin_command();
            self.bounds(index, symbols[index as usize]);
        }
    }

    /// Ends the call unless a symbol is what it may be.
    fn bounds(&mut self, index: u32, symbol: Pair) {
        let graph = self.version.graphs[0];
        let Some(open) = &graph.open else { return };
        let Some(data) = (index as usize).checked_sub(open.symbols.len()).and_then(|i| open.data.get(i))
        else {
            return;
        };
        let reason = match data.most {
            i64::MAX => format!("{} is less than {}", data.name, data.least),
            most => format!("{} is not from {} to {most}", data.name, data.least),
        };
        let (least, most) = (self.code.i64(data.least), self.code.i64(data.most));
        let (below, above) = (self.code.temporary(), self.code.temporary());
        self.code.op(Op::CmpLtI64S, &[symbol.into(), least.into(), below.into()]);
        self.code.op(Op::CmpLtI64S, &[most.into(), symbol.into(), above.into()]);
        self.code.op(Op::OrI32, &[below.into(), above.into(), below.into()]);
        self.refuse_if(below, &reason);
    }

    /// Ends the call where something was promised of the symbols that are known now, one of which is from `first` on and before
    /// `end`, and does not hold.
    fn promises(&mut self, first: u32, end: u32) {
        let graph = self.version.graphs[0];
        let Some(open) = &graph.open else { return };
        let known = open.symbols.len() as u32;
        for guard in open.trace.promises() {
            let of = open.trace.symbols_of(&guard.poly);
            let last = of.iter().filter(|symbol| **symbol >= known).max();
            if !last.is_some_and(|last| (first..end).contains(last)) {
                continue;
            }
            let names: Vec<&str> = of
                .iter()
                .filter_map(|symbol| open.data.get((*symbol).checked_sub(known)? as usize))
                .map(|data| data.name.as_str())
                .collect();
            let reason = format!(
                "the function was not compiled for such a size of {}: {} has to hold",
                names.join(" and "),
                open.trace.text(&guard)
            );
            self.promise(&guard, &reason);
        }
    }

    fn promise(&mut self, guard: &Guard, reason: &str) {
        self.code.begin_command();
        let (value, zero) = (self.code.poly(&guard.poly), self.code.i64(0));
        let broken = self.code.temporary();
        let op = match guard.rule {
            Rule::NotNegative => Op::CmpLtI64S,
            Rule::Zero => Op::CmpNeI64,
            Rule::NotZero => Op::CmpEqI64,
        };
        self.code.op(op, &[value.into(), zero.into(), broken.into()]);
        self.refuse_if(broken, reason);
    }

    fn refuse_if(&mut self, broken: Reg, reason: &str) {
        let (refused, go) = (self.code.label(), self.code.label());
        self.code.branch(broken, refused, go);
        self.code.block(refused);
        let text = format!("{}: {reason}", self.version.name);
        self.code.fail_with(StatusCode::OutOfRange, &text);
        self.code.block(go);
    }

    /// Allocates the memory of the era that begins.
    fn begin_era(&mut self, era: usize) {
        let wait = self.fence;
        let mut fences = Vec::new();
        self.allocate_outputs(era, wait, &mut fences);
        let memory = Memory::Transient(era as u32);
        if self.version.slots.iter().any(|slot| slot == memory) {
            self.code.begin_command();
            let bytes = self.code.amount(&[self.version.open_transient[era]]);
            let params = (MemoryType::DEVICE_LOCAL, needs::TENSOR_USAGE);
            fences.push(self.alloca(wait, params, bytes, self.later[era - 1]));
            self.there.push(memory);
        }
        if !fences.is_empty() {
            self.join(&fences, wait);
        }
    }

    /// Whether a segment is given a memory: where it is, and anything in the segment is bound to it.
    pub(super) fn is_there(&self, segment: usize, memory: Memory) -> bool {
        let is_there = matches!(memory, Memory::Input(_) | Memory::State(_)) || self.there.contains(&memory);
        let stands_in = self.version.flow().readback_bytes > 0;
        let is_used = self.version.used.get(segment).is_none_or(|used| used.contains(&memory));
        is_there && (is_used || !stands_in)
    }

    /// The transient memory of a later era, and its bytes.
    pub(super) fn later_memory(&mut self, era: u32) -> (Reg, Reg) {
        let bytes = self.code.amount(&[self.version.open_transient[era as usize]]);
        (self.later[era as usize - 1], bytes)
    }

    /// Gives the transient memory of later eras back, as far as they began.
    pub(super) fn end_eras(&mut self) {
        let (queue, zero) = (self.code.i64(needs::ANY_QUEUE), self.code.i64(0));
        for memory in self.there.clone() {
            let Memory::Transient(era @ 1..) = memory else { continue };
            self.code.begin_command();
            self.writer.new_fence(&mut self.code, self.device, self.signal);
            let args = [self.device, queue, self.fence, self.signal, self.later[era as usize - 1], zero];
            self.writer.call(&mut self.code, hal::DEVICE_QUEUE_DEALLOCA, &args, &[]);
            self.advance();
        }
    }
}
