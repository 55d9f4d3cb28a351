//! The values of expressions in one launch, as sums of variables with ranges.
//!
//! A value stands for an integer of its width up to multiples of two to that width. Sums that leave the room that signed
//! and unsigned numbers share are unknown, so that nothing here depends on how a number is read, except where it says so.

use std::collections::HashMap;

use super::{
    affine::{Affine, Range, Ranges, Var},
    expr::{Binary, Expr, ExprId, Limit, Order, Resize},
    launch::Launch,
};

/// Values of one access's expressions.
pub(super) struct Values<'a> {
    pub exprs: &'a [Expr],
    pub launch: &'a Launch<'a>,
    pub ranges: Ranges,
    /// What conditions say of expressions themselves.
    pub told: HashMap<ExprId, Range>,
    /// Ranges of numbers with a fraction, as far as they are computed.
    pub floats: HashMap<ExprId, Option<(f64, f64)>>,
    memo: HashMap<ExprId, Option<Affine>>,
    /// Evaluations left.
    pub budget: usize,
}

impl<'a> Values<'a> {
    /// Nothing is known yet but the size of the launch.
    pub fn new(exprs: &'a [Expr], launch: &'a Launch<'a>, local_size: [u32; 3], budget: usize) -> Self {
        let mut ranges = Ranges::new();
        for axis in 0..3u8 {
            let at = usize::from(axis);
            let last = |count: u32| (0, i64::from(count.max(1)) - 1);
            let groups = launch.workgroups.map_or((0, i64::from(u32::MAX)), |counts| last(counts[at]));
            ranges.insert(Var::Workgroup(axis), groups);
            ranges.insert(Var::Local(axis), last(local_size[at]));
        }
        Values {
            exprs,
            launch,
            ranges,
            told: HashMap::new(),
            floats: HashMap::new(),
            memo: HashMap::new(),
            budget,
        }
    }

    /// Values are to be computed anew, with what is known by now.
    pub fn forget(&mut self) {
        self.memo.clear();
        self.floats.clear();
    }

    /// The value of an expression; `None` if nothing is known of it.
    pub fn value(&mut self, id: ExprId) -> Option<Affine> {
        if let Some(known) = self.memo.get(&id) {
            return known.clone();
        }
        self.budget = self.budget.checked_sub(1)?;
        let value = self.compute(id).and_then(|value| self.as_told(id, value));
        self.memo.insert(id, value.clone());
        value
    }

    /// A value that is narrower by what a condition said of it. Its parts may have become narrower already; where they
    /// have not, it becomes a variable of its own, with the step that its parts have in common.
    fn as_told(&mut self, id: ExprId, value: Affine) -> Option<Affine> {
        let Some((low, high)) = self.told.get(&id).copied() else { return Some(value) };
        let (least, most) = value.range(&self.ranges)?;
        // What was told of another reading of the same bits says nothing here.
        let apart = most < low || high < least;
        if apart || (low <= least && most <= high) || value.terms.len() < 2 {
            return Some(value);
        }
        let step = value.terms.iter().fold(0, |step, (_, times)| gcd(step, times.unsigned_abs()));
        let step = i64::try_from(step).ok()?;
        let trips = (most.min(high).checked_sub(least)?.max(0)) / step;
        self.fresh(id, (0, trips)).times(step)?.plus(&Affine::constant(least), 1)
    }

    /// A variable for an expression of which only the range is known.
    fn fresh(&mut self, id: ExprId, (low, high): Range) -> Affine {
        if low == high {
            return Affine::constant(low);
        }
        let known = self.ranges.entry(Var::Value(id)).or_insert((low, high));
        *known = (known.0.max(low), known.1.min(high));
        Affine::of(0, Var::Value(id), 1)
    }

