//! What conditions say of the values that they compare.

use super::{
    affine::{Affine, Range},
    expr::{Expr, ExprId, Order},
    values::Values,
};

/// Conditions within conditions deeper than this say nothing.
const MOST_DEPTH: u32 = 32;

impl Values<'_> {
    /// Takes a condition for given. `false` when it cannot be.
    pub fn assume(&mut self, condition: ExprId, wanted: bool) -> bool {
        if self.truth(condition) == Some(!wanted) {
            return false;
        }
        self.narrow(condition, wanted, 0);
        self.forget();
        self.ranges.values().all(|(low, high)| low <= high)
    }

    fn narrow(&mut self, condition: ExprId, wanted: bool, depth: u32) {
        let exprs = self.exprs;
        match &exprs[condition] {
            _ if depth > MOST_DEPTH => {}
            Expr::Not(of) => self.narrow(*of, !wanted, depth + 1),
            Expr::AllOf(a, b) if wanted => {
                self.narrow(*a, true, depth + 1);
                self.narrow(*b, true, depth + 1);
            }
            Expr::AnyOf(a, b) if !wanted => {
                self.narrow(*a, false, depth + 1);
                self.narrow(*b, false, depth + 1);
            }
            Expr::Compare { order, signed, left, right, width } => {
                let read = if *signed { Self::signed } else { Self::unsigned };
                let (Some((a, a_range)), Some((b, b_range))) =
                    (read(self, *left, *width), read(self, *right, *width))
                else {
                    return;
                };
                // `below(x, y, n)` says x + n <= y.
                let mut below = |x: (ExprId, &Affine, Range), y: (ExprId, &Affine, Range), by: i64| {
                    self.at_most(x.0, x.1, y.2.1 - by);
                    self.at_least(y.0, y.1, x.2.0 + by);
                };
                let (left, right) = ((*left, &a, a_range), (*right, &b, b_range));
                match (order, wanted) {
                    (Order::Less, true) => below(left, right, 1),
                    (Order::LessEqual, true) => below(left, right, 0),
                    (Order::Less, false) => below(right, left, 0),
                    (Order::LessEqual, false) => below(right, left, 1),
                    (Order::Equal, true) | (Order::NotEqual, false) => {
                        below(left, right, 0);
                        below(right, left, 0);
                    }
                    (Order::Equal, false) | (Order::NotEqual, true) => {}
                }
            }
            _ => {}
        }
    }

    fn at_most(&mut self, id: ExprId, value: &Affine, most: i64) {
        self.tell(id, (i64::MIN, most));
        // Each variable, with the others where they make the sum smallest.
        let Some((low, _)) = value.range(&self.ranges) else { return };
        for (var, times) in &value.terms {
            let Some(range) = self.ranges.get_mut(var) else { continue };
            let Some(room) = most.checked_sub(low) else { continue };
            match times {
                1.. => range.1 = range.1.min(range.0.saturating_add(room.div_euclid(*times))),
                _ => range.0 = range.0.max(range.1.saturating_sub(room.div_euclid(-times))),
            }
        }
    }

    fn at_least(&mut self, id: ExprId, value: &Affine, least: i64) {
        self.tell(id, (least, i64::MAX));
        let Some((_, high)) = value.range(&self.ranges) else { return };
        for (var, times) in &value.terms {
            let Some(range) = self.ranges.get_mut(var) else { continue };
            let Some(room) = high.checked_sub(least) else { continue };
            match times {
                1.. => range.0 = range.0.max(range.1.saturating_sub(room.div_euclid(*times))),
                _ => range.1 = range.1.min(range.0.saturating_add(room.div_euclid(-times))),
            }
        }
    }

    fn tell(&mut self, id: ExprId, (low, high): Range) {
        let known = self.told.entry(id).or_insert((i64::MIN, i64::MAX));
        *known = (known.0.max(low), known.1.min(high));
    }
}
