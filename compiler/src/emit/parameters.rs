//! How constants are stored: as data of the module, or as parameters in an archive beside it.

use std::collections::{HashMap, HashSet};

use halite_abi::parameters::{KeyRecord, SpanRecord};
use halite_formats::Rope;

use super::module::Writer;
use crate::{
    CompileError, ParameterArchive, ParameterStorage,
    plan::{
        pool::{ConstantId, Pool},
        slabs::{Slab, Slabs},
    },
};

/// Where a slab's bytes come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Read-only data of the module, by ordinal.
    Data(u32),
    /// Parameters, which are gathered in the slab.
    Parameters(Tables),
    /// A buffer that the runtime makes of a parameter, by its place among those of [`Stored::apart`].
    Apart(usize),
}

/// Which parameters are read, and where they go.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// A [`KeyRecord`] of each.
    pub keys: Vec<u8>,
    /// The keys.
    pub key_data: Vec<u8>,
    /// A [`SpanRecord`] of each.
    pub spans: Vec<u8>,
}

impl Tables {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.keys.len() / KeyRecord::SIZE
    }

    /// Adds all of a parameter.
    fn push(&mut self, name: &str, buffer_offset: u64, length: u64) {
        self.push_span(name, SpanRecord { parameter_offset: 0, buffer_offset, length });
    }

    fn push_span(&mut self, name: &str, span: SpanRecord) {
        let key = KeyRecord { offset: self.key_data.len() as u32, length: name.len() as u32 };
        self.keys.extend(key.to_bytes());
        self.key_data.extend(name.as_bytes());
        self.spans.extend(span.to_bytes());
    }
}

/// How the slabs of constants are stored.
#[derive(Debug, Default)]
pub struct Stored {
    /// Where each comes from.
    pub sources: Vec<Source>,
    /// The scope of parameters.
    pub scope: String,
    /// Those that have buffers of their own.
    pub apart: Tables,
    /// What lies beside the module.
    pub archive: Option<ParameterArchive>,
    /// The key of each constant that lies there.
    keys: HashMap<usize, String>,
}

impl Stored {
    /// Which parameters constants are, or which parts of parameters.
    ///
    /// # Errors
    /// One of them is no parameter.
    pub fn sources(
        &self,
        pool: &Pool,
        slabs: &Slabs,
        constants: &[ConstantId],
    ) -> Result<Tables, CompileError> {
        let mut tables = Tables::default();
        for id in constants {
            let (slab, offset) = slabs.constants[id.index()];
            let items = slabs.constant_slabs.get(slab as usize).map_or(&[][..], |slab| &slab.items);
            // Some are parts of others.
            let whole = items.iter().filter(|(_, start)| *start <= offset).max_by_key(|(_, start)| *start);
            let known = whole.and_then(|(index, start)| Some((self.keys.get(index)?, *start)));
            let missing = || CompileError::Write(format!("constant {} is no parameter", id.index()));
            let (key, start) = known.ok_or_else(missing)?;
            let length = pool.constants[id.index()].bytes.len() as u64;
            let parameter_offset = offset - start;
            tables.push_span(key, SpanRecord { parameter_offset, buffer_offset: 0, length });
        }
        Ok(tables)
    }
}

/// Stores the slabs of constants.
pub fn store(writer: &mut Writer, pool: &Pool, slabs: &Slabs, storage: &ParameterStorage) -> Stored {
    let slabs = &slabs.constant_slabs;
    let mut stored = Stored::default();
    let ParameterStorage::External { scope } = storage else {
        let data = slabs.iter().map(|slab| Source::Data(writer.large_data(joined(pool, slab))));
        stored.sources = data.collect();
        return stored;
    };
    stored.scope.clone_from(scope);
    let mut names = Names::default();
    let mut archive = ParameterArchive { scope: scope.clone(), entries: Vec::new() };
    for slab in slabs {
        let mut gathered = Tables::default();
        let place = stored.apart.count();
        let tables = if slab.apart { &mut stored.apart } else { &mut gathered };
        for (index, offset) in &slab.items {
            let constant = &pool.constants[*index];
            let name = names.unique(&constant.name, *index);
            tables.push(&name, *offset, constant.bytes.len() as u64);
            stored.keys.insert(*index, name.clone());
            archive.entries.push((name, constant.bytes.clone()));
        }
        stored.sources.push(if slab.apart { Source::Apart(place) } else { Source::Parameters(gathered) });
    }
    stored.archive = Some(archive).filter(|archive| !archive.entries.is_empty());
    stored
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
    use std::ops::Range;

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

    /// The bytes of a slab as a gather of parameters fills it, or as one of those that lie apart does.
    fn read(slab: &Slab, tables: &Tables, entries: Range<usize>, archive: &ParameterArchive) -> Vec<u8> {
        let mut filled = vec![0; slab.bytes as usize];
        for entry in entries {
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
        // Two of one name, one that is turned, one that ends within an alignment.
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
        let storage = ParameterStorage::External { scope: "weights".to_owned() };
        let options = CompileOptions { parameters: storage.clone(), ..CompileOptions::default() };
        let plan = plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap();
        let mut writer = Writer::new("module", Vec::new(), true);
        let stored = store(&mut writer, &plan.pool, &plan.slabs, &storage);
        let archive = stored.archive.unwrap();
        assert_eq!((stored.scope.as_str(), archive.entries.len()), ("weights", 4));
        // The three matrices are large enough for buffers of their own.
        assert_eq!(stored.apart.count(), 3);
        for (slab, source) in plan.slabs.constant_slabs.iter().zip(&stored.sources) {
            let found = match source {
                Source::Parameters(tables) => read(slab, tables, 0..tables.count(), &archive),
                Source::Apart(place) => read(slab, &stored.apart, *place..place + 1, &archive),
                Source::Data(_) => panic!("{source:?}"),
            };
            assert_eq!(found, joined(&plan.pool, slab).to_vec());
        }
    }
}
