//! Making plans fit devices with few storage buffers for a kernel: Vulkan promises 4. Places that bind the same memory share a
//! binding; what is left over lies together in one buffer, behind each other.

mod split;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use halite_ops::{DType, Operation, concat::Concat};
use halite_spirv::{NewBinding, rebind, words_from_bytes};

use crate::{Module, Plan, Slot, Step, Unfit, Variant, plans::epilogue, variants_of};

/// Where tensors begin in a buffer that several share: a multiple of every element's and vector's size.
const ALIGNMENT: u64 = 256;

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
    inputs: Vec<(usize, u64, u64)>,
    bytes: u64,
}

impl Shared {
    /// All scratch memory, and as many inputs, small ones first, as have to go there.
    fn of(plan: &Plan, operation: &Operation, most: usize) -> Result<Shared, Unfit> {
        let mut shared = Shared::default();
        for bytes in &plan.scratch {
            let start = shared.take(bytes.exact());
            shared.scratch.push(start);
        }
        let sizes: Vec<u64> = operation.inputs().iter().map(|tensor| tensor.bytes().exact()).collect();
        while let Some(step) = plan.steps.iter().find(|step| shared.count(step) > most) {
            let left = step.bindings.iter().filter_map(|slot| match slot {
                Slot::Input(input) if shared.place(*slot).is_none() => Some(*input),
                _ => None,
            });
            let input = left.min_by_key(|input| (sizes[*input], *input)).ok_or_else(|| too_many(most))?;
            let words = sizes[input].div_ceil(4);
            let start = shared.take(words.saturating_mul(4));
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
        // Pieces of the buffer in order: what is in front of an input, and the input.
        let (mut sizes, mut wanted, mut end) = (Vec::new(), Vec::new(), 0);
        for (input, start, words) in &self.inputs {
            sizes.extend([start / 4 - end, *words]);
            wanted.push((sizes.len() - 1, *input));
            end = start / 4 + words;
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let join = Operation::Concat(Concat::new(1, &sizes, 1, DType::U32));
        let mut variants: Vec<&Variant> =
            variants_of(join.name()).filter(|v| v.needs.is_baseline()).collect();
        variants.sort_by_key(|variant| variant.order);
        let plan = variants.iter().find_map(|variant| variant.plan(&join).ok());
        let mut steps =
            plan.ok_or_else(|| Unfit("has inputs that cannot be copied together".to_owned()))?.steps;
        let copy = |(piece, input): &(usize, usize)| {
            let mut step = steps.remove(*piece);
            // Pieces behind it keep their numbers.
            steps.insert(*piece, step.clone());
            step.bindings = vec![Slot::Input(*input), Slot::Scratch(0)];
            step
        };
        Ok(wanted.iter().map(copy).filter(|step| step.grid.iter().all(|groups| *groups != 0)).collect())
    }
}

/// The plan with one binding for each buffer of a step.
fn rebound(mut plan: Plan, shared: &Shared) -> Result<Plan, Unfit> {
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
            step.module = Module::Emitted(moved(&step.module, &bindings)?);
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