    fn compute(&mut self, id: ExprId) -> Option<Affine> {
        let exprs = self.exprs;
        match &exprs[id] {
            Expr::Constant(value) => Some(Affine::constant(*value)),
            Expr::Push(offset) => {
                let word = (offset / 4) as usize;
                let value = self.launch.push_constants.get(word).filter(|_| offset % 4 == 0)?;
                Some(Affine::constant(i64::from(*value)))
            }
            Expr::WorkgroupId(axis) => Some(Affine::of(0, Var::Workgroup(*axis), 1)),
            Expr::LocalId(axis) => Some(Affine::of(0, Var::Local(*axis), 1)),
            Expr::NumWorkgroups(axis) => {
                self.launch.workgroups.map(|counts| Affine::constant(counts[usize::from(*axis)].into()))
            }
            Expr::Binary { op, left, right, width } => {
                let value = self.binary(id, *op, *left, *right, *width);
                value.or_else(|| (*width <= 32).then(|| self.fresh(id, (0, (1 << width) - 1))))
            }
            Expr::Resize { how, of, from, to } => self.resize(*how, *of, *from, *to),
            Expr::Compare { .. } | Expr::AllOf(..) | Expr::AnyOf(..) | Expr::Not(_) | Expr::FloatLess(..) => {
                Some(match self.truth(id) {
                    Some(truth) => Affine::constant(i64::from(truth)),
                    None => self.fresh(id, (0, 1)),
                })
            }
            Expr::OneOf { values, condition } => self.one_of(id, values, *condition),
            Expr::Counter { start, step, limit, width } => self.counter(id, *start, *step, *limit, *width),
            Expr::Unknown(width @ 0..=32) => Some(self.fresh(id, (0, (1 << width) - 1))),
            Expr::Unknown(_) | Expr::Float(_) => None,
            Expr::FromFloat(of) => {
                let range = self.whole_part(*of)?;
                Some(self.fresh(id, range))
            }
        }
    }

    /// A sum within the numbers of its width, signed or not.
    fn fit(&self, value: Affine, width: u32) -> Option<Affine> {
        let (low, high) = value.range(&self.ranges)?;
        if width >= 64 {
            return Some(value);
        }
        let (least, end) = (-(1i64 << (width - 1)), 1i64 << width);
        if low >= least && high < end {
            return Some(value);
        }
        // Adding a large unsigned number is how compilers subtract.
        let down = value.plus(&Affine::constant(-end), 1)?;
        (low - end >= least && high - end < end).then_some(down)
    }

    /// The value read as a number without sign.
    pub fn unsigned(&mut self, id: ExprId, width: u32) -> Option<(Affine, Range)> {
        let value = self.value(id)?;
        let (low, high) = value.range(&self.ranges)?;
        if low >= 0 {
            return Some((value, (low, high)));
        }
        let end = 1i64.checked_shl(width).filter(|_| width < 63 && high < 0)?;
        let value = value.plus(&Affine::constant(end), 1)?;
        Some((value, (low + end, high + end)))
    }

    /// The value read as a number with a sign.
    pub fn signed(&mut self, id: ExprId, width: u32) -> Option<(Affine, Range)> {
        let value = self.value(id)?;
        let (low, high) = value.range(&self.ranges)?;
        if width >= 64 {
            return Some((value, (low, high)));
        }
        let half = 1i64 << (width - 1);
        if high < half {
            return Some((value, (low, high)));
        }
        let value = value.plus(&Affine::constant(-2 * half), 1).filter(|_| low >= half)?;
        Some((value, (low - 2 * half, high - 2 * half)))
    }

    fn binary(&mut self, id: ExprId, op: Binary, left: ExprId, right: ExprId, width: u32) -> Option<Affine> {
        match op {
            Binary::Add => {
                let sum = self.value(left)?.plus(&self.value(right)?, 1)?;
                self.fit(sum, width)
            }
            Binary::Sub => {
                let sum = self.value(left)?.plus(&self.value(right)?, -1)?;
                self.fit(sum, width)
            }
            Binary::Mul => self.product(id, left, right, width),
            Binary::Shl => {
                let by =
                    self.value(right)?.known().filter(|by| (0..i64::from(width.min(62))).contains(by))?;
                let product = self.value(left)?.times(1 << by)?;
                self.fit(product, width)
            }
            Binary::UDiv | Binary::URem | Binary::ShrLogical => {
                let (value, range) = self.unsigned(left, width)?;
                self.divide(id, op, value, range, right)
            }
            Binary::SDiv | Binary::SRem | Binary::ShrArithmetic => {
                let (value, range) = self.signed(left, width)?;
                // Shifts round down; divisions of negative numbers do not, and are left alone.
                (range.0 >= 0 || op == Binary::ShrArithmetic).then_some(())?;
                self.divide(id, op, value, range, right)
            }
            Binary::And => self.and(id, left, right, width),
            Binary::Or => self.or(id, left, right, width),
            Binary::UMin | Binary::UMax => {
                let (a, b) = (self.unsigned(left, width)?, self.unsigned(right, width)?);
                Some(self.choose(id, op == Binary::UMin, a, b))
            }
            Binary::SMin | Binary::SMax => {
                let (a, b) = (self.signed(left, width)?, self.signed(right, width)?);
                Some(self.choose(id, op == Binary::SMin, a, b))
            }
        }
    }

