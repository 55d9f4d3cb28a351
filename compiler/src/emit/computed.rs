//! How the code of a function computes sizes of symbols.

use halite_sizes::{Atom, AtomId, Float, FloatFunction, Poly, Size};
use halite_vm::{
    asm::{Arg, Reg},
    isa::Op,
};

use super::code::{Code, Pair};

/// The largest float below the first whole number that 32 bits do not have.
const LARGEST_FLOAT: f32 = 2_147_483_520.0;

impl Code {
    /// A register with a size: that of the only version, or of the version at work.
    pub fn amount(&mut self, values: &[Size]) -> Pair {
        match values {
            [only] if !only.is_constant() => self.computed(*only),
            _ => self
                .varied(&values.iter().map(|size| size.signed_value().cast_unsigned()).collect::<Vec<_>>()),
        }
    }

    /// The same of a number of 32 bits.
    pub fn amount_word(&mut self, values: &[Size]) -> Reg {
        match values {
            // The low cell of a pair is a word.
            [only] if !only.is_constant() => self.computed(*only),
            _ => self.varied_word(&values.iter().map(|size| size.signed_value() as u32).collect::<Vec<_>>()),
        }
    }

    /// A register with a size that is computed of symbols.
    fn computed(&mut self, size: Size) -> Pair {
        let Some(open) = &self.open else {
            self.fail("an open size in a function without symbols".to_owned());
            return self.i64(0);
        };
        let poly = open.trace.poly(size);
        self.poly(&poly)
    }

    /// A register with the value of a polynomial of the trace.
    pub fn poly(&mut self, poly: &Poly) -> Pair {
        if let Some(number) = poly.as_constant() {
            return self.i64(number);
        }
        let known = self.open.as_ref().and_then(|open| open.polys.get(poly).copied());
        if let Some(register) = known.filter(|known| self.loaded.contains(&known.0)) {
            return register;
        }
        let mut sum: Option<Pair> = (poly.constant != 0).then(|| self.i64(poly.constant));
        for term in &poly.terms {
            let mut product: Option<Pair> = (term.factor != 1).then(|| self.i64(term.factor));
            for atom in &term.atoms {
                let atom = self.atom(*atom);
                product = Some(self.joined(Op::MulI64, product, atom));
            }
            let product = product.unwrap_or_else(|| self.i64(1));
            sum = Some(self.joined(Op::AddI64, sum, product));
        }
        let register = sum.unwrap_or_else(|| self.i64(0));
        if let Some(open) = &mut self.open {
            open.polys.insert(poly.clone(), register);
        }
        self.loaded.insert(register.0);
        register
    }

    fn joined(&mut self, op: Op, a: Option<Pair>, b: Pair) -> Pair {
        let Some(a) = a else { return b };
        let to = self.constant_cells(2);
        self.op(op, &[a.into(), b.into(), to.into()]);
        to
    }

    fn atom(&mut self, id: AtomId) -> Pair {
        let Some(open) = &self.open else { return self.i64(0) };
        if let Some(register) = open.atoms.get(&id).copied().filter(|known| self.loaded.contains(&known.0)) {
            return register;
        }
        let (atom, symbols) = (open.trace.atom(id), open.symbols.clone());
        let register = match &atom {
            Atom::Symbol(index) => return symbols[*index as usize],
            Atom::Quotient(a, b) | Atom::Remainder(a, b) => {
                let op = if matches!(atom, Atom::Quotient(..)) { Op::DivI64S } else { Op::RemI64S };
                let (a, b, one) = (self.poly(a), self.poly(b), self.i64(1));
                // Guards say that it is above 0; they may not have been looked at yet.
                let b = self.joined(Op::MaxI64S, Some(b), one);
                self.joined(op, Some(a), b)
            }
            Atom::Least(a, b) | Atom::Most(a, b) => {
                let op = if matches!(atom, Atom::Least(..)) { Op::MinI64S } else { Op::MaxI64S };
                let (a, b) = (self.poly(a), self.poly(b));
                self.joined(op, Some(a), b)
            }
            Atom::CeilLog2(a) => {
                let (a, one, bits) = (self.poly(a), self.i64(1), self.i64(64));
                let before = self.joined(Op::SubI64, Some(a), one);
                let zeros = self.constant_cells(2);
                self.op(Op::CtlzI64, &[before.into(), zeros.into()]);
                self.joined(Op::SubI64, Some(bits), zeros)
            }
            Atom::Pow2(a) => {
                let (a, one) = (self.poly(a), self.i64(1));
                // The low cell of a pair is a word.
                self.joined(Op::ShlI64, Some(one), a)
            }
            Atom::Truncated(float) => {
                let float = self.float(float);
                self.truncated(float)
            }
            Atom::Whole(a) => self.poly(a),
        };
        if let Some(open) = &mut self.open {
            open.atoms.insert(id, register);
        }
        self.loaded.insert(register.0);
        register
    }

    /// A register with a float of sizes.
    fn float(&mut self, float: &Float) -> Reg {
        match float {
            Float::Of(poly) => {
                let whole = self.poly(poly);
                let (word, made) = (self.constant_cells(1), self.constant_cells(1));
                self.op(Op::TruncI64I32, &[whole.into(), word.into()]);
                self.op(Op::CastSi32F32, &[word.into(), made.into()]);
                made
            }
            Float::Number(bits) => self.number(*bits),
            Float::Call(function, operands) => {
                let mut args: Vec<Arg> = operands.iter().map(|operand| self.float(operand).into()).collect();
                let made = self.constant_cells(1);
                args.push(made.into());
                self.op(float_op(*function), &args);
                made
            }
        }
    }

    /// A register with a float, from its bits.
    fn number(&mut self, bits: u32) -> Reg {
        let (word, made) = (self.i32(bits.cast_signed()), self.constant_cells(1));
        self.op(Op::BitcastI32F32, &[word.into(), made.into()]);
        made
    }

    /// The whole number that a float is without what is behind the point. Guards say that it is neither negative nor too large; they
    /// may not have been looked at yet.
    fn truncated(&mut self, float: Reg) -> Pair {
        let (zero, most) = (self.number(0f32.to_bits()), self.number(LARGEST_FLOAT.to_bits()));
        let [raised, within, whole, word] = [0; 4].map(|_| self.constant_cells(1));
        self.op(Op::MaxF32, &[float.into(), zero.into(), raised.into()]);
        self.op(Op::MinF32, &[raised.into(), most.into(), within.into()]);
        // How conversions round is not the same everywhere.
        self.op(Op::FloorF32, &[within.into(), whole.into()]);
        self.op(Op::CastF32Si32, &[whole.into(), word.into()]);
        let made = self.constant_cells(2);
        self.op(Op::ExtI32I64S, &[word.into(), made.into()]);
        made
    }
}

fn float_op(function: FloatFunction) -> Op {
    match function {
        FloatFunction::Add => Op::AddF32,
        FloatFunction::Sub => Op::SubF32,
        FloatFunction::Mul => Op::MulF32,
        FloatFunction::Div => Op::DivF32,
        FloatFunction::Min => Op::MinF32,
        FloatFunction::Max => Op::MaxF32,
        FloatFunction::Floor => Op::FloorF32,
        FloatFunction::Ceil => Op::CeilF32,
        FloatFunction::Round => Op::RoundF32Even,
        FloatFunction::Sqrt => Op::SqrtF32,
    }
}
