//! What functions and targets share: constants, each stored once, and the operations on constants that run once, when a
//! module is loaded.

use std::collections::HashMap;

use bytes::Bytes;
use halite_ops::Operation;

use crate::{CompileError, SourceLocation, control::Watch, graph::Tensor};

/// Bytes from each end of a constant that are looked at before whole constants are compared.
const SAMPLE: usize = 4096;
/// Bytes that are compared between two looks at whether to go on.
const CHUNK: usize = 1 << 22;

/// A constant of the [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantId(pub(super) u32);

impl ConstantId {
    /// Its place in [`Pool::constants`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A result of an operation that runs when the module is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackedId(pub(super) u32);

impl PackedId {
    /// Its place in [`Pool::packed`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Bytes that are known when the module is written.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its name in the model; may be empty.
    pub name: String,
    /// Its elements.
    pub bytes: Bytes,
    /// Whether calls read it; otherwise it is needed for loading alone.
    pub resident: bool,
}

/// Bytes that are computed when the module is loaded.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Bytes of its elements.
    pub bytes: u64,
    /// Whether calls read it; otherwise it is needed for loading alone.
    pub resident: bool,
}

/// What an operation at load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// A constant.
    Constant(ConstantId),
    /// The result of another such operation.
    Packed(PackedId),
}

/// An operation that runs when the module is loaded.
#[derive(Clone, Debug)]
pub struct Packing {
    /// What is computed.
    pub operation: Operation,
    /// What it reads, in the operation's order.
    pub inputs: Vec<Known>,
    /// What it defines, in the operation's order.
    pub outputs: Vec<PackedId>,
    /// Where in the model it comes from.
    pub location: SourceLocation,
}

/// Constants and operations on them, each once for all functions, versions and targets.
#[derive(Debug, Default)]
pub struct Pool {
    /// The constants, in the order of their first use.
    pub constants: Vec<Constant>,
    /// The results of [`Pool::packings`].
    pub packed: Vec<Packed>,
    /// The operations, in an order in which they can run.
    pub packings: Vec<Packing>,
    by_sample: HashMap<(u64, u64), Vec<ConstantId>>,
    by_operation: HashMap<(Operation, Vec<Known>), Vec<PackedId>>,
}

impl Pool {
    /// The constant with these bytes, which is the same for equal bytes.
    ///
    /// # Errors
    /// The work was ended.
    pub(crate) fn constant(
        &mut self,
        tensor: &Tensor,
        bytes: &Bytes,
        watch: Watch<'_>,
    ) -> Result<ConstantId, CompileError> {
        let key = (bytes.len() as u64, sample(bytes));
        let candidates = self.by_sample.entry(key).or_default();
        for id in candidates.iter() {
            if same(&self.constants[id.index()].bytes, bytes, watch)? {
                return Ok(*id);
            }
        }
        let id = ConstantId(self.constants.len() as u32);
        candidates.push(id);
        self.constants.push(Constant { name: tensor.name.clone(), bytes: bytes.clone(), resident: false });
        Ok(id)
    }

    /// The results of an operation on constants, which runs once however often it is asked for.
    pub fn pack(
        &mut self,
        operation: &Operation,
        inputs: Vec<Known>,
        outputs: &[u64],
        location: &SourceLocation,
    ) -> Vec<PackedId> {
        let key = (operation.clone(), inputs.clone());
        if let Some(ids) = self.by_operation.get(&key) {
            return ids.clone();
        }
        let mut ids = Vec::new();
        for bytes in outputs {
            ids.push(PackedId(self.packed.len() as u32));
            self.packed.push(Packed { bytes: *bytes, resident: false });
        }
        let outputs = ids.clone();
        self.packings.push(Packing {
            operation: operation.clone(),
            inputs,
            outputs,
            location: location.clone(),
        });
        self.by_operation.insert(key, ids.clone());
        ids
    }

    /// Whether each constant is needed: by calls, or for something at load.
    pub fn needed(&self) -> Vec<bool> {
        let mut needed: Vec<bool> = self.constants.iter().map(|constant| constant.resident).collect();
        for known in self.packings.iter().flat_map(|packing| &packing.inputs) {
            if let Known::Constant(id) = known {
                needed[id.index()] = true;
            }
        }
        needed
    }
}

/// Whether two constants have the same bytes. They may be large, and in files that are read now.
fn same(one: &Bytes, other: &Bytes, watch: Watch<'_>) -> Result<bool, CompileError> {
    if std::ptr::eq(one.as_ptr(), other.as_ptr()) && one.len() == other.len() {
        return Ok(true);
    }
    for (one, other) in one.chunks(CHUNK).zip(other.chunks(CHUNK)) {
        watch.check()?;
        if one != other {
            return Ok(false);
        }
    }
    Ok(one.len() == other.len())
}

/// A number that equal bytes share: FNV-1a of the ends.
fn sample(bytes: &[u8]) -> u64 {
    let head = &bytes[..bytes.len().min(SAMPLE)];
    let tail = &bytes[bytes.len().saturating_sub(SAMPLE)..];
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    head.iter().chain(tail).fold(0xCBF2_9CE4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;
    use crate::{Control, Stage};

    fn tensor(name: &str) -> Tensor {
        Tensor::new(name, DType::U8.into(), crate::graph::Shape::new([3]))
    }

    fn add(pool: &mut Pool, name: &str, bytes: &[u8]) -> ConstantId {
        let control = Control::new();
        let watch = control.at(Stage::Planning);
        pool.constant(&tensor(name), &Bytes::copy_from_slice(bytes), watch).unwrap()
    }

    #[test]
    fn equal_bytes_are_stored_once() {
        let mut pool = Pool::default();
        let a = add(&mut pool, "a", &[1, 2, 3]);
        let b = add(&mut pool, "b", &[1, 2, 3]);
        let c = add(&mut pool, "c", &[1, 2, 4]);
        assert_eq!((a, pool.constants.len()), (b, 2));
        assert_ne!(a, c);
        let mut long = vec![7; 3 * SAMPLE];
        let d = add(&mut pool, "d", &long);
        long[SAMPLE + 5] = 8;
        assert_ne!(add(&mut pool, "e", &long), d, "the middle counts");
    }

    #[test]
    fn equal_operations_run_once() {
        let mut pool = Pool::default();
        let a = add(&mut pool, "a", &[1, 2, 3]);
        let turn = Operation::parse("concat:outer=1,sizes=1x2,inner=1,dtype=u8").unwrap();
        let location = SourceLocation::default();
        let one = pool.pack(&turn, vec![Known::Constant(a)], &[3], &location);
        assert_eq!(pool.pack(&turn, vec![Known::Constant(a)], &[3], &location), one);
        let two = pool.pack(&turn, vec![Known::Packed(one[0])], &[3], &location);
        assert_ne!(one, two);
        assert_eq!(pool.packings.len(), 2);
    }
}
