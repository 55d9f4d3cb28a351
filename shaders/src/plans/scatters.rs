//! What operations that scatter share: how an update is combined with what is there, on the host, and the sharing of
//! work. `include/scatters.glsl` is the other half.

use halite_sizes::{Size, is_worth};

use super::moves::Mover;
use crate::{
    Params, Slot, Step, Unfit,
    plan::{MOST_TURNS, narrow},
};

/// Places for each update from which on it takes longer to clear their claims than to go through the updates: a guess. On an H200 a turn
/// takes some 0.3 µs, in which 150,000 claims are cleared; processors and phones have less bandwidth.
const MOST_PLACES: u64 = 4096;

/// Fails where updates are so few, or places so many, that updates rather come one after the other. `least` is the kernel's parameter.
pub(super) fn check_many(params: &Params, updates: Size, places: Size) -> Result<(), Unfit> {
    let least = u64::from(params.get("least")?);
    if !updates.is_data() && !is_worth(|| updates >= least) {
        return Err(Unfit(format!("is for {least} updates and more, and these are {updates}")));
    }
    let most = if updates.is_data() { Size::from(least) } else { updates } * MOST_PLACES;
    if !places.is_data() && !is_worth(|| places <= most) {
        return Err(Unfit(format!("is for up to {MOST_PLACES} places for each update, not {places}")));
    }
    Ok(())
}

/// Claims to places, a word for each (`include/claims.glsl`).
pub(super) struct Claims<'a> {
    /// The kernel that clears and makes them.
    pub(super) build: &'a str,
    /// Places.
    pub(super) of: Size,
    /// What it is told behind `PLACES`.
    pub(super) push: &'a [Size],
}

impl Claims<'_> {
    /// Bytes of scratch memory for them.
    pub(super) fn bytes(&self) -> Result<Size, Unfit> {
        Ok(narrow("a number of places", self.of)?.max(1) * 4)
    }

    /// Two dispatches: one clears them, one makes those of updates of these sizes. `constants` says what either has.
    pub(super) fn steps<const N: usize>(
        &self,
        params: &Params,
        sizes: &[Size],
        constants: impl Fn(bool) -> [u32; N],
    ) -> Result<[Step; 2], Unfit> {
        let step = |clears: bool, sizes: &[Size]| {
            let bindings = vec![Slot::Input(1), Slot::Scratch(0)];
            Mover::new(self.build, params, sizes)?.by_unit().step(&constants(clears), self.push, bindings)
        };
        Ok([step(true, &[self.of])?, step(false, sizes)?])
    }
}

/// Invocations that share the places which the same indices tell, so that a device is busy: a power of two, at most about
/// one for each update. Each reads all of these indices, so there are not many.
pub(super) fn shares(columns: u64, updates: u64) -> u32 {
    let wanted = (16384 / columns.max(1)).clamp(1, updates.clamp(1, 1024));
    1 << wanted.ilog2()
}

/// Most dispatches for updates whose number data decide.
const MOST_OF_DATA: u64 = 16;

/// First and end of the updates that each dispatch goes through.
pub(crate) fn turns(updates: impl Into<Size>) -> Vec<[Size; 2]> {
    let updates = updates.into();
    let count = match updates.is_data() {
        true => (updates.most().max(1) as u64).div_ceil(MOST_TURNS).min(MOST_OF_DATA),
        false => updates.max(1).div_ceil(MOST_TURNS).exact(),
    };
    let at = |i: u64| if i == count { updates } else { updates.min(i * MOST_TURNS) };
    (0..count).map(|i| [if i == 0 { 0.into() } else { at(i) }, at(i + 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_columns_are_shared() {
        assert_eq!(
            (shares(1, 1_000_000), shares(1, 3), shares(20_000, 9), shares(5000, 100)),
            (1024, 2, 1, 2)
        );
        assert_eq!(shares(0, 0), 1);
    }

    #[test]
    fn claims_are_for_many_updates_of_not_too_many_places() {
        let params: Params = serde_json::from_str(r#"{"least": 32}"#).unwrap();
        let fits = |updates: u64, places: u64| check_many(&params, updates.into(), places.into()).is_ok();
        assert!(fits(32, 100_000) && fits(2048, 4 << 20));
        assert!(!fits(31, 100) && !fits(32, 1 << 20));
    }

    #[test]
    fn loops_end_before_processors_end_them() {
        let numbers = |updates: u64| -> Vec<[u64; 2]> {
            turns(updates).into_iter().map(|range| range.map(Size::value)).collect()
        };
        assert_eq!(numbers(60_000), [[0, 60_000]]);
        assert_eq!(numbers(137_984), [[0, 60_000], [60_000, 120_000], [120_000, 137_984]]);
        assert_eq!(numbers(0), [[0, 0]]);
    }
}
