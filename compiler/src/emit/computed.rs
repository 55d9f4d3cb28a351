//! How the code of a function computes sizes of symbols.

use halite_sizes::{Atom, AtomId, Poly, Size};
use halite_vm::{asm::Reg, isa::Op};

use super::code::{Code, MOST_CELLS, Pair};

/// Cells that the computation of one size may take.
const COMPUTED_CELLS: u16 = 0x1000;

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
        if self.cells > MOST_CELLS - COMPUTED_CELLS {
            self.forget();
        }
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
        };
        if let Some(open) = &mut self.open {
            open.atoms.insert(id, register);
        }
        self.loaded.insert(register.0);
        register
    }
}
