//! The choice of a variant: what cannot run is out, what was measured orders the rest, and each place has a reason.

use halite_ops::Operation;
use halite_sizes::{Aside, Size};
use halite_targets::Capabilities;

use crate::{Fitting, Nearness, Plan, Step, Tuning, Variant, cost::estimate, fit::fit, variants_of};

/// What became of a variant.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It can run.
    Runs {
        /// What is dispatched.
        plan: Plan,
        /// Why it has its place.
        why: String,
    },
    /// It cannot, and why.
    RuledOut(String),
}

/// A variant in the order of choice.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The variant.
    pub variant: &'static Variant,
    /// What became of it.
    pub verdict: Verdict,
}

impl Candidate {
    /// Its plan, when it can run.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.verdict {
            Verdict::Runs { plan, .. } => Some(plan),
            Verdict::RuledOut(_) => None,
        }
    }

    /// Microseconds that its plan is estimated to take, where there is an estimate.
    pub fn estimate(&self, operation: &Operation, target: &Capabilities) -> Option<f64> {
        estimate(operation, self.variant, self.plan()?, target)
    }
}

/// The class of what a tuning row has: it comes first.
const MEASURED: u32 = 0;

/// The variants of an operation, the one to use first; those that cannot run come last. Pure: the same arguments give the
/// same order.
pub fn rank(operation: &Operation, target: &Capabilities, tuning: &Tuning) -> Vec<Candidate> {
    ranked(operation, target, tuning).collect()
}

/// The same, one after the other. Reasons are written for those that are taken: of thousands of operations few have one that is
/// asked for.
pub fn ranked(
    operation: &Operation,
    target: &Capabilities,
    tuning: &Tuning,
) -> impl Iterator<Item = Candidate> {
    let candidates = judged(operation, target, tuning);
    candidates.into_iter().map(move |judged| judged.explained(operation, target))
}

fn judged(operation: &Operation, target: &Capabilities, tuning: &Tuning) -> Vec<Judged> {
    let signature = operation.signature();
    let row = tuning.row(operation, &target.target);
    // Variants that hold for one size alone come in where no other is there: each size would need a plan of its own.
    // What only the others need of sizes does not bind the one that is used.
    let all = |strict: Strict| -> Vec<Judged> {
        let judged = |variant: &'static Variant| {
            let is_out = !variant.signatures.contains(&signature) || !variant.needs.are_met(target);
            if is_out {
                Judged::out(variant)
            } else {
                Judged::new(variant, operation, target, place(variant, row.as_ref()), strict)
            }
        };
        variants_of(operation.name()).map(judged).collect()
    };
    let open = is_open(operation);
    let mut candidates = all(Strict { stays_open: open, turns_for_all: true });
    let others = [Strict { stays_open: open, turns_for_all: false }, Strict::default()];
    for less in others.into_iter().filter(|_| open) {
        if candidates.iter().all(|judged| judged.lost.0) {
            candidates = all(less);
        }
    }
    // Each size for which the fastest kernel does not do, of those that are known to come, would need a plan of its own.
    candidates.sort_by(|a, b| {
        let key = |one: &Judged| (one.lost, one.class, one.position, one.candidate.variant.order);
        let name = |one: &Judged| &one.candidate.variant.name;
        key(a).cmp(&key(b)).then_with(|| name(a).cmp(name(b)))
    });
    let shares_place = |variant: &Variant| {
        row.and_then(|found| found.place(&variant.name)).is_some_and(|(_, shares)| shares)
    };
    for equal in candidates.chunk_by_mut(|a, b| a.lost == b.lost) {
        estimated_first(equal, operation, target, |class, variant| {
            class == MEASURED && shares_place(variant)
        });
        estimated_first(equal, operation, target, |class, _| class != MEASURED);
    }
    if let Some(first) = candidates.first() {
        first.aside.keep();
    }
    candidates
}

/// The class and position of a variant, and why it has them where that is known.
fn place(variant: &Variant, row: Option<&Fitting<'_>>) -> (u32, u32, Option<String>) {
    let Some(found) = row else { return (1, variant.order, None) };
    let Some((position, _)) = found.place(&variant.name) else { return (1, variant.order, None) };
    let how = if found.row.documented { "documents advise for" } else { "was measured on" };
    let who = if found.nearness == Nearness::Relative { ", a relative" } else { "" };
    let why = format!("place {} of what {how} {}{who}", position + 1, found.row.target);
    (MEASURED, position as u32, Some(why))
}

/// Whether convolutions of 16-bit floats over images whose channels lie last run on matrix units of a target. Those of other devices
/// take such images many times slower.
pub fn multiplies_images(target: &Capabilities) -> bool {
    // One group, or groups of many channels; groups of few; and pictures.
    let can_run = |template: &str| {
        variants_of("conv2d").any(|variant| variant.template == template && variant.needs.are_met(target))
    };
    // Most targets have none: their list of variants need not be read.
    !target.cooperative_matrix.is_empty() && ["image", "grouped_last", "few_last"].into_iter().all(can_run)
}

