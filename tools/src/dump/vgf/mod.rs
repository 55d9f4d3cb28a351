//! What `halite dump` shows of VGF files.

mod facts;
mod graph;
mod text;

use std::{fs, io::Write, path::Path};

use bytes::Bytes;
use halite_formats::vgf::{Code, Vgf, VgfError};

use super::{Flags, Output};
use crate::console::{Failure, Result};
use halite::hal::{Code as StatusCode, Status};

/// Prints a file: resources, segments, constants; and graphs, where code is wanted.
pub(super) fn print(flags: &Flags, path: &Path, file: &Bytes, out: &mut dyn Write) -> Result<()> {
    if flags.output == Output::FlatbufferBinary {
        let text = format!("'{}' is a VGF file, which has no FlatBuffer of a module", path.display());
        return Err(Failure::Usage(text));
    }
    let fail = |e: VgfError| {
        Failure::Status(
            Status::new(StatusCode::InvalidArgument, e.to_string())
                .annotate(format!("reading '{}'", path.display())),
        )
    };
    let vgf = Vgf::parse(file).map_err(fail)?;
    if let Some(folder) = &flags.spirv {
        extract(&vgf, folder)?;
    }
    let code = matches!(flags.output, Output::All | Output::Disassembly);
    let facts = facts::collect(&vgf, file.len(), code);
    if flags.json || flags.output == Output::FlatbufferJson {
        let text = match flags.pretty {
            true => serde_json::to_string_pretty(&facts),
            false => serde_json::to_string(&facts),
        };
        writeln!(out, "{}", text.map_err(std::io::Error::from)?)?;
        return Ok(());
    }
    if flags.output != Output::Disassembly {
        text::metadata(&facts, out)?;
    }
    facts.modules.iter().try_for_each(|module| text::code(module, out))
}

/// Writes the SPIR-V of all modules.
fn extract(vgf: &Vgf, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| Failure::file("cannot make", folder, &e))?;
    for (i, module) in vgf.modules.iter().enumerate() {
        let Code::SpirV(words) = &module.code else { continue };
        let path = folder.join(format!("module_{i}_{}.spv", module.kind.name()));
        fs::write(&path, words).map_err(|e| Failure::file("cannot write", &path, &e))?;
    }
    Ok(())
}
