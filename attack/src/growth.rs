//! Whether memory grows with work: how steep its levels are behind the first third of the work.
//!
//! What is lost is lost by work, so levels are put in order by that and not by the clock: a run that got little done at first has
//! not settled after a third of its time. The first third is there for caches to fill. Of all pairs of levels behind it the median
//! slope counts: one piece of work may leave a cache fuller than others, and what is taken once, such as the stacks of a driver's
//! threads, is a step that most pairs do not see. What is lost again and again, they do.

/// What was held when so much work had been done.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Pieces of work.
    pub work: u64,
    /// Bytes.
    pub held: u64,
}

/// How much growth is none: a part of what is held, as 10 for a tenth, and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bound(pub u64, pub u64);

/// What is held in the middle third and in the last, by how much it grows with a third of the work, and by how much it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    pub middle: u64,
    pub last: u64,
    pub grown: u64,
    pub most: u64,
}

/// Levels of a third that say something.
const FEWEST: usize = 3;

impl Growth {
    /// Of levels in the order of time; `None` where there are too few of them.
    pub fn of(levels: &[Level], bound: Bound) -> Option<Growth> {
        let all = levels.last()?.work;
        let (first, second) = (all.div_ceil(3), (2 * all).div_ceil(3));
        let held = |from: u64, to: u64| {
            let within = levels.iter().filter(|level| (from..to).contains(&level.work));
            median(within.map(|level| level.held).collect())
        };
        let (middle, last) = (held(first, second)?, held(second, u64::MAX)?);
        let settled: Vec<Level> = levels.iter().filter(|level| level.work >= first).copied().collect();
        let grown = (slope(&settled)? * first as f64).max(0.0) as u64;
        Some(Growth { middle, last, grown, most: middle / bound.0 + bound.1 })
    }

    /// Whether it is none.
    pub fn is_none(&self) -> bool {
        self.grown <= self.most
    }
}

/// Bytes for a piece of work: the median over all pairs of levels between which work was done (Theil and Sen).
fn slope(levels: &[Level]) -> Option<f64> {
    let pairs =
        levels.iter().enumerate().flat_map(|(at, one)| levels[at + 1..].iter().map(move |two| (one, two)));
    let done = pairs.filter(|(one, two)| two.work > one.work);
    let mut slopes: Vec<f64> =
        done.map(|(one, two)| (two.held as f64 - one.held as f64) / (two.work - one.work) as f64).collect();
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

fn median(mut of: Vec<u64>) -> Option<u64> {
    of.sort_unstable();
    (of.len() >= FEWEST).then(|| of[of.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound(10, 8 << 20);

    fn growth(held: impl Fn(u64) -> u64) -> Growth {
        let levels: Vec<Level> = (1..=60).map(|i| Level { work: i * 100, held: held(i * 100) }).collect();
        Growth::of(&levels, BOUND).expect("there are enough")
    }

    #[test]
    fn what_is_lost_with_every_piece_of_work_is_growth() {
        // 16 KiB for each of 6,000 pieces, beside noise that is larger than what a level loses.
        let noise = |work: u64| (work / 100 * 7919 % 13) << 20;
        assert!(!growth(|work| (100 << 20) + work * (16 << 10) + noise(work)).is_none());
        assert!(growth(|work| (100 << 20) + noise(work)).is_none());
    }

    #[test]
    fn what_fills_in_the_first_third_is_no_growth_and_what_goes_on_is() {
        let fills = |end: u64| move |work: u64| (50 << 20) + work.min(end) * (64 << 10);
        assert!(growth(fills(2000)).is_none());
        assert!(!growth(fills(6000)).is_none());
    }

    #[test]
    fn a_late_start_by_the_clock_is_none_in_work() {
        // Two thirds of the time nearly nothing is done; then caches fill, and stay.
        let work = |i: u64| if i < 40 { i } else { (i - 39) * 300 };
        let held = |work: u64| (50 << 20) + work.min(1800) * (128 << 10);
        let levels: Vec<Level> = (0..60).map(|i| Level { work: work(i), held: held(work(i)) }).collect();
        assert!(Growth::of(&levels, BOUND).is_some_and(|growth| growth.is_none()));
    }

    #[test]
    fn what_is_taken_once_is_none_and_what_is_taken_again_is() {
        let steps = |at: &'static [u64]| {
            move |work: u64| (100 << 20) + at.iter().filter(|at| work >= **at).count() as u64 * (500 << 20)
        };
        assert!(growth(steps(&[3100])).is_none());
        assert!(!growth(steps(&[2700, 4500])).is_none());
    }

    #[test]
    fn few_levels_say_nothing() {
        let levels = [1, 2, 3, 4, 5].map(|work| Level { work, held: 1 });
        assert_eq!(Growth::of(&levels, BOUND), None);
        assert_eq!(Growth::of(&[], BOUND), None);
        assert_eq!(Growth::of(&[Level { work: 0, held: 1 }; 60], BOUND), None, "nothing was done");
    }
}