/// What is asked of variants for open sizes as long as some variant has it.
#[derive(Clone, Copy, Default)]
struct Strict {
    /// To be for more than one size.
    stays_open: bool,
    /// To have loops that a target does not end, whatever data decide; else data that decide more are an error.
    turns_for_all: bool,
}

/// A variant with what its place depends on.
#[derive(Clone)]
struct Judged {
    /// Whether it cannot run, and how many of the sizes that it should be for it is not for.
    lost: (bool, usize),
    class: u32,
    position: u32,
    candidate: Candidate,
    /// What it needs of sizes.
    aside: Aside,
}

impl Judged {
    /// A variant with its class, position and reason.
    fn new(
        variant: &'static Variant,
        operation: &Operation,
        target: &Capabilities,
        (class, position, why): (u32, u32, Option<String>),
        strict: Strict,
    ) -> Judged {
        let why = why.unwrap_or_default();
        let (verdict, aside) = halite_sizes::aside(|| judge(variant, operation, target, why, strict));
        let lost = (matches!(verdict, Verdict::RuledOut(_)), aside.lost());
        Judged { lost, class, position, candidate: Candidate { variant, verdict }, aside }
    }

    /// A variant of another signature, or for other targets. Why is not said yet.
    fn out(variant: &'static Variant) -> Judged {
        let verdict = Verdict::RuledOut(String::new());
        Judged {
            lost: (true, 0),
            class: 1,
            position: variant.order,
            candidate: Candidate { variant, verdict },
            aside: Aside::default(),
        }
    }

    /// The variant, with a reason where none is said yet.
    fn explained(mut self, operation: &Operation, target: &Capabilities) -> Candidate {
        let variant = self.candidate.variant;
        match &mut self.candidate.verdict {
            Verdict::Runs { why, .. } if why.is_empty() => {
                *why = format!("not measured on such a target; {}", variant.note);
            }
            Verdict::RuledOut(why) if why.is_empty() => {
                let signature = operation.signature();
                *why = if variant.signatures.contains(&signature) {
                    format!("the target lacks {}", variant.needs.missing(target).join("; "))
                } else {
                    format!("computes {}, not {signature}", variant.signatures.join(", "))
                };
            }
            _ => {}
        }
        self.candidate
    }
}

/// Whether a tensor has sizes that are no numbers.
fn is_open(operation: &Operation) -> bool {
    let tensors = operation.inputs().into_iter().chain(operation.outputs());
    tensors.flat_map(|tensor| tensor.dims).any(|size| !size.is_constant())
}

/// What becomes of a variant, by what callers and data may decide.
fn judge(
    variant: &Variant,
    operation: &Operation,
    target: &Capabilities,
    why: String,
    strict: Strict,
) -> Verdict {
    let verdict = || halite_sizes::for_all_data(|| verdict(variant, operation, target, why, strict));
    let ((verdict, for_all), fixes) =
        if strict.stays_open { halite_sizes::without_fixing(verdict) } else { (verdict(), false) };
    let reason = match &verdict {
        Verdict::Runs { .. } if !for_all => "is for some of the sizes that data may decide, not for all",
        Verdict::Runs { .. } if fixes => "is for one of the sizes that callers may decide",
        _ => return verdict,
    };
    Verdict::RuledOut(reason.to_owned())
}

/// Orders those that were not measured and whose time can be estimated by it, in the places that they have together.
fn estimated_first(
    candidates: &mut [Judged],
    operation: &Operation,
    target: &Capabilities,
    is_open: impl Fn(u32, &Variant) -> bool,
) {
    let mut places = Vec::new();
    let mut estimated = Vec::new();
    for (place, entry) in candidates.iter().enumerate() {
        let candidate = &entry.candidate;
        if !is_open(entry.class, candidate.variant) {
            continue;
        }
        let time = candidate.plan().and_then(|plan| estimate(operation, candidate.variant, plan, target));
        if let Some(time) = time {
            places.push(place);
            estimated.push((time, place));
        }
    }
    estimated.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    for (time, place) in &estimated {
        let candidate = &mut candidates[*place].candidate;
        if let Verdict::Runs { why, .. } = &mut candidate.verdict {
            *why = format!("estimated at {time:.1} µs; {}", candidate.variant.note);
        }
    }
    let mut from: Vec<usize> = estimated.into_iter().map(|(_, place)| place).collect();
    for (index, place) in places.iter().enumerate() {
        let source = from[index];
        candidates.swap(*place, source);
        // What was here is there now.
        if let Some(moved) = from[index + 1..].iter_mut().find(|later| **later == *place) {
            *moved = source;
        }
    }
}

/// What becomes of a variant whose needs are met, for known sizes.
pub(crate) fn plain_verdict(variant: &Variant, operation: &Operation, target: &Capabilities) -> Verdict {
    verdict(variant, operation, target, "forced".to_owned(), Strict::default())
}

