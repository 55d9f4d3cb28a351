//! Reading `.tosa` files: regions become graphs, names become tensors.

use std::collections::HashMap;

use bytes::Bytes;

use super::block::Block;
use super::tables::text;
use super::{Program, Result, TosaError, schema as s};
use crate::flatbuffer::{Reader, Table};

/// Whether a file begins like a `.tosa`.
pub fn is_tosa(start: &[u8]) -> bool {
    start.get(4..8) == Some(s::IDENTIFIER)
}

impl Program {
    /// Reads a `.tosa` file of TOSA 1.0, or of a draft of 1.1 as far as it has no new computations. Constants are slices of
    /// `file`, but those of types that lie packed there.
    ///
    /// # Errors
    /// Says which graph, operator or tensor is damaged, contradicts another, or is not supported.
    pub fn parse(file: &Bytes) -> Result<Program> {
        let reader = Reader::new(file, 0);
        let root = reader.root("TosaGraph", s::IDENTIFIER)?;
        version(&root)?;
        let regions = root.vector(&s::graph::REGIONS)?;
        let mut names = HashMap::new();
        for (i, region) in regions.iter().enumerate() {
            let name = text(&region?, &s::region::NAME)?;
            if names.insert(name.clone(), i).is_some() {
                return Err(TosaError::invalid(format!("region {i}"), format!("a second region '{name}'")));
            }
        }
        let mut program = Program::default();
        for (i, region) in regions.iter().enumerate() {
            let region = region?;
            let name = text(&region, &s::region::NAME)?;
            let blocks = region.vector(&s::region::BLOCKS)?;
            if blocks.len() != 1 {
                let problem = format!("{} blocks; there is one", blocks.len());
                return Err(TosaError::unsupported(format!("region '{name}'"), problem));
            }
            let block = Block::new(file, name, &names);
            program.graphs.push(block.read(&blocks.get(0)?)?);
            debug_assert_eq!(program.graphs.len(), i + 1);
        }
        match program.graphs.is_empty() {
            true => Err(TosaError::invalid("TosaGraph", "there is no region")),
            false => Ok(program),
        }
    }
}

fn version(root: &Table<'_>) -> Result<()> {
    let Some(version) = root.child(&s::graph::VERSION)? else {
        return Err(TosaError::invalid("TosaGraph", "there is no version"));
    };
    let (major, minor) = (version.scalar(&s::version::MAJOR)?, version.scalar(&s::version::MINOR)?);
    match (major, minor) {
        (1, 0 | 1) => Ok(()),
        _ => Err(TosaError::unsupported(
            "TosaGraph.version",
            format!("{major}.{minor}; 1.0 and drafts of 1.1 are supported: serialize the model again"),
        )),
    }
}
