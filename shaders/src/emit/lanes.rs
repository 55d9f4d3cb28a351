//! Values of four elements in registers and the instructions on them, by the names that code reads well with.
//!
//! Every value is a vector of four: `vec4` for floats, `uvec4` for integers of up to 32 bits, signed ones too (SPIR-V's
//! instructions, not its types, tell signed from unsigned), `bvec4` for booleans. Integers narrower than 32 bits are kept
//! sign- or zero-extended.

use std::collections::BTreeMap;

use spirv::{GlslStd450Op, Op};

use halite_spirv::{Assembler, Id};

/// Elements that an invocation handles at once.
pub(crate) const LANES: u32 = 4;

/// Four values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// `bvec4`.
    Bool(Id),
    /// `vec4`.
    Float(Id),
    /// `uvec4`.
    Word(Id),
    /// 64-bit integers as two `uvec4`: low words, high words.
    Pair(Id, Id),
}

/// Instructions on vectors of four.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// Where instructions go.
    pub(crate) asm: Assembler,
    /// Whether the device has 16-bit floats.
    pub(crate) float16: bool,
    /// Floats by their negations.
    pub(crate) negated: BTreeMap<Id, Id>,
}

impl Lanes {
    pub(crate) fn bool_scalar(&mut self) -> Id {
        self.asm.ty(Op::TypeBool, &[])
    }

    pub(crate) fn u32_scalar(&mut self) -> Id {
        self.asm.ty(Op::TypeInt, &[32, 0])
    }

    pub(crate) fn f32_scalar(&mut self) -> Id {
        self.asm.ty(Op::TypeFloat, &[32])
    }

    /// A vector type of `count` words, or a word.
    pub(crate) fn words_type(&mut self, count: u32) -> Id {
        let scalar = self.u32_scalar();
        if count == 1 { scalar } else { self.asm.ty(Op::TypeVector, &[scalar.0, count]) }
    }

    pub(crate) fn bools(&mut self) -> Id {
        let scalar = self.bool_scalar();
        self.asm.ty(Op::TypeVector, &[scalar.0, LANES])
    }

    pub(crate) fn words(&mut self) -> Id {
        self.words_type(LANES)
    }

    pub(crate) fn floats(&mut self) -> Id {
        let scalar = self.f32_scalar();
        self.asm.ty(Op::TypeVector, &[scalar.0, LANES])
    }

    /// One word.
    pub(crate) fn word(&mut self, value: u32) -> Id {
        let ty = self.u32_scalar();
        self.asm.constant(Op::Constant, ty, &[value])
    }

    /// Four words.
    pub(crate) fn four(&mut self, values: [u32; 4]) -> Id {
        let parts = values.map(|v| self.word(v).0);
        let ty = self.words();
        self.asm.constant(Op::ConstantComposite, ty, &parts)
    }

    /// The same word four times.
    pub(crate) fn u(&mut self, value: u32) -> Id {
        self.four([value; 4])
    }

    /// The same float four times.
    pub(crate) fn f(&mut self, value: f32) -> Id {
        let scalar = self.f32_scalar();
        let part = self.asm.constant(Op::Constant, scalar, &[value.to_bits()]);
        let ty = self.floats();
        self.asm.constant(Op::ConstantComposite, ty, &[part.0; 4])
    }

    /// The same truth value four times.
    pub(crate) fn b(&mut self, value: bool) -> Id {
        let scalar = self.bool_scalar();
        let op = if value { Op::ConstantTrue } else { Op::ConstantFalse };
        let part = self.asm.constant(op, scalar, &[]);
        let ty = self.bools();
        self.asm.constant(Op::ConstantComposite, ty, &[part.0; 4])
    }

    /// A scalar in all four places.
    pub(crate) fn splat(&mut self, word: Id) -> Id {
        let ty = self.words();
        self.asm.pure(Op::CompositeConstruct, ty, &[word.0; 4])
    }

    /// One of the four words.
    pub(crate) fn extract(&mut self, words: Id, lane: u32) -> Id {
        let ty = self.u32_scalar();
        self.asm.pure(Op::CompositeExtract, ty, &[words.0, lane])
    }

    /// Four words out of the components of two vectors.
    pub(crate) fn shuffle(&mut self, a: Id, b: Id, places: [u32; 4]) -> Id {
        let ty = self.words();
        let [p, q, r, s] = places;
        self.asm.pure(Op::VectorShuffle, ty, &[a.0, b.0, p, q, r, s])
    }

    /// An instruction on floats.
    pub(crate) fn fop(&mut self, op: Op, operands: &[Id]) -> Id {
        let ty = self.floats();
        self.asm.pure(op, ty, &operands.iter().map(|id| id.0).collect::<Vec<_>>())
    }

    /// An instruction on words.
    pub(crate) fn uop(&mut self, op: Op, operands: &[Id]) -> Id {
        let ty = self.words();
        self.asm.pure(op, ty, &operands.iter().map(|id| id.0).collect::<Vec<_>>())
    }

    /// An instruction that gives booleans.
    pub(crate) fn bop(&mut self, op: Op, operands: &[Id]) -> Id {
        let ty = self.bools();
        self.asm.pure(op, ty, &operands.iter().map(|id| id.0).collect::<Vec<_>>())
    }

