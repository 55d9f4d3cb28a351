//! What versions of a model share of what they compute at load: results with buffers of their own, found again by what they are
//! computed of.
//!
//! A version asks for such results before it computes them, and computes those that nobody has. What is read or computed only for
//! results that somebody has is left out.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use super::{
    memory::lies_apart,
    pool::{ConstantId, Known, PackedId, Pool},
};

/// Most operations that a shared result is computed by; of longer ones each version has its own.
const MOST_OPERATIONS: usize = 64;
/// Most bytes of the text that says how a result is computed.
const MOST_TEXT: usize = 1 << 16;

/// An operation at load whose results versions share.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its place in [`Pool::packings`].
    pub packing: usize,
    /// All operations that it takes, itself last.
    pub operations: Vec<usize>,
    /// How its results are computed: the same text for the same computation.
    pub recipe: String,
    /// The constants that are read, in the text's order.
    pub sources: Vec<ConstantId>,
}

/// What is shared, and what is done for it alone.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// What is asked for.
    pub units: Vec<Unit>,
    /// Sets of units. What has a set is done only if a unit of it is missing.
    pub sets: Vec<BTreeSet<usize>>,
    /// The set of each operation; without one it always runs.
    pub packings: Vec<Option<usize>>,
    /// The set of each constant that is read at load alone; without one it is always read.
    pub constants: Vec<Option<usize>>,
}

impl Shared {
    /// Nothing is shared.
    pub fn nothing(pool: &Pool) -> Shared {
        let (packings, constants) = (vec![None; pool.packings.len()], vec![None; pool.constants.len()]);
        Shared { packings, constants, ..Shared::default() }
    }

    /// What versions share of a pool's results.
    pub fn of(pool: &Pool) -> Shared {
        let mut shared = Shared::nothing(pool);
        let makers = makers(pool);
        let unit_of: Vec<Option<usize>> = (0..pool.packings.len())
            .map(|packing| {
                shared.units.push(unit(pool, &makers, packing)?);
                Some(shared.units.len() - 1)
            })
            .collect();
        let demands = demands(pool, &unit_of);
        let mut known = BTreeMap::new();
        for (packing, demand) in demands.packings.into_iter().enumerate() {
            shared.packings[packing] = shared.set(&mut known, demand);
        }
        for (constant, demand) in demands.constants.into_iter().enumerate() {
            let own = &pool.constants[constant];
            let large = !own.resident && lies_apart(own.bytes.len() as u64);
            shared.constants[constant] = shared.set(&mut known, demand.filter(|_| large));
        }
        shared
    }

    /// The results that calls need of a unit.
    pub fn results<'a>(&self, pool: &'a Pool, unit: usize) -> &'a [PackedId] {
        &pool.packings[self.units[unit].packing].outputs
    }

    fn set(
        &mut self,
        known: &mut BTreeMap<BTreeSet<usize>, usize>,
        demand: Option<BTreeSet<usize>>,
    ) -> Option<usize> {
        let demand = demand.filter(|units| !units.is_empty())?;
        let sets = &mut self.sets;
        Some(*known.entry(demand).or_insert_with_key(|units| {
            sets.push(units.clone());
            sets.len() - 1
        }))
    }
}

/// For which units something is needed; `None` for what is needed in any case.
type Demand = Option<BTreeSet<usize>>;

struct Demands {
    packings: Vec<Demand>,
    constants: Vec<Demand>,
}

/// The operation that computes each result.
fn makers(pool: &Pool) -> HashMap<PackedId, usize> {
    let each = pool.packings.iter().enumerate();
    each.flat_map(|(index, packing)| packing.outputs.iter().map(move |id| (*id, index))).collect()
}

/// For what each operation runs and each constant is read. An operation comes before those that read its results.
fn demands(pool: &Pool, unit_of: &[Option<usize>]) -> Demands {
    let mut of_packed: Vec<Demand> = vec![Some(BTreeSet::new()); pool.packed.len()];
    let mut demands = Demands {
        packings: vec![None; pool.packings.len()],
        constants: vec![Some(BTreeSet::new()); pool.constants.len()],
    };
    for (index, packing) in pool.packings.iter().enumerate().rev() {
        let demand = match unit_of[index] {
            Some(unit) => Some(BTreeSet::from([unit])),
            None => {
                let needed = packing.outputs.iter().any(|id| pool.packed[id.index()].resident);
                let mut demand = Some(BTreeSet::new()).filter(|_| !needed);
                packing.outputs.iter().for_each(|id| join(&mut demand, &of_packed[id.index()]));
                demand
            }
        };
        for input in &packing.inputs {
            match input {
                Known::Constant(id) => join(&mut demands.constants[id.index()], &demand),
                Known::Packed(id) => join(&mut of_packed[id.index()], &demand),
            }
        }
        demands.packings[index] = demand;
    }
    demands
}

fn join(demand: &mut Demand, other: &Demand) {
    match (demand.as_mut(), other) {
        (Some(units), Some(others)) => units.extend(others),
        _ => *demand = None,
    }
}

