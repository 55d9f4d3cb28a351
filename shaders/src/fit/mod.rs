//! Making plans fit devices with few storage buffers for a kernel: Vulkan promises 4. Places that bind the same memory share a
//! binding; what is left over lies together in one buffer, behind each other.

mod split;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use halite_ops::{DType, Operation, TensorDesc, concat::Concat};
use halite_sizes::{Size, aside};
use halite_spirv::{NewBinding, rebind, words_from_bytes};

use crate::{Module, Plan, Slot, Step, Unfit, Variant, plans::epilogue, variants_of};

/// Where tensors begin in a buffer that several share: a multiple of every element's and vector's size.
const ALIGNMENT: u64 = 256;

/// Most bytes of a buffer that has room for the largest of open sizes: code has the places in it, so they are the same for all sizes.
const MOST_ROOM: u64 = 64 << 20;

/// A plan of a variant for the operation whose steps bind at most `most` storage buffers each.
///
/// # Errors
/// Why it cannot be had.
pub(crate) fn fit(plan: Plan, operation: &Operation, variant: &Variant, most: usize) -> Result<Plan, Unfit> {
    if plan.steps.iter().all(|step| step.bindings.len() <= most) {
        return Ok(plan);
    }
    if let Operation::Elementwise(elementwise) = operation {
        return split::split(elementwise, variant, most);
    }
    let alone = Shared::default();
    if plan.steps.iter().all(|step| alone.count(step) <= most) {
        return rebound(plan, &alone);
    }
    if let Some(apart) = epilogue::apart(operation, variant) {
        let apart = apart?;
        if apart.steps.iter().all(|step| alone.count(step) <= most) {
            return rebound(apart, &alone);
        }
    }
    let shared = Shared::of(&plan, operation, most)?;
    let mut copies = shared.copies()?;
    if !copies.is_empty() && plan.independent {
        return Err(too_many(most));
    }
    let mut made = rebound(plan, &shared)?;
    copies.append(&mut made.steps);
    let scratch = vec![shared.bytes.into()];
    Ok(Plan { steps: copies, scratch, independent: made.independent, updates: false, turns: made.turns })
}

fn too_many(most: usize) -> Unfit {
    Unfit(format!("binds more than {most} storage buffers, the most that a kernel can bind there"))
}

/// A buffer that takes the place of several: of all scratch memory of a plan, and of copies of inputs.
#[derive(Debug, Default)]
struct Shared {
    /// Where each scratch buffer begins.
    scratch: Vec<u64>,
    /// Copied inputs: which, where, and how many words.
    inputs: Vec<(usize, u64, Size)>,
    bytes: u64,
}

impl Shared {
    /// All scratch memory, and as many inputs, small ones first, as have to go there: with room for the largest of open sizes; where that
    /// is too much, for the sizes at hand, to which they are fixed then.
    fn of(plan: &Plan, operation: &Operation, most: usize) -> Result<Shared, Unfit> {
        let largest = |size: Size| size.most().max(0).cast_unsigned();
        let roomy = Shared::with_room(plan, operation, most, &largest)?;
        if roomy.bytes <= MOST_ROOM {
            return Ok(roomy);
        }
        Shared::with_room(plan, operation, most, &|size| size.exact())
    }

    fn with_room(
        plan: &Plan,
        operation: &Operation,
        most: usize,
        room: &dyn Fn(Size) -> u64,
    ) -> Result<Shared, Unfit> {
        let mut shared = Shared::default();
        for bytes in &plan.scratch {
            let start = shared.take(room(*bytes));
            shared.scratch.push(start);
        }
        let sizes: Vec<Size> = operation.inputs().iter().map(TensorDesc::bytes).collect();
        while let Some(step) = plan.steps.iter().find(|step| shared.count(step) > most) {
            let left = step.bindings.iter().filter_map(|slot| match slot {
                Slot::Input(input) if shared.place(*slot).is_none() => Some(*input),
                _ => None,
            });
            let small = left.min_by_key(|input| (sizes[*input].value(), *input));
            let input = small.ok_or_else(|| too_many(most))?;
            let words = sizes[input].div_ceil(4);
            let start = shared.take(room(words).saturating_mul(4));
            shared.inputs.push((input, start, words));
        }
        Ok(shared)
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let start = self.bytes;
        self.bytes = start.saturating_add(bytes).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
        start
    }

    /// Where in the buffer a slot's memory is, if it is there.
    fn place(&self, slot: Slot) -> Option<u64> {
        match slot {
            Slot::Input(input) => self.inputs.iter().find(|(own, ..)| *own == input).map(|(_, at, _)| *at),
            Slot::Scratch(index) => self.scratch.get(index).copied(),
            Slot::Output(_) => None,
        }
    }

    /// What a slot is bound by, and where it begins there.
    fn bound(&self, slot: Slot) -> (Slot, u64) {
        self.place(slot).map_or((slot, 0), |at| (Slot::Scratch(0), at))
    }

