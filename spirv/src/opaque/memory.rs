//! The words behind a variable: elements of 8, 16, 32 or 64 bits are read out of them, and put into them.
//!
//! Elements that share a word are put with atomic operations, each on its own bits; so neighbours may be put at the same time.

use spirv::{Op, StorageClass};

use super::code::Code;

/// `Device` and relaxed order.
const SCOPE: u32 = 1;
const RELAXED: u32 = 0;

impl Code<'_, '_, '_> {
    /// A pointer to a word.
    fn pointer(&mut self, variable: u32, word: u32) -> u32 {
        let uint = self.uint();
        let ty = self.edit.pointer(StorageClass::StorageBuffer, uint);
        let zero = self.word(0);
        self.value(Op::AccessChain, ty, &[variable, zero, word])
    }

    /// Where element `index` of `bits` (32 at most) lies: its word, and the bits below it.
    fn place(&mut self, index: u32, bits: u32) -> (u32, u32) {
        let per = 32 / bits;
        let zero = self.word(0);
        if per == 1 {
            return (index, zero);
        }
        let log = self.word(per.trailing_zeros());
        let word = self.words2(Op::ShiftRightLogical, index, log);
        let mask = self.word(per - 1);
        let within = self.words2(Op::BitwiseAnd, index, mask);
        let bits = self.word(bits);
        (word, self.words2(Op::IMul, within, bits))
    }

    /// The bits of element `index`, zeros above them. An element has 32 bits at most.
    pub fn bits_at(&mut self, variable: u32, index: u32, bits: u32) -> u32 {
        let (word, shift) = self.place(index, bits);
        let pointer = self.pointer(variable, word);
        let uint = self.uint();
        let loaded = self.value(Op::Load, uint, &[pointer]);
        if bits == 32 {
            return loaded;
        }
        let count = self.word(bits);
        self.value(Op::BitFieldUExtract, uint, &[loaded, shift, count])
    }

    /// Puts the bits of element `index` where `condition` holds. An element has 32 bits at most, and zeros above them.
    pub fn put_bits(&mut self, variable: u32, condition: u32, index: u32, bits: u32, value: u32) {
        let (word, shift) = self.place(index, bits);
        let void = self.edit.global(Op::TypeVoid, None, &[]);
        let function = self.put(variable, bits == 32);
        if bits == 32 {
            self.value(Op::FunctionCall, void, &[function, condition, word, value]);
            return;
        }
        let ones = self.word((1 << bits) - 1);
        let mask = self.words2(Op::ShiftLeftLogical, ones, shift);
        let value = self.words2(Op::ShiftLeftLogical, value, shift);
        self.value(Op::FunctionCall, void, &[function, condition, word, mask, value]);
    }

    /// The function that puts a word of a variable, or some of its bits.
    fn put(&mut self, variable: u32, whole: bool) -> u32 {
        if let Some(known) = self.puts.known.get(&(variable, whole)) {
            return *known;
        }
        let void = self.edit.global(Op::TypeVoid, None, &[]);
        let (boolean, uint) = (self.boolean(), self.uint());
        let mut types = vec![boolean, uint, uint];
        if !whole {
            types.push(uint);
        }
        let ty = self.edit.global(Op::TypeFunction, None, &[&[void], &types[..]].concat());
        let [function, label, yes, merge] = [(); 4].map(|()| self.edit.fresh());
        let (scope, order) = (self.word(SCOPE), self.word(RELAXED));
        // What was begun for the place of an instruction waits meanwhile.
        let waiting = self.take();
        self.named(Op::Function, void, function, &[0, ty]);
        let given: Vec<u32> = types.iter().map(|ty| self.value(Op::FunctionParameter, *ty, &[])).collect();
        self.effect(Op::Label, &[label]);
        self.effect(Op::SelectionMerge, &[merge, 0]);
        self.effect(Op::BranchConditional, &[given[0], yes, merge]);
        self.effect(Op::Label, &[yes]);
        let pointer = self.pointer(variable, given[1]);
        if whole {
            self.effect(Op::Store, &[pointer, given[2]]);
        } else {
            let others = self.value(Op::Not, uint, &[given[2]]);
            self.value(Op::AtomicAnd, uint, &[pointer, scope, order, others]);
            self.value(Op::AtomicOr, uint, &[pointer, scope, order, given[3]]);
        }
        self.effect(Op::Branch, &[merge]);
        self.effect(Op::Label, &[merge]);
        self.effect(Op::Return, &[]);
        self.effect(Op::FunctionEnd, &[]);
        let made = self.take();
        self.puts.words.extend(made);
        self.puts.known.insert((variable, whole), function);
        self.resume(waiting);
        function
    }
}
