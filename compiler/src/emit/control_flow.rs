//! Branches and loops of a version: the host reads what decides, and goes on from there.

use std::collections::BTreeSet;

use halite_abi::import::hal;
use halite_vm::{asm::Reg, isa::Op};

use super::{call::Call, needs, numbers::Numbers};
use crate::plan::{
    flow::{Item, Number},
    schedule::Memory,
};

/// Runs of a loop that are handed to the driver without waiting, where their number is known. Each may be some hundred operations, and what
/// was handed over takes memory. How much of it the device has at a time is the driver's affair.
const MOST_AHEAD: i64 = 32;

impl Call<'_> {
    /// Writes a control flow. As deep as branches and loops are nested, which plans limit.
    pub fn control_flow(&mut self, items: &[Item], numbers: &mut Numbers) {
        for (index, item) in items.iter().enumerate() {
            match item {
                Item::Segment(segment) => {
                    self.writer.new_fence(&mut self.code, self.device, self.signal);
                    self.execute(*segment, self.signal);
                    self.advance();
                }
                Item::If { condition, branches } => {
                    self.truth(*condition);
                    let [yes, no, join] = [(); 3].map(|()| self.code.label());
                    self.code.branch(self.flag, yes, no);
                    let mut there = Vec::new();
                    for (label, branch) in [yes, no].into_iter().zip(branches.iter()) {
                        self.code.block(label);
                        there.push(self.inner(branch, numbers));
                        self.code.jump(join);
                    }
                    self.code.block(join);
                    // What both branches allocated.
                    let both = there[0].iter().filter(|memory| there[1].contains(memory));
                    self.there.extend(both.copied());
                }
                Item::Read { first, count, offset } => self.read(*first, *count, *offset),
                Item::Set { first, values } => {
                    // What a loop gives behind its runs has no value that counts before.
                    let again = items[index..].iter().any(|later| sets_in_runs(later, *first));
                    let settles = !again && !self.unsettled.contains(first);
                    self.set(*first, values, settles);
                }
                Item::Loop { body, .. } => {
                    let before = self.unsettled.len();
                    self.unsettled.extend(set_again(&items[..index], body));
                    self.repeat(item, numbers);
                    for symbol in self.unsettled.split_off(before) {
                        self.settle(symbol);
                    }
                }
            }
        }
    }

    /// A control flow that may not be run: what it allocates, which it gives, is not there behind it.
    fn inner(&mut self, items: &[Item], numbers: &mut Numbers) -> Vec<Memory> {
        let before = self.there.len();
        self.control_flow(items, numbers);
        self.there.split_off(before)
    }

    /// What was signalled last is what comes next waits for.
    pub(super) fn advance(&mut self) {
        self.code.op(Op::AssignRef, &[self.signal.into(), self.fence.into()]);
    }

    pub(super) fn wait(&mut self) {
        self.writer.wait(&mut self.code, self.fence, self.flag);
    }

    /// Puts whether a number is not 0 into `self.flag`.
    fn truth(&mut self, number: Number) {
        match number {
            Number::Known(value) => {
                let truth = self.code.i32((value != 0).into());
                self.code.op(Op::OrI32, &[truth.into(), truth.into(), self.flag.into()]);
            }
            Number::Read(offset) => {
                self.wait();
                let (offset, bytes) = (self.code.size(offset), self.code.i32(1));
                let args = [self.readback, offset, bytes];
                self.writer.call(&mut self.code, hal::BUFFER_LOAD, &args, &[self.flag]);
            }
        }
    }

    /// Puts a number into a pair of cells.
    pub(super) fn number(&mut self, number: Number, to: Reg, high: Reg) {
        match number {
            Number::Known(value) => {
                let value = self.code.i64(value);
                self.code.op(Op::OrI64, &[value.into(), value.into(), to.into()]);
            }
            Number::Read(offset) => {
                self.wait();
                for (at, half) in [(offset, to), (offset + 4, high)] {
                    let (at, bytes) = (self.code.size(at), self.code.i32(4));
                    let args = [self.readback, at, bytes];
                    self.writer.call(&mut self.code, hal::BUFFER_LOAD, &args, &[self.flag]);
                    self.code.op(Op::ExtI32I64U, &[self.flag.into(), half.into()]);
                }
                let bits = self.code.i32(32);
                self.code.op(Op::ShlI64, &[high.into(), bits.into(), high.into()]);
                self.code.op(Op::OrI64, &[to.into(), high.into(), to.into()]);
            }
        }
    }

    fn repeat(&mut self, item: &Item, numbers: &mut Numbers) {
        let Item::Loop { most, first, next, counter, body } = item else { return };
        let registers = numbers.next().expect("there are registers for every loop");
        let [head, run, exit] = [(); 3].map(|()| self.code.label());
        self.number(*most, registers.most, registers.high);
        self.code.op(Op::ConstI64Zero, &[registers.run.into()]);
        self.truth(*first);
        self.code.branch(self.flag, head, exit);
        self.code.block(head);
        let (number, limit) = (registers.run, registers.most);
        self.code.op(Op::CmpLtI64S, &[number.into(), limit.into(), self.flag.into()]);
        self.code.branch(self.flag, run, exit);
        self.code.block(run);
        if let Some(offset) = counter {
            self.count(number, *offset);
        }
        self.inner(body, numbers);
        let one = self.code.i64(1);
        self.code.op(Op::AddI64, &[number.into(), one.into(), number.into()]);
        let ahead = matches!((most, next), (Number::Known(..=MOST_AHEAD), Number::Known(_)));
        if !ahead && matches!(next, Number::Known(_)) {
            self.wait_now_and_then(number, registers.high);
        }
        self.truth(*next);
        self.code.branch(self.flag, head, exit);
        self.code.block(exit);
    }

    /// Waits behind every so many runs: what is handed to the device and not done yet takes memory.
    fn wait_now_and_then(&mut self, run: Reg, scratch: Reg) {
        let [wait, go] = [(); 2].map(|()| self.code.label());
        let (mask, zero) = (self.code.i64(MOST_AHEAD - 1), self.code.i64(0));
        self.code.op(Op::AndI64, &[run.into(), mask.into(), scratch.into()]);
        self.code.op(Op::CmpNeI64, &[scratch.into(), zero.into(), self.flag.into()]);
        self.code.branch(self.flag, go, wait);
        self.code.block(wait);
        self.wait();
        self.code.jump(go);
        self.code.block(go);
    }

    /// Writes the number of the run to where the device reads it.
    fn count(&mut self, number: Reg, offset: u64) {
        let data = self.recording;
        let (bytes, alignment) = (self.code.i64(8), self.code.i32(8));
        self.code.op(Op::BufferAlloc, &[bytes.into(), alignment.into(), data.into()]);
        let zero = self.code.i64(0);
        self.code.op(Op::BufferStoreI64, &[data.into(), zero.into(), number.into()]);
        self.writer.new_fence(&mut self.code, self.device, self.signal);
        let (queue, offset) = (self.code.i64(needs::ANY_QUEUE), self.code.size(offset));
        let args =
            [self.device, queue, self.fence, self.signal, data, zero, self.transient.0, offset, bytes, zero];
        self.writer.call(&mut self.code, hal::DEVICE_QUEUE_UPDATE, &args, &[]);
        self.advance();
    }
}

/// Whether a loop's runs set a symbol again.
fn sets_in_runs(item: &Item, symbol: u32) -> bool {
    let Item::Loop { body, .. } = item else { return false };
    body.iter().any(|item| matches!(item, Item::Set { first, .. } if *first == symbol))
}

/// The symbols that have values before a loop and that each of its runs sets again: what they are behind the last one counts.
fn set_again(before: &[Item], body: &[Item]) -> Vec<u32> {
    let sets = |items: &[Item]| -> BTreeSet<u32> {
        let each = |item: &Item| match item {
            Item::Set { first, values } => *first..*first + values.len() as u32,
            _ => 0..0,
        };
        items.iter().flat_map(each).collect()
    };
    sets(before).intersection(&sets(body)).copied().collect()
}
