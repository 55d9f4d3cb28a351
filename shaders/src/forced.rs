//! Variants with other parameters than the list has: tilings that nobody put there yet, to be measured beside those of the list.

use std::collections::BTreeSet;

use halite_ops::Operation;
use halite_targets::Capabilities;

use crate::{Candidate, Params, Tuning, Unfit, Variant, Verdict, plans, select, variants};

/// What stands between the name of a variant and the parameters that it was given.
const MARK: char = '+';

impl Variant {
    /// The variant with some parameters in the place of its own, named `NAME+bm=160,bn=96`. It lives as long as those of the list.
    ///
    /// # Errors
    /// No variant of the template has such a parameter, or the template is none of those whose needs follow from parameters: products
    /// on matrix units.
    pub fn forced(&self, params: &[(String, u32)]) -> Result<&'static Variant, Unfit> {
        let alike = |v: &&Variant| v.operation == self.operation && v.template == self.template;
        let known: BTreeSet<&str> =
            variants().filter(alike).flat_map(|v| v.params.iter()).map(|(name, _)| name).collect();
        let mut forced = self.clone();
        for (name, value) in params {
            if !known.contains(name.as_str()) {
                let known: Vec<&str> = known.into_iter().collect();
                return Err(Unfit(format!("has no parameter '{name}'; there are {}", known.join(", "))));
            }
            forced.params.set(name, *value);
        }
        let (invocations, shared_bytes) = needs(&forced)?;
        forced.needs.invocations = invocations;
        forced.needs.shared_bytes = shared_bytes;
        let told: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        forced.name = format!("{}{MARK}{}", self.name, told.join(","));
        "with other parameters than the list has".clone_into(&mut forced.note);
        // Variants are known by reference everywhere; who forces some forces few.
        Ok(Box::leak(Box::new(forced)))
    }

    /// The variant of a name, of the list or forced.
    ///
    /// # Errors
    /// Says which name or parameter is unknown.
    pub fn named(name: &str) -> Result<&'static Variant, Unfit> {
        let (base, given) = name.split_once(MARK).unwrap_or((name, ""));
        let listed = variants().find(|variant| variant.name == base);
        let listed = listed.ok_or_else(|| Unfit(format!("'{base}' is no variant of the list")))?;
        if given.is_empty() { Ok(listed) } else { listed.forced(&parameters(given)?) }
    }
}

/// Reads `bm=160,bn=96`.
///
/// # Errors
/// Names the part that is no parameter with a number.
pub fn parameters(text: &str) -> Result<Vec<(String, u32)>, Unfit> {
    let one = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    let wrong = |part: &str| Unfit(format!("'{part}' is no parameter such as bm=128"));
    text.split(',').map(|part| one(part).ok_or_else(|| wrong(part))).collect()
}

/// The ranked variants of an operation, and behind them those of `extra` that are for it.
pub fn rank_with(
    operation: &Operation,
    target: &Capabilities,
    tuning: &Tuning,
    extra: &[&'static Variant],
) -> Vec<Candidate> {
    let mut candidates = select::rank(operation, target, tuning);
    let signature = operation.signature();
    let fits = |v: &&&'static Variant| v.operation == operation.name() && v.signatures.contains(&signature);
    candidates.extend(extra.iter().filter(fits).map(|variant| judged(variant, operation, target)));
    candidates.sort_by_key(|candidate| candidate.plan().is_none());
    candidates
}

fn judged(variant: &'static Variant, operation: &Operation, target: &Capabilities) -> Candidate {
    let missing = variant.needs.missing(target);
    let verdict = if missing.is_empty() {
        select::plain_verdict(variant, operation, target)
    } else {
        Verdict::RuledOut(format!("the target lacks {}", missing.join("; ")))
    };
    Candidate { variant, verdict }
}

/// Invocations and bytes of shared memory of a kernel with tiles on matrix units.
fn needs(variant: &Variant) -> Result<(u32, u32), Unfit> {
    let tiled = ["coop", "fragments", "points", "taps", "image", "image_fragments", "unfolded", "folded"];
    if !tiled.contains(&variant.template.as_str()) {
        return Err(Unfit(format!(
            "has the template '{}', whose parameters cannot be forced",
            variant.template
        )));
    }
    let bytes = variant.signatures.iter().any(|signature| signature.starts_with("i8"));
    plans::tile_needs(&variant.params, if bytes { 16 } else { 8 })
}

impl Params {
    fn set(&mut self, name: &str, value: u32) {
        self.0.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use halite_targets::Target;

    use super::*;

    fn tiled(variant: &&'static Variant) -> bool {
        needs(variant).is_ok() && variant.needs.matrix.is_some()
    }

    #[test]
    fn needs_of_parameters_are_those_of_the_list() {
        assert!(variants().filter(tiled).count() > 100);
        for variant in variants().filter(tiled) {
            let (invocations, shared) = needs(variant).expect("the filter asked");
            // The list leaves out what every device has, and knows how operands lie; what is forced has room for either way.
            assert_eq!(invocations.max(128), variant.needs.invocations.max(128), "{}", variant.name);
            let listed = variant.needs.shared_bytes.max(16384);
            assert!((listed..=listed * 6 / 5).contains(&shared.max(16384)), "{}: {shared}", variant.name);
        }
    }

    #[test]
    fn forced_variants_are_planned_and_found_by_name() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let operation = crate::parse("matmul:m=512,n=512,k=512,lhs=f16,rhs=f16,out=f16").unwrap();
        let name = "matmul.f16.coop128x128x64+bm=64,wm=32";
        let forced = Variant::named(name).unwrap();
        assert_eq!((forced.name.as_str(), forced.params.get("bm").unwrap()), (name, 64));
        let ranked = rank_with(&operation, &target, &Tuning::default(), &[forced]);
        let candidate = ranked.iter().find(|c| c.variant.name == name).unwrap();
        let estimate = candidate.estimate(&operation, &target).unwrap();
        assert!(candidate.plan().is_some() && estimate > 0.0);
        let huge = Variant::named("matmul.f16.coop128x128x64+bm=1024,bn=1024").unwrap();
        let ranked = rank_with(&operation, &target, &Tuning::default(), &[huge]);
        let Verdict::RuledOut(why) = &ranked.last().unwrap().verdict else { panic!("it does not fit") };
        assert!(why.contains("shared memory"), "{why}");
    }

    #[test]
    fn unknown_parameters_are_named() {
        let why = |name: &str| Variant::named(name).unwrap_err().to_string();
        assert!(why("matmul.f16.coop128x128x64+bq=1").contains("'bq'"));
        assert!(why("matmul.f16.coop128x128x64+bm").contains("'bm'"));
        assert!(why("matmul.f16.nothing").contains("no variant"));
        assert!(why("matmul.f32.tile64x64x16+bm=32").contains("tiled"));
        for zero in ["wm=0", "pieces=0", "bm=4294967295"] {
            assert!(!why(&format!("matmul.f16.coop128x128x64+{zero}")).is_empty());
        }
    }
}
