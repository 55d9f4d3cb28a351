//! How constants are stored: as data of the module, or as parameters in an archive beside it.

use std::collections::HashSet;

use bytes::Bytes;
use halite_abi::parameters::{KeyRecord, SpanRecord};
use halite_formats::Rope;

use super::module::Writer;
use crate::{
    ParameterArchive, ParameterStorage,
    plan::{
        pool::Pool,
        slabs::{Slab, Slabs},
    },
};

/// Where a slab's bytes come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Read-only data of the module, by ordinal.
    Data(u32),
    /// Parameters of a scope.
    Parameters {
        /// The scope.
        scope: String,
        /// Which ones, and where they go.
        tables: Tables,
    },
}

/// The tables of a gather of parameters.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// A [`KeyRecord`] of each.
    pub keys: Bytes,
    /// The keys.
    pub key_data: Bytes,
    /// A [`SpanRecord`] of each.
    pub spans: Bytes,
}

/// Stores the slabs of constants.
pub fn store(
    writer: &mut Writer,
    pool: &Pool,
    slabs: &Slabs,
    storage: &ParameterStorage,
) -> (Vec<Source>, Option<ParameterArchive>) {
    let slabs = &slabs.constant_slabs;
    let ParameterStorage::External { scope } = storage else {
        return (
            slabs.iter().map(|slab| Source::Data(writer.large_data(joined(pool, slab)))).collect(),
            None,
        );
    };
    let mut names = Names::default();
    let mut archive = ParameterArchive { scope: scope.clone(), entries: Vec::new() };
    let sources = slabs.iter().map(|slab| {
        let tables = tables(pool, slab, &mut names, &mut archive);
        Source::Parameters { scope: scope.clone(), tables }
    });
    let sources: Vec<_> = sources.collect();
    (sources, Some(archive).filter(|archive| !archive.entries.is_empty()))
}

/// The bytes of a slab: those of its constants, which stay where they are.
fn joined(pool: &Pool, slab: &Slab) -> Rope {
    let mut bytes = Rope::new();
    for (index, offset) in &slab.items {
        bytes.pad_to(*offset);
        bytes.push(pool.constants[*index].bytes.clone());
    }
    bytes.pad_to(slab.bytes);
    bytes
}

fn tables(pool: &Pool, slab: &Slab, names: &mut Names, archive: &mut ParameterArchive) -> Tables {
    let (mut keys, mut key_data, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for (index, offset) in &slab.items {
        let constant = &pool.constants[*index];
        let name = names.unique(&constant.name, *index);
        let key = KeyRecord { offset: key_data.len() as u32, length: name.len() as u32 };
        keys.extend(key.to_bytes());
        key_data.extend(name.as_bytes());
        let length = constant.bytes.len() as u64;
        spans.extend(SpanRecord { parameter_offset: 0, buffer_offset: *offset, length }.to_bytes());
        archive.entries.push((name, constant.bytes.clone()));
    }
    Tables { keys: keys.into(), key_data: key_data.into(), spans: spans.into() }
}

/// Keys that were given.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// A key like the name that no other constant has.
    fn unique(&mut self, name: &str, index: usize) -> String {
        let mut key = if name.is_empty() { format!("constant.{index}") } else { name.to_owned() };
        while !self.0.insert(key.clone()) {
            key = format!("{key}.{index}");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values, expression::Function as Call};

    use super::*;
    use crate::{
        CompileOptions, Control, Program, backend::vulkan::Vulkan, build::Builder, graph::TensorId,
        plan::plan,
    };

    fn word(bytes: &[u8], index: usize, size: usize) -> usize {
        let mut word = [0; 8];
        word[..size].copy_from_slice(&bytes[index * size..][..size]);
        u64::from_le_bytes(word) as usize
    }

    /// The bytes of a slab as a gather of parameters fills it.
    fn gathered(slab: &Slab, tables: &Tables, archive: &ParameterArchive) -> Vec<u8> {
        let mut filled = vec![0; slab.bytes as usize];
        for entry in 0..tables.keys.len() / 8 {
            let (start, length) = (word(&tables.keys, entry * 2, 4), word(&tables.keys, entry * 2 + 1, 4));
            let key = std::str::from_utf8(&tables.key_data[start..start + length]).unwrap();
            let (_, bytes) = archive.entries.iter().find(|(name, _)| name == key).unwrap();
            let [from, to, count] = [0, 1, 2].map(|i| word(&tables.spans, entry * 3 + i, 8));
            filled[to..to + count].copy_from_slice(&bytes[from..from + count]);
        }
        filled
    }

    #[test]
    fn parameters_beside_a_module_fill_the_same_memory_as_constants_in_it() {
        let mut b = Builder::new();
        let mut last = b.input("x", DType::F32.into(), &[64, 64]).unwrap();
        let constant = |b: &mut Builder, name: &str, dims: &[u64], start: f64| -> TensorId {
            let values = Values::Float((0..dims.iter().product()).map(|i: u64| start + i as f64).collect());
            b.constant(name, DType::F32.into(), dims, values.to_bytes(DType::F32).into()).unwrap()
        };
        // Two of one name, one that is packed at load, one that ends within an alignment.
        for (name, start) in [("w", 0.5), ("w", 1.5)] {
            let w = constant(&mut b, name, &[64, 64], start);
            last = b.matmul(last, w).unwrap();
        }
        let turned = constant(&mut b, "turned", &[200, 64], 0.25);
        let turned = b.transpose(turned, &[1, 0]).unwrap();
        last = b.matmul(last, turned).unwrap();
        let short = constant(&mut b, "", &[200], 3.0);
        last = b.binary(Call::Add, last, short).unwrap();
        b.output("y", last);
        let program = Program::of("main", b.finish().unwrap());
        let options = CompileOptions::default();
        let plan = plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap();
        let mut writer = Writer::new("module", Vec::new(), true);
        let storage = ParameterStorage::External { scope: "weights".to_owned() };
        let (sources, archive) = store(&mut writer, &plan.pool, &plan.slabs, &storage);
        let archive = archive.unwrap();
        assert_eq!(archive.entries.len(), 4);
        for (slab, source) in plan.slabs.constant_slabs.iter().zip(&sources) {
            let Source::Parameters { scope, tables } = source else { panic!("{source:?}") };
            assert_eq!(scope, "weights");
            assert_eq!(gathered(slab, tables, &archive), joined(&plan.pool, slab).to_vec());
        }
    }
}