    fn product(&mut self, id: ExprId, left: ExprId, right: ExprId, width: u32) -> Option<Affine> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        let factor =
            |known: i64| if width == 32 && known > i64::from(i32::MAX) { known - (1 << 32) } else { known };
        let product = match (a.known(), b.known()) {
            (Some(known), _) => b.times(factor(known))?,
            (_, Some(known)) => a.times(factor(known))?,
            _ => {
                let ((a, b), (c, d)) = (a.range(&self.ranges)?, b.range(&self.ranges)?);
                let ends = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
                let (low, high) = (ends.iter().min()?, ends.iter().max()?);
                self.fresh(id, (*low, *high))
            }
        };
        self.fit(product, width)
    }

    /// Quotient or remainder, rounded down, by a known power of two or number.
    fn divide(
        &mut self,
        id: ExprId,
        op: Binary,
        value: Affine,
        (low, high): Range,
        by: ExprId,
    ) -> Option<Affine> {
        let by = self.value(by)?.known()?;
        let shift = matches!(op, Binary::ShrLogical | Binary::ShrArithmetic);
        let by = if shift { 1i64.checked_shl(u32::try_from(by).ok().filter(|by| *by < 62)?)? } else { by };
        if by <= 0 {
            return None;
        }
        let remainder = matches!(op, Binary::URem | Binary::SRem);
        Some(match (value.split(by, &self.ranges), remainder) {
            (Some((_, rest)), true) => rest,
            (Some((quotient, _)), false) => quotient,
            (None, true) => self.fresh(id, (0, (by - 1).min(high))),
            (None, false) => self.fresh(id, (low.div_euclid(by), high.div_euclid(by))),
        })
    }

    fn and(&mut self, id: ExprId, left: ExprId, right: ExprId, width: u32) -> Option<Affine> {
        let (a, b) = (self.unsigned(left, width), self.unsigned(right, width));
        // Less than either: one of the two is enough.
        let most = match (&a, &b) {
            (Some((_, a)), Some((_, b))) => a.1.min(b.1),
            (Some((_, one)), None) | (None, Some((_, one))) => one.1,
            (None, None) => return None,
        };
        let masked = |value: Option<(Affine, Range)>, mask: Option<(Affine, Range)>| {
            let mask = mask?.0.known().filter(|m| (m + 1).count_ones() == 1)?;
            value?.0.split(mask + 1, &self.ranges).map(|(_, rest)| rest)
        };
        let rest = masked(a.clone(), b.clone()).or_else(|| masked(b, a));
        Some(rest.unwrap_or_else(|| self.fresh(id, (0, most))))
    }

    fn or(&mut self, id: ExprId, left: ExprId, right: ExprId, width: u32) -> Option<Affine> {
        let ((a, (a_low, a_high)), (b, (b_low, b_high))) =
            (self.unsigned(left, width)?, self.unsigned(right, width)?);
        for (high_part, (low_part, most)) in [(&a, (&b, b_high)), (&b, (&a, a_high))] {
            let unit = u64::try_from(most).ok()?.checked_add(1)?.checked_next_power_of_two()?;
            let unit = i64::try_from(unit).ok()?;
            let apart =
                high_part.base % unit == 0 && high_part.terms.iter().all(|(_, times)| times % unit == 0);
            if apart {
                return high_part.plus(low_part, 1);
            }
        }
        let end = u64::try_from(a_high.max(b_high)).ok()?.checked_add(1)?.checked_next_power_of_two()?;
        Some(self.fresh(id, (a_low.max(b_low), i64::try_from(end).ok()? - 1)))
    }

    fn choose(&mut self, id: ExprId, least: bool, a: (Affine, Range), b: (Affine, Range)) -> Affine {
        let ((a, (a_low, a_high)), (b, (b_low, b_high))) = (a, b);
        match least {
            true if a_high <= b_low => a,
            true if b_high <= a_low => b,
            false if a_low >= b_high => a,
            false if b_low >= a_high => b,
            true => self.fresh(id, (a_low.min(b_low), a_high.min(b_high))),
            false => self.fresh(id, (a_low.max(b_low), a_high.max(b_high))),
        }
    }

    fn resize(&mut self, how: Resize, of: ExprId, from: u32, to: u32) -> Option<Affine> {
        if to <= from {
            let value = self.value(of)?;
            return self.fit(value, to);
        }
        match how {
            Resize::Unsigned => self.unsigned(of, from).map(|(value, _)| value),
            Resize::Signed => self.signed(of, from).map(|(value, _)| value),
        }
    }

    fn one_of(&mut self, id: ExprId, values: &[ExprId], condition: Option<ExprId>) -> Option<Affine> {
        if let ([yes, no], Some(condition)) = (values, condition)
            && let Some(truth) = self.truth(condition)
        {
            return self.value(if truth { *yes } else { *no });
        }
        let first = self.value(*values.first()?)?;
        let (mut same, (mut low, mut high)) = (true, first.range(&self.ranges)?);
        for other in &values[1..] {
            let other = self.value(*other)?;
            same &= other == first;
            let (least, most) = other.range(&self.ranges)?;
            (low, high) = (low.min(least), high.max(most));
        }
        Some(if same { first } else { self.fresh(id, (low, high)) })
    }

    fn counter(
        &mut self,
        id: ExprId,
        start: ExprId,
        step: ExprId,
        limit: Option<Limit>,
        width: u32,
    ) -> Option<Affine> {
        let step = self.value(step)?.known().filter(|step| (1..=i64::from(i32::MAX)).contains(step))?;
        let start = self.value(start)?;
        let (low, _) = start.range(&self.ranges)?;
        let limit = limit?;
        let read = if limit.signed { Self::signed } else { Self::unsigned };
        let (_, (_, end)) = read(self, limit.value, width)?;
        // The loop ends by the counter reaching the limit: one trip more than those that go in.
        let span = end.checked_add(i64::from(limit.included))?.checked_sub(low)?.max(0);
        let trips = span.checked_add(step - 1)? / step;
        let known = self.ranges.entry(Var::Trip(id)).or_insert((0, trips));
        *known = (known.0, known.1.min(trips));
        let value = start.plus(&Affine::of(0, Var::Trip(id), 1), step)?;
        self.fit(value, width)
    }

    /// Whether a condition holds, where that can be told.
    pub fn truth(&mut self, id: ExprId) -> Option<bool> {
        let exprs = self.exprs;
        match &exprs[id] {
            Expr::Not(of) => self.truth(*of).map(|truth| !truth),
            Expr::AllOf(a, b) => match (self.truth(*a), self.truth(*b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Expr::AnyOf(a, b) => match (self.truth(*a), self.truth(*b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Expr::Compare { order, signed, left, right, width } => {
                let read = if *signed { Self::signed } else { Self::unsigned };
                let ((_, a), (_, b)) = (read(self, *left, *width)?, read(self, *right, *width)?);
                compare(*order, a, b)
            }
            Expr::FloatLess(a, b) => self.float_less(*a, *b),
            _ => self.value(id)?.known().map(|value| value != 0),
        }
    }
}

fn compare(order: Order, (a_low, a_high): Range, (b_low, b_high): Range) -> Option<bool> {
    let apart = a_high < b_low || b_high < a_low;
    let one = a_low == a_high && b_low == b_high && a_low == b_low;
    match order {
        Order::Equal if apart => Some(false),
        Order::Equal => one.then_some(true),
        Order::NotEqual if apart => Some(true),
        Order::NotEqual => one.then_some(false),
        Order::Less if a_high < b_low => Some(true),
        Order::Less => (a_low >= b_high).then_some(false),
        Order::LessEqual if a_high <= b_low => Some(true),
        Order::LessEqual => (a_low > b_high).then_some(false),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}