    /// An instruction on single words.
    pub(crate) fn scalar(&mut self, op: Op, operands: &[Id]) -> Id {
        let ty = self.u32_scalar();
        self.asm.pure(op, ty, &operands.iter().map(|id| id.0).collect::<Vec<_>>())
    }

    /// A comparison of single words.
    pub(crate) fn test(&mut self, op: Op, a: Id, b: Id) -> Id {
        let ty = self.bool_scalar();
        self.asm.pure(op, ty, &[a.0, b.0])
    }

    /// A function of `GLSL.std.450` on floats.
    pub(crate) fn fext(&mut self, op: GlslStd450Op, operands: &[Id]) -> Id {
        let ty = self.floats();
        self.asm.ext(op, ty, operands)
    }

    /// A function of `GLSL.std.450` on words.
    pub(crate) fn uext(&mut self, op: GlslStd450Op, operands: &[Id]) -> Id {
        let ty = self.words();
        self.asm.ext(op, ty, operands)
    }

    /// The bits of floats.
    pub(crate) fn bits(&mut self, floats: Id) -> Id {
        self.uop(Op::Bitcast, &[floats])
    }

    /// Bits as floats.
    pub(crate) fn of_bits(&mut self, words: Id) -> Id {
        self.fop(Op::Bitcast, &[words])
    }

    /// Floats by condition.
    pub(crate) fn fselect(&mut self, condition: Id, yes: Id, no: Id) -> Id {
        self.fop(Op::Select, &[condition, yes, no])
    }

    /// Words by condition.
    pub(crate) fn uselect(&mut self, condition: Id, yes: Id, no: Id) -> Id {
        self.uop(Op::Select, &[condition, yes, no])
    }

    fn exact(&mut self, op: Op, a: Id, b: Id) -> Id {
        let ty = self.floats();
        self.asm.exact(op, ty, &[a.0, b.0])
    }

    pub(crate) fn add(&mut self, a: Id, b: Id) -> Id {
        self.exact(Op::FAdd, a, b)
    }

    pub(crate) fn sub(&mut self, a: Id, b: Id) -> Id {
        self.exact(Op::FSub, a, b)
    }

    /// A product, of which signs are taken first, which changes nothing: Mesa's compilers move them through products, and take twice as
    /// long, or four times, for each negation in a chain of products.
    pub(crate) fn mul(&mut self, a: Id, b: Id) -> Id {
        let [(a, minus_a), (b, minus_b)] = [a, b].map(|id| match self.negated.get(&id) {
            Some(of) => (*of, true),
            None => (id, false),
        });
        let product = self.exact(Op::FMul, a, b);
        if minus_a == minus_b { product } else { self.negate(product) }
    }

    /// The negation of floats.
    pub(crate) fn negate(&mut self, x: Id) -> Id {
        if let Some(of) = self.negated.get(&x) {
            return *of;
        }
        let made = self.fop(Op::FNegate, &[x]);
        self.negated.insert(made, x);
        made
    }

    pub(crate) fn div(&mut self, a: Id, b: Id) -> Id {
        self.exact(Op::FDiv, a, b)
    }

    pub(crate) fn fabs(&mut self, x: Id) -> Id {
        self.fext(GlslStd450Op::FAbs, &[x])
    }

    /// `coefficients[0] + x * (coefficients[1] + …)`, with multiplications and additions fused where that is faster.
    pub(crate) fn polynomial(&mut self, x: Id, coefficients: &[f32]) -> Id {
        let mut sum: Option<Id> = None;
        for coefficient in coefficients.iter().rev() {
            let term = self.f(*coefficient);
            sum = Some(match sum {
                Some(sum) => {
                    let product = self.fop(Op::FMul, &[sum, x]);
                    self.fop(Op::FAdd, &[product, term])
                }
                None => term,
            });
        }
        sum.unwrap_or(x)
    }

    pub(crate) fn uadd(&mut self, a: Id, b: Id) -> Id {
        self.uop(Op::IAdd, &[a, b])
    }

    pub(crate) fn usub(&mut self, a: Id, b: Id) -> Id {
        self.uop(Op::ISub, &[a, b])
    }

    pub(crate) fn and(&mut self, a: Id, mask: u32) -> Id {
        let mask = self.u(mask);
        self.uop(Op::BitwiseAnd, &[a, mask])
    }

    pub(crate) fn or(&mut self, a: Id, b: Id) -> Id {
        self.uop(Op::BitwiseOr, &[a, b])
    }

    /// `x << by` with the same amount everywhere.
    pub(crate) fn left(&mut self, x: Id, by: u32) -> Id {
        let by = self.u(by);
        self.uop(Op::ShiftLeftLogical, &[x, by])
    }

    /// `x >> by`, zeros coming in.
    pub(crate) fn right(&mut self, x: Id, by: u32) -> Id {
        let by = self.u(by);
        self.uop(Op::ShiftRightLogical, &[x, by])
    }

    /// `x >> by`, the sign coming in.
    pub(crate) fn right_signed(&mut self, x: Id, by: u32) -> Id {
        let by = self.u(by);
        self.uop(Op::ShiftRightArithmetic, &[x, by])
    }
}
