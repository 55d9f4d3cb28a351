//! Compares with the original's code for the same operation: same inputs, same device, in turns.

use halite_hal::Result;
use halite_ops::Operation;
use halite_shaders::Candidate;

use super::{
    bench::Bench,
    check::{Reference, magnitudes},
    original::Original,
    result::{Against, Row},
    timing::{Recorded, Side, measure},
};

impl Bench {
    /// Measures the original's code in turns with the first and the fastest variant, all on buffers of their own that stay
    /// the same: its compiler repeats dispatches on one set. `None` when no compiler was given; the words say why there is
    /// no such code.
    pub(super) fn against(
        &self,
        operation: &Operation,
        candidates: &[Candidate],
        rows: &[Row],
        inputs: &[Vec<u8>],
        reference: Option<&Reference>,
    ) -> Result<Option<std::result::Result<Against, String>>> {
        let Some(compiler) = &self.options().original else { return Ok(None) };
        let original = match Original::new(compiler, self.device(), operation, inputs)? {
            Ok(original) => original,
            Err(why) => return Ok(Some(Err(why))),
        };
        let (bytes, mut theirs) = match original.run(&self.options().pace) {
            Ok(run) => run,
            Err(why) => return Ok(Some(Err(why))),
        };
        let checked = match reference {
            None => Ok("nothing".to_owned()),
            Some(other) => {
                let compared = other.compare(operation, &magnitudes(operation, inputs), &[bytes]);
                compared.map(|()| other.name().to_owned())
            }
        };
        let names = chosen(rows);
        let plan = |name: &&str| candidates.iter().find(|c| c.variant.name == **name)?.plan();
        let mut prepared = Vec::new();
        for plan in names.iter().filter_map(plan) {
            prepared.push(self.prepared(operation, plan, inputs, 1)?);
        }
        let mut ours = Vec::new();
        for prepared in &mut prepared {
            ours.push(Recorded::new(prepared.job(), &self.options().pace)?);
        }
        let mut sides: Vec<&mut dyn Side> = vec![&mut theirs];
        sides.extend(ours.iter_mut().map(|side| side as &mut dyn Side));
        let mut timings = measure(&mut sides, &self.options().pace)?.into_iter();
        let original = timings.next().unwrap_or_default();
        Ok(Some(Ok(Against { original, checked, ours: names.into_iter().zip(timings).collect() })))
    }
}

/// The first choice of those that were right, and the fastest where it is another.
fn chosen(rows: &[Row]) -> Vec<&'static str> {
    let right = |row: &Row| Some((row.variant, row.place, row.outcome.as_ref().ok()?.timing.median));
    let right: Vec<_> = rows.iter().filter_map(right).collect();
    let first = right.iter().min_by_key(|(_, place, _)| *place);
    let fastest = right.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    let mut names: Vec<&'static str> = first.into_iter().chain(fastest).map(|(name, ..)| *name).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Details, Measured, Timing},
        *,
    };

    fn row(variant: &'static str, place: usize, median: Option<f64>) -> Row {
        let measured =
            |median| Measured { timing: Timing { median, ..Timing::default() }, checked: String::new() };
        Row {
            variant,
            place,
            details: Details::default(),
            outcome: median.map(measured).ok_or_else(|| "wrong".to_owned()),
        }
    }

    #[test]
    fn wrong_variants_are_not_compared() {
        let rows = [row("a", 1, None), row("b", 2, Some(3.0)), row("c", 3, Some(2.0))];
        assert_eq!(chosen(&rows), ["b", "c"]);
        assert_eq!(chosen(&rows[..2]), ["b"]);
        assert!(chosen(&rows[..1]).is_empty());
    }

    #[test]
    fn ratios_are_of_what_took_turns() {
        let of = |median| Timing { median, ..Timing::default() };
        let against = Against { original: of(6.0), checked: Ok(String::new()), ours: vec![("a", of(2.0))] };
        assert_eq!((against.ratio("a"), against.ratio("b")), (Some(3.0), None));
    }
}