    /// Buffers that a step binds.
    fn count(&self, step: &Step) -> usize {
        let mut seen: Vec<Slot> = Vec::new();
        for slot in &step.bindings {
            let (bound, _) = self.bound(*slot);
            if !seen.contains(&bound) {
                seen.push(bound);
            }
        }
        seen.len()
    }

    /// Steps that copy the inputs to their places.
    fn copies(&self) -> Result<Vec<Step>, Unfit> {
        let all: Result<Vec<_>, Unfit> = self.inputs.iter().map(|input| copy(*input)).collect();
        Ok(all?.into_iter().flatten().collect())
    }
}

/// A step that copies an input to its place; none where it has no elements.
fn copy((input, start, words): (usize, u64, Size)) -> Result<Option<Step>, Unfit> {
    // Pieces of the buffer in order: what is in front of the input, and the input.
    let before = [start / 4].into_iter().filter(|before| *before > 0).map(Size::from);
    let sizes: Vec<Size> = before.chain([words]).collect();
    let join = Operation::Concat(Concat { sizes, ..Concat::new(1, &[], 1, DType::U32) });
    let mut variants: Vec<&Variant> = variants_of(join.name()).filter(|v| v.needs.is_baseline()).collect();
    variants.sort_by_key(|variant| variant.order);
    // Copies that ask for multiples of a number would be for those sizes alone.
    let made = variants.iter().filter_map(|variant| {
        let (plan, noted) = aside(|| variant.plan(&join));
        plan.ok().map(|plan| (plan, noted))
    });
    let mut made: Vec<_> = made.collect();
    let general = made.iter().position(|(_, noted)| noted.is_free()).unwrap_or(0);
    let chosen = (general < made.len()).then(|| made.swap_remove(general));
    let mut step = chosen
        .and_then(|(mut plan, noted)| {
            noted.keep();
            plan.steps.pop()
        })
        .ok_or_else(|| Unfit("has inputs that cannot be copied together".to_owned()))?;
    step.bindings = vec![Slot::Input(input), Slot::Scratch(0)];
    Ok(step.grid.iter().all(|groups| *groups != 0).then_some(step))
}

/// Code whose bindings were moved, and what it was made of, by where that lies and by its new bindings.
type Moved = HashMap<(usize, Vec<NewBinding>), (Module, Arc<[u32]>)>;

/// The plan with one binding for each buffer of a step.
fn rebound(mut plan: Plan, shared: &Shared) -> Result<Plan, Unfit> {
    // Steps of a recurrence are the same few kernels over the same few places, thousands of times.
    // They are known by where their code lies, which is held beside what was made of it.
    let mut made = Moved::new();
    for step in &mut plan.steps {
        let mut buffers: Vec<Slot> = Vec::new();
        let mut bindings = Vec::new();
        for slot in &step.bindings {
            let (buffer, offset) = shared.bound(*slot);
            let binding = buffers.iter().position(|own| *own == buffer).unwrap_or_else(|| {
                buffers.push(buffer);
                buffers.len() - 1
            });
            bindings.push(NewBinding { binding: binding as u32, offset });
        }
        let same =
            |(index, new): (usize, &NewBinding)| *new == NewBinding { binding: index as u32, offset: 0 };
        if !bindings.iter().enumerate().all(same) {
            let key = (step.module.place(), bindings);
            let words = match made.get(&key) {
                Some((_, words)) => words.clone(),
                None => {
                    let words = moved(&step.module, &key.1)?;
                    made.insert(key, (step.module.clone(), words.clone()));
                    words
                }
            };
            step.module = Module::Emitted(words);
        }
        step.bindings = buffers;
    }
    Ok(plan)
}

/// Kernels of the library whose bindings were joined, by the name of their build: most operations of a network have the same few,
/// and every variant of each is asked for. There are as many as builds and ways to join their bindings.
static JOINED: LazyLock<Mutex<Joined>> = LazyLock::new(Mutex::default);

/// By the name of the build and the binding that each of its bindings became.
type Joined = HashMap<(&'static str, Vec<u32>), Arc<[u32]>>;

/// The code with its bindings elsewhere.
fn moved(module: &Module, bindings: &[NewBinding]) -> Result<Arc<[u32]>, Unfit> {
    let key = match module {
        // With offsets, which sizes decide, there is no end of ways.
        Module::Compiled { name, .. } if bindings.iter().all(|new| new.offset == 0) => {
            Some((*name, bindings.iter().map(|new| new.binding).collect::<Vec<u32>>()))
        }
        _ => None,
    };
    let joined = || JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(words) = key.as_ref().and_then(|key| joined().get(key).cloned()) {
        return Ok(words);
    }
    let unfit = |why: String| Unfit(format!("has code whose bindings cannot be moved: {why}"));
    let words = words_from_bytes(&module.to_bytes()).map_err(|e| unfit(e.to_string()))?;
    let made: Arc<[u32]> = rebind(&words, bindings).map_err(|e| unfit(e.to_string()))?.into();
    if let Some(key) = key {
        joined().insert(key, made.clone());
    }
    Ok(made)
}
