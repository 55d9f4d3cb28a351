//! Where constants lie: in a few large buffers, those that calls need apart from those that loading needs. Where constants are
//! parameters, those that calls need and that are not small have buffers of their own, so that modules of one model share them;
//! and so has what versions share of what is computed of them.

use std::collections::{BTreeMap, BTreeSet};

use halite_abi::BINDING_ALIGNMENT;

use super::{
    memory::{lies_apart, whole},
    pool::Pool,
    shared::Shared,
};
use crate::{CompileError, control::Watch};

/// Most bytes of a slab with more than one thing in it: allocations of this size work on every Vulkan device
/// (`maxMemoryAllocationSize`).
const MOST_BYTES: u64 = 1 << 30;

/// A buffer that constants share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slab {
    /// Bytes.
    pub bytes: u64,
    /// Whether calls need it; otherwise it goes when the module is loaded.
    pub resident: bool,
    /// Whether it is one parameter or one result as it is, and no other version of the model needs a copy of it.
    pub apart: bool,
    /// The set of what is shared ([`Shared::sets`]) for which it is needed; without one it is always needed.
    pub set: Option<usize>,
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
    /// What is shared of what is computed has buffers of its own.
    ///
    /// # Errors
    /// The work was ended.
    pub(crate) fn of(
        pool: &Pool,
        external: bool,
        shared: &Shared,
        watch: Watch<'_>,
    ) -> Result<Slabs, CompileError> {
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
        let mut sets = shared.constants.clone();
        for (part, (root, _)) in &inside {
            if sets[*part] != sets[*root] {
                sets[*root] = None;
            }
        }
        let whole = needed.iter().copied().filter(|i| !inside.contains_key(i));
        let constant = |index: usize| {
            let (bytes, resident) = (pool.constants[index].bytes.len() as u64, resident[index]);
            let set = sets[index].filter(|_| !resident);
            Item { index, bytes, resident, apart: external && resident && lies_apart(bytes), set }
        };
        let constants: Vec<Item> = whole.map(constant).collect();
        (slabs.constant_slabs, slabs.constants) = fill(&constants, pool.constants.len());
        for (part, (root, offset)) in inside {
            let (slab, start) = slabs.constants[root];
            slabs.constants[part] = (slab, start + offset);
        }
        let apart: BTreeSet<usize> = (0..shared.units.len())
            .flat_map(|unit| shared.results(pool, unit).iter().map(|id| id.index()))
            .collect();
        let packed = pool.packed.iter().enumerate().filter(|(_, p)| p.resident);
        let result =
            |(index, bytes)| Item { index, bytes, resident: true, apart: apart.contains(&index), set: None };
        let packed: Vec<Item> = packed.map(|(index, p)| result((index, p.bytes))).collect();
        (slabs.packed_slabs, slabs.packed) = fill(&packed, pool.packed.len());
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

/// Something that needs a place.
struct Item {
    /// By which its place is found.
    index: usize,
    bytes: u64,
    /// Whether calls need it.
    resident: bool,
    /// Whether it has a slab of its own.
    apart: bool,
    /// The set for which it is needed.
    set: Option<usize>,
}

/// Slabs for items, and the place of each by index. What calls need comes first, and what is needed for the same set is together.
fn fill(items: &[Item], count: usize) -> (Vec<Slab>, Vec<(u32, u64)>) {
    let mut slabs: Vec<Slab> = Vec::new();
    let mut places = vec![(0, 0); count];
    let mut groups: BTreeMap<(bool, Option<usize>), Vec<&Item>> = BTreeMap::new();
    for item in items {
        if item.apart {
            places[item.index] = (slabs.len() as u32, 0);
            let items = vec![(item.index, 0)];
            slabs.push(Slab { bytes: item.bytes, resident: true, apart: true, set: None, items });
        } else {
            groups.entry((!item.resident, item.set)).or_default().push(item);
        }
    }
    for ((passing, set), items) in groups {
        let begin = slabs.len();
        for Item { index, bytes, .. } in items {
            let open = slabs[begin..].last().map(|slab| slab.bytes.next_multiple_of(BINDING_ALIGNMENT));
            let fits = open.is_some_and(|offset| offset.saturating_add(whole(*bytes)) <= MOST_BYTES);
            if !fits {
                slabs.push(Slab { resident: !passing, set, ..Slab::default() });
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

    fn items(all: &[(u64, bool, bool)]) -> Vec<Item> {
        let each = all.iter().enumerate();
        each.map(|(index, (bytes, resident, apart))| Item {
            index,
            bytes: *bytes,
            resident: *resident,
            apart: *apart,
            set: None,
        })
        .collect()
    }

    #[test]
    fn slabs_are_filled_up_to_the_limit() {
        let all = [(5, true), (MOST_BYTES, true), (6, false), (7, true), (8, true)];
        let (slabs, places) = fill(&items(&all.map(|(bytes, resident)| (bytes, resident, false))), 6);
        assert_eq!(places, [(0, 0), (1, 0), (3, 0), (2, 0), (2, 256), (0, 0)]);
        let sizes: Vec<_> = slabs.iter().map(|slab| (slab.bytes, slab.resident)).collect();
        assert_eq!(sizes, [(8, true), (MOST_BYTES, true), (256 + 8, true), (8, false)]);
    }

    #[test]
    fn what_lies_apart_comes_first_in_slabs_of_its_own() {
        let all = [
            (64, true, true),
            (8, true, false),
            (64, false, false),
            (65, true, false),
            (80, true, true),
            (4, true, false),
        ];
        let (slabs, places) = fill(&items(&all), 6);
        let found: Vec<_> = slabs.iter().map(|slab| (slab.bytes, slab.resident, slab.apart)).collect();
        let together = (512 + 4, true, false);
        assert_eq!(found, [(64, true, true), (80, true, true), together, (64, false, false)]);
        assert_eq!(places, [(0, 0), (2, 0), (3, 0), (2, 256), (1, 0), (2, 512)]);
        assert_eq!([16384, 16380, 16385].map(lies_apart), [true, false, false]);
    }

    #[test]
    fn what_is_needed_for_the_same_set_lies_together() {
        let mut all = items(&[(64, false, false); 4]);
        (all[1].set, all[3].set) = (Some(0), Some(0));
        let (slabs, places) = fill(&all, 4);
        assert_eq!(slabs.iter().map(|slab| slab.set).collect::<Vec<_>>(), [None, Some(0)]);
        assert_eq!(places, [(0, 0), (1, 0), (0, 256), (1, 256)]);
    }
}