fn verdict(
    variant: &Variant,
    operation: &Operation,
    target: &Capabilities,
    why: String,
    strict: Strict,
) -> Verdict {
    let bindings = target.max_storage_buffers as usize;
    let plan = match variant.plan_of_own(operation).and_then(|plan| fit(plan, operation, variant, bindings)) {
        Ok(plan) => plan,
        Err(unfit) => return Verdict::RuledOut(unfit.to_string()),
    };
    let largest = operation.inputs().into_iter().chain(operation.outputs()).map(|t| t.bytes());
    let largest = largest
        .chain(plan.scratch.iter().copied())
        .fold(Size::constant(0), |most: Size, bytes| most.max(bytes));
    // Of what data decide it is promised.
    if !largest.stays_within(target.max_storage_buffer_bytes) {
        return Verdict::RuledOut(format!(
            "a tensor of {largest} bytes is more than one binding can hold there ({} bytes)",
            target.max_storage_buffer_bytes
        ));
    }
    let reason = plan.steps.iter().find_map(|step| beyond(step, target));
    match reason.or_else(|| ended(&plan, target, strict.turns_for_all)) {
        Some(reason) => Verdict::RuledOut(reason),
        None => Verdict::Runs { plan, why },
    }
}

/// What a dispatch asks for beyond a target's limits. The number of workgroups does not count: drivers split large dispatches.
fn beyond(step: &Step, target: &Capabilities) -> Option<String> {
    let push = step.push.len() * 4;
    (push > target.max_push_constants_bytes as usize)
        .then(|| format!("has {push} bytes of push constants; {} are there", target.max_push_constants_bytes))
}

/// Why a target would end loops of a plan before they are done. Of what data decide it is promised that it does not, unless it has
/// to be so `for_all` of it.
fn ended(plan: &Plan, target: &Capabilities, for_all: bool) -> Option<String> {
    let most = u64::from(target.max_loop_turns);
    // Where nothing ends loops, nothing is asked of sizes.
    let all_done = target.max_loop_turns == u32::MAX
        || if for_all { plan.turns.is_at_most(most) } else { plan.turns.stays_in_limit(most) };
    (!all_done).then(|| format!("has loops of {} turns, and the target ends loops after {most}", plan.turns))
}

#[cfg(test)]
mod tests {
    use halite_targets::Target;

    use super::*;

    #[test]
    fn what_cannot_run_is_out_with_the_reason_and_comes_last() {
        let operation = Operation::parse("matmul:m=64,n=64,k=64").unwrap();
        let target = Capabilities::of(Target::parse("cpu-swiftshader-unknown").unwrap());
        let ranked = rank(&operation, &target, Tuning::shipped());
        assert!(ranked[0].plan().is_some());
        let first_out = ranked.iter().position(|c| c.plan().is_none()).unwrap_or(ranked.len());
        assert!(ranked[first_out..].iter().all(|c| c.plan().is_none()));
    }

    #[test]
    fn needs_are_met_where_nothing_is_missing() {
        for triple in
            ["hopper-h200-linux", "cpu-llvmpipe-linux", "cpu-swiftshader-linux", "valhall-g78-android30"]
        {
            let target = Capabilities::of(Target::parse(triple).unwrap());
            for needs in crate::variants().map(|variant| &variant.needs) {
                assert_eq!(needs.are_met(&target), needs.missing(&target).is_empty(), "{triple}: {needs:?}");
            }
        }
    }

    #[test]
    fn images_are_multiplied_where_their_kernels_run() {
        let of = |triple: &str| Capabilities::of(Target::parse(triple).unwrap());
        let hopper = of("hopper-h200-linux");
        assert!(multiplies_images(&hopper));
        assert!(!multiplies_images(&of("cpu-llvmpipe-linux")));
        // The matrices alone do not say it: kernels ask for subgroups, features and shared memory, too.
        let mut narrow = hopper.clone();
        narrow.subgroup.sizes = vec![16];
        assert!(!multiplies_images(&narrow));
        let mut little = hopper;
        little.shared_memory_bytes = 8192;
        assert!(!multiplies_images(&little));
    }

    #[test]
    fn measurements_go_before_the_general_order() {
        let operation = Operation::parse("matmul:m=64,n=64,k=64").unwrap();
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let general = rank(&operation, &target, &Tuning::default());
        let runs: Vec<_> = general.iter().filter(|c| c.plan().is_some()).collect();
        let last = &runs.last().unwrap().variant.name;
        let rows = format!(
            r#"[{{"target":"hopper-unknown-unknown","operation":"matmul","signature":"{}","order":["{last}"],"source":"t"}}]"#,
            operation.signature()
        );
        let tuned = rank(&operation, &target, &Tuning::parse(&rows).unwrap());
        assert_eq!(&tuned[0].variant.name, last);
        let Verdict::Runs { why, .. } = &tuned[0].verdict else { panic!("it can run") };
        assert!(why.contains("hopper-unknown-unknown"), "{why}");
    }
}