/// An operation as what is shared: all its results are large, and calls need them.
fn unit(pool: &Pool, makers: &HashMap<PackedId, usize>, packing: usize) -> Option<Unit> {
    let is_shared = |id: &PackedId| {
        let packed = &pool.packed[id.index()];
        packed.resident && lies_apart(packed.bytes)
    };
    let outputs = &pool.packings[packing].outputs;
    if outputs.is_empty() || !outputs.iter().all(is_shared) {
        return None;
    }
    let operations = operations(pool, makers, packing)?;
    let (mut recipe, mut sources) = (String::new(), Vec::new());
    for one in &operations {
        let packing = &pool.packings[*one];
        write!(recipe, "{:?}", packing.operation).ok()?;
        for input in &packing.inputs {
            match input {
                Known::Constant(id) => {
                    let place = sources.iter().position(|known| known == id).unwrap_or(sources.len());
                    if place == sources.len() {
                        sources.push(*id);
                    }
                    write!(recipe, " constant {place}").ok()?;
                }
                Known::Packed(id) => {
                    let maker = makers.get(id)?;
                    let operation = operations.binary_search(maker).ok()?;
                    let output = pool.packings[*maker].outputs.iter().position(|own| own == id)?;
                    write!(recipe, " result {output} of {operation}").ok()?;
                }
            }
        }
        recipe.push('\n');
        if recipe.len() > MOST_TEXT {
            return None;
        }
    }
    Some(Unit { packing, operations, recipe, sources })
}

/// All operations that one takes, in an order in which they can run. `None` where there are many.
fn operations(pool: &Pool, makers: &HashMap<PackedId, usize>, packing: usize) -> Option<Vec<usize>> {
    let (mut found, mut open) = (BTreeSet::from([packing]), vec![packing]);
    while let Some(next) = open.pop() {
        for input in &pool.packings[next].inputs {
            let Known::Packed(id) = input else { continue };
            let maker = *makers.get(id)?;
            if found.insert(maker) {
                open.push(maker);
            }
        }
        if found.len() > MOST_OPERATIONS {
            return None;
        }
    }
    Some(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use halite_ops::{DType, Operation};

    use super::*;
    use crate::{Control, SourceLocation, Stage, graph::Shape, graph::Tensor};

    const LARGE: u64 = 1 << 15;

    fn constant(pool: &mut Pool, first: u8) -> Known {
        let tensor = Tensor::new("w", DType::U8.into(), Shape::new([LARGE]));
        let control = Control::new();
        let bytes = Bytes::from(vec![first; LARGE as usize]);
        Known::Constant(pool.constant(&tensor, &bytes, control.at(Stage::Planning)).unwrap())
    }

    fn packed(pool: &mut Pool, inputs: &[Known], bytes: u64, resident: bool) -> Known {
        let sizes: Vec<String> = inputs.iter().map(|_| LARGE.to_string()).collect();
        let text = format!("concat:outer=1,sizes={},inner=1,dtype=u8", sizes.join("x"));
        let operation = Operation::parse(&text).unwrap();
        let made = pool.pack(&operation, inputs.to_vec(), &[bytes], &SourceLocation::default());
        pool.packed[made[0].index()].resident |= resident;
        Known::Packed(made[0])
    }

    #[test]
    fn what_is_done_for_shared_results_alone_is_known() {
        let mut pool = Pool::default();
        let [a, b, c, d] = [1, 2, 3, 4].map(|first| constant(&mut pool, first));
        let between = packed(&mut pool, &[a, b], 2 * LARGE, false);
        packed(&mut pool, &[between, c], 3 * LARGE, true);
        packed(&mut pool, &[c], LARGE, true);
        // Small ones are each version's own, and so is all that they take.
        packed(&mut pool, &[d, c, b], 64, true);
        let shared = Shared::of(&pool);
        let units: Vec<_> = shared.units.iter().map(|unit| (unit.packing, &unit.operations[..])).collect();
        assert_eq!(units, [(1, &[0, 1][..]), (2, &[2])]);
        assert_eq!(shared.units[0].sources.len(), 3);
        let sets = |all: &[Option<usize>]| -> Vec<Option<Vec<usize>>> {
            all.iter().map(|set| set.map(|set| shared.sets[set].iter().copied().collect())).collect()
        };
        assert_eq!(sets(&shared.packings), [Some(vec![0]), Some(vec![0]), Some(vec![1]), None]);
        assert_eq!(sets(&shared.constants), [Some(vec![0]), None, None, None]);
        // The same text for the same computation of other constants.
        let mut other = Pool::default();
        let [x, y, z] = [7, 8, 9].map(|first| constant(&mut other, first));
        packed(&mut other, &[z], LARGE, true);
        let between = packed(&mut other, &[x, y], 2 * LARGE, false);
        packed(&mut other, &[between, z], 3 * LARGE, true);
        let others = Shared::of(&other);
        let recipes =
            |shared: &Shared| shared.units.iter().map(|unit| unit.recipe.clone()).collect::<BTreeSet<_>>();
        assert_eq!(recipes(&shared), recipes(&others));
    }
}
