//! Owns how constants are stored: as data of the module, or as parameters in an archive beside it. Does not own: archives'
//! format (`halite-formats`).

use std::collections::HashSet;

use bytes::Bytes;
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

/// The tables of a gather of parameters: docs/formats/vmfb.md.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// (offset, length) of each key, as `u32`.
    pub keys: Bytes,
    /// The keys.
    pub key_data: Bytes,
    /// (parameter offset, buffer offset, length) of each, as `u64`.
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
        keys.extend((key_data.len() as u32).to_le_bytes());
        keys.extend((name.len() as u32).to_le_bytes());
        key_data.extend(name.as_bytes());
        spans.extend([0, *offset, constant.bytes.len() as u64].iter().flat_map(|v: &u64| v.to_le_bytes()));
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
