//! States whose elements decay each for itself, with what tokens write and correct in them (Peng et al., Eagle and Finch, and RWKV-7
//! "Goose").
//!
//! Tokens go in pieces. Within one, what a token reads of another is a sum over places, each with the decay between the two; what
//! tokens correct depends on those before them, so that a triangular matrix is inverted.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{
    Result,
    layer::Call,
    pieces::{inverse, some_tokens},
};
use crate::{build::Builder, graph::TensorId};

/// Tokens that are computed together at most: between two of them each place has a decay of its own.
const PIECE: u64 = 32;

/// What a call's tokens do to a state, `[sequences, heads, len, places]`.
#[derive(Clone, Copy)]
pub(super) struct Tokens {
    /// Where they read.
    pub reads: TensorId,
    /// Where they write.
    pub writes: TensorId,
    /// What they write, `[…, elements]`.
    pub values: TensorId,
    /// Logarithms of decays, which come before a token writes.
    pub decay: TensorId,
    /// Where tokens read, before the decay, what they add, and where they add it.
    pub corrects: Option<[TensorId; 2]>,
    /// How much of what a token itself writes it reads, `f32[1, heads, 1, places]`; then it reads the rest as it was before the decay.
    pub own: Option<TensorId>,
}

/// A piece, with the sums of its decays.
struct Piece {
    tokens: Tokens,
    /// Up to each token.
    decay: TensorId,
    /// Before each.
    before: TensorId,
    count: u64,
}

impl Call<'_> {
    /// What tokens read, `[sequences, heads, len, elements]`, of a state `[sequences, heads, places, elements]`, and the state behind
    /// them.
    pub fn decaying(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        state: TensorId,
    ) -> Result<(TensorId, TensorId)> {
        let (len, mut state, mut read) = (self.len.exact(), state, Vec::new());
        for first in (0..len).step_by(PIECE as usize) {
            let count = PIECE.min(len - first);
            let part = |b: &mut Builder, x: TensorId| some_tokens(b, x, first, count);
            let corrects = match tokens.corrects {
                Some([reads, adds]) => Some([part(b, reads)?, part(b, adds)?]),
                None => None,
            };
            let own = Tokens {
                reads: part(b, tokens.reads)?,
                writes: part(b, tokens.writes)?,
                values: part(b, tokens.values)?,
                decay: part(b, tokens.decay)?,
                corrects,
                own: tokens.own,
            };
            let decay = b.cumulative_sum(own.decay, 2, false, false)?;
            let before = b.binary(Function::Sub, decay, own.decay)?;
            let piece = Piece { tokens: own, decay, before, count };
            let (made, next) = self.decaying_piece(b, &piece, state)?;
            read.push(made);
            state = next;
        }
        Ok((b.concat(&read, 2)?, state))
    }

    /// The same of one piece.
    fn decaying_piece(
        &self,
        b: &mut Builder,
        piece: &Piece,
        state: TensorId,
    ) -> Result<(TensorId, TensorId)> {
        let Piece { tokens, decay, before, .. } = *piece;
        let added = match tokens.corrects {
            Some([reads, adds]) => Some((adds, self.added(b, piece, [reads, adds], state)?)),
            None => None,
        };
        // What lies in the state, as a token reads it.
        let reached = if tokens.own.is_some() { before } else { decay };
        let mut made = far(b, tokens.reads, reached, state)?;
        let mut sources = vec![(tokens.writes, tokens.values)];
        sources.extend(added);
        for (places, values) in sources.iter().copied() {
            let weights = between(b, piece, [tokens.reads, places], reached, tokens.own.is_none())?;
            let near = b.matmul(weights, values)?;
            made = b.binary(Function::Add, made, near)?;
        }
        if let Some(own) = tokens.own {
            let weight = b.map(&[tokens.reads, tokens.writes, own], DType::F32, |p, x| {
                let both = p.call(Function::Mul, &x[..2]);
                p.call(Function::Mul, &[both, x[2]])
            })?;
            let weight = b.reduce(ReduceKind::Sum, weight, &[3], true)?;
            let near = b.binary(Function::Mul, weight, tokens.values)?;
            made = b.binary(Function::Add, made, near)?;
        }
        // What is left of everything behind the last token.
        let last = self.last_of(b, decay)?;
        let dims = b.sizes(last).to_vec();
        let down = b.reshape_to(last, &[dims[0], dims[1], dims[3], dims[2]])?;
        let mut state = b.map(&[state, down], DType::F32, |p, x| {
            let left = p.call(Function::Exp, &[x[1]]);
            p.call(Function::Mul, &[x[0], left])
        })?;
        for (places, values) in sources {
            let left = b.map(&[places, last, decay], DType::F32, |p, x| {
                let left = p.call(Function::Sub, &x[1..]);
                let left = p.call(Function::Exp, &[left]);
                p.call(Function::Mul, &[x[0], left])
            })?;
            let left = b.transpose(left, &[0, 1, 3, 2])?;
            let new = b.matmul(left, values)?;
            state = b.binary(Function::Add, state, new)?;
        }
        Ok((made, state))
    }

    /// What tokens add where they correct, `[sequences, heads, count, elements]`.
    fn added(
        &self,
        b: &mut Builder,
        piece: &Piece,
        [reads, adds]: [TensorId; 2],
        state: TensorId,
    ) -> Result<TensorId> {
        let tokens = &piece.tokens;
        let found = far(b, reads, piece.before, state)?;
        if piece.count == 1 {
            return Ok(found);
        }
        let weights = between(b, piece, [reads, tokens.writes], piece.before, false)?;
        let near = b.matmul(weights, tokens.values)?;
        let found = b.binary(Function::Add, found, near)?;
        let among = between(b, piece, [reads, adds], piece.before, false)?;
        let below = b.unary(Function::Neg, among)?;
        let solved = inverse(b, below, piece.count)?;
        b.matmul(solved, found)
    }
}

