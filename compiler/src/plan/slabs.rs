//! Where constants lie: in a few large buffers, those that calls need apart from those that loading needs. Where constants are
//! parameters, those that calls need and that are not small have buffers of their own, so that modules of one model share them.

use std::collections::BTreeMap;

use halite_abi::BINDING_ALIGNMENT;

use super::{memory::whole, pool::Pool};
use crate::{CompileError, control::Watch};

/// Most bytes of a slab with more than one thing in it: allocations of this size work on every Vulkan device
/// (`maxMemoryAllocationSize`).
const MOST_BYTES: u64 = 1 << 30;
/// Fewest bytes of a constant that has a buffer of its own where there are such.
const APART_BYTES: u64 = 16 << 10;

/// A buffer that constants share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// Bytes.
    pub bytes: u64,
    /// Whether calls need it; otherwise it goes when the module is loaded.
    pub resident: bool,
    /// Whether it is one parameter as it is, and no other version of the model needs a copy of it.
    pub apart: bool,
    /// What is in it, by index, and where.
    pub items: Vec<(usize, u64)>,
}

/// The places of all constants. They are the same for all targets.
#[derive(Clone, Debug, Default)]
pub struct Slabs {
    /// Slabs of constants.
    pub constant_slabs: Vec<Slab>,
    /// Slab and offset of each constant.
    pub constants: Vec<(u32, u64)>,
    /// Slabs of what is computed at load and needed by calls.
    pub packed_slabs: Vec<Slab>,
    /// Slab and offset of each result of loading; those that calls do not need have none, and stand at 0.
    pub packed: Vec<(u32, u64)>,
}

impl Slabs {
    /// Gives the constants of a pool their places. Constants that nothing reads get none. `external`: they are parameters.
    ///
    /// # Errors
    /// The work was ended.
    pub(crate) fn of(pool: &Pool, external: bool, watch: Watch<'_>) -> Result<Slabs, CompileError> {
        let mut slabs = Slabs::default();
        let needed = pool.needed();
        let needed: Vec<usize> = (0..pool.constants.len()).filter(|i| needed[*i]).collect();
        watch.check()?;
        let inside = inside(pool, &needed);
        // What has a part that calls need is needed by calls.
        let mut resident: Vec<bool> = pool.constants.iter().map(|constant| constant.resident).collect();
        for (part, (root, _)) in &inside {
            resident[*root] |= pool.constants[*part].resident;
        }
        watch.check()?;
        let whole = needed.iter().copied().filter(|i| !inside.contains_key(i));
        let constants: Vec<(usize, u64, bool)> =
            whole.map(|i| (i, pool.constants[i].bytes.len() as u64, resident[i])).collect();
        let least = if external { APART_BYTES } else { u64::MAX };
        (slabs.constant_slabs, slabs.constants) = fill(&constants, pool.constants.len(), least);
        for (part, (root, offset)) in inside {
            let (slab, start) = slabs.constants[root];
            slabs.constants[part] = (slab, start + offset);
        }
        let packed = pool.packed.iter().enumerate().filter(|(_, p)| p.resident);
        let packed: Vec<_> = packed.map(|(i, p)| (i, p.bytes, true)).collect();
        (slabs.packed_slabs, slabs.packed) = fill(&packed, pool.packed.len(), u64::MAX);
        Ok(slabs)
    }
}

/// Constants that are parts of others by the place of their bytes, where these can be bound: of which, and where in it.
fn inside(pool: &Pool, needed: &[usize]) -> BTreeMap<usize, (usize, u64)> {
    let range = |i: usize| pool.constants[i].bytes.as_ptr_range();
    let mut order = needed.to_vec();
    order.sort_by_key(|i| (range(*i).start, std::cmp::Reverse(pool.constants[*i].bytes.len()), *i));
    let mut inside = BTreeMap::new();
    let mut root: Option<usize> = None;
    for index in order {
        let own = range(index);
        let found = root.filter(|root| own.start < range(*root).end && own.end <= range(*root).end);
        let offset = found.map(|root| (own.start.addr() - range(root).start.addr()) as u64);
        match (found, offset) {
            (Some(root), Some(offset)) if offset.is_multiple_of(BINDING_ALIGNMENT) => {
                inside.insert(index, (root, offset));
            }
            (Some(_), _) => {}
            _ => root = Some(index),
        }
    }
    inside
}

/// Slabs for items (index, bytes, resident), and the place of each by index. Residents of `least` whole words are apart.
fn fill(items: &[(usize, u64, bool)], count: usize, least: u64) -> (Vec<Slab>, Vec<(u32, u64)>) {
    let mut slabs: Vec<Slab> = Vec::new();
    let mut places = vec![(0, 0); count];
    let is_apart = |bytes: u64, resident: bool| resident && bytes >= least && whole(bytes) == bytes;
    for (index, bytes, _) in items.iter().filter(|(_, bytes, resident)| is_apart(*bytes, *resident)) {
        places[*index] = (slabs.len() as u32, 0);
        slabs.push(Slab { bytes: *bytes, resident: true, apart: true, items: vec![(*index, 0)] });
    }
    for wanted in [true, false] {
        let begin = slabs.len();
        let own =
            |(_, bytes, resident): &&(usize, u64, bool)| *resident == wanted && !is_apart(*bytes, *resident);
        for (index, bytes, _) in items.iter().filter(own) {
            let open = slabs[begin..].last().map(|slab| slab.bytes.next_multiple_of(BINDING_ALIGNMENT));
            let fits = open.is_some_and(|offset| offset.saturating_add(whole(*bytes)) <= MOST_BYTES);
            if !fits {
                slabs.push(Slab { resident: wanted, ..Slab::default() });
            }
            let number = slabs.len() - 1;
            let slab = &mut slabs[number];
            let offset = slab.bytes.next_multiple_of(BINDING_ALIGNMENT);
            slab.bytes = offset + whole(*bytes);
            slab.items.push((*index, offset));
            places[*index] = (number as u32, offset);
        }
    }
    (slabs, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_filled_up_to_the_limit() {
        let items = [(0, 5, true), (1, MOST_BYTES, true), (2, 6, false), (3, 7, true), (4, 8, true)];
        let (slabs, places) = fill(&items, 6, u64::MAX);
        assert_eq!(places, [(0, 0), (1, 0), (3, 0), (2, 0), (2, 256), (0, 0)]);
        let sizes: Vec<_> = slabs.iter().map(|slab| (slab.bytes, slab.resident)).collect();
        assert_eq!(sizes, [(8, true), (MOST_BYTES, true), (256 + 8, true), (8, false)]);
    }

    #[test]
    fn what_calls_need_of_parameters_lies_apart_unless_it_is_small_or_no_whole_words() {
        let items = [(0, 64, true), (1, 8, true), (2, 64, false), (3, 65, true), (4, 80, true), (5, 4, true)];
        let (slabs, places) = fill(&items, 6, 64);
        let found: Vec<_> = slabs.iter().map(|slab| (slab.bytes, slab.resident, slab.apart)).collect();
        let together = (512 + 4, true, false);
        assert_eq!(found, [(64, true, true), (80, true, true), together, (64, false, false)]);
        assert_eq!(places, [(0, 0), (2, 0), (3, 0), (2, 256), (1, 0), (2, 512)]);
    }
}