/// What tokens read of a state that has decayed so much.
fn far(b: &mut Builder, reads: TensorId, decay: TensorId, state: TensorId) -> Result<TensorId> {
    let left = b.map(&[reads, decay], DType::F32, |p, x| {
        let left = p.call(Function::Exp, &[x[1]]);
        p.call(Function::Mul, &[x[0], left])
    })?;
    b.matmul(left, state)
}

/// How much each token reads of what others put in a place, `[sequences, heads, count, count]`: of those before it, and of itself if
/// `own`. `reached` are the sums of decays up to where it reads.
fn between(
    b: &mut Builder,
    piece: &Piece,
    [reads, places]: [TensorId; 2],
    reached: TensorId,
    own: bool,
) -> Result<TensorId> {
    let dims = b.sizes(reads).to_vec();
    let (one, count) = (Size::constant(1), Size::from(piece.count));
    let line = b.line_of_places(DType::I32, count)?;
    let down = |b: &mut Builder, x: TensorId| b.reshape_to(x, &[dims[0], dims[1], count, one, dims[3]]);
    let across = |b: &mut Builder, x: TensorId| b.reshape_to(x, &[dims[0], dims[1], one, count, dims[3]]);
    let (reads, reached) = (down(b, reads)?, down(b, reached)?);
    let (places, decay) = (across(b, places)?, across(b, piece.decay)?);
    let (row, column) = (b.reshape_to(line, &[count, one, one])?, b.reshape_to(line, &[one, count, one])?);
    let all = b.map(&[reads, places, reached, decay, row, column], DType::F32, |p, x| {
        let left = p.call(Function::Sub, &[x[2], x[3]]);
        let left = p.call(Function::Exp, &[left]);
        let both = p.call(Function::Mul, &x[..2]);
        let made = p.call(Function::Mul, &[both, left]);
        let is_before = p.call(if own { Function::Ge } else { Function::Gt }, &[x[4], x[5]]);
        p.call(Function::Select, &[is_before, made, Operand::Constant(Scalar::Float(0.0))])
    })?;
    b.reduce(ReduceKind::Sum, all, &[4], false)
}
