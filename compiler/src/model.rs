//! Owns models of any format: which format a file has, its functions, and the way from it to a program. Does not own: any
//! format.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::{
    CompileError, Function, Program, onnx,
    passes::{self, Halved},
    signature::{Bindings, Signature},
};

/// Formats of models that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFormat {
    /// ONNX, `.onnx`.
    Onnx,
}

impl ModelFormat {
    /// All of them.
    pub const ALL: [ModelFormat; 1] = [ModelFormat::Onnx];

    /// The format of a file by its first bytes (16 are enough), or by the end of its name where these do not tell.
    pub fn detect(start: &[u8], path: &Path) -> Option<ModelFormat> {
        if is_module(start) {
            return None;
        }
        let by_name = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match by_name.as_deref() {
            Some("onnx" | "ort_onnx") => Some(ModelFormat::Onnx),
            // A protocol buffer whose first field is the version of the representation, a small number.
            _ if matches!(start, [0x08, version, 0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a, ..] if *version < 64) => {
                Some(ModelFormat::Onnx)
            }
            _ => None,
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            ModelFormat::Onnx => "ONNX",
        }
    }
}

/// Whether a file is a compiled module (`.vmfb`), bare or in the dress of a zip file.
fn is_module(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || start.get(4..8) == Some(b"IREE") || start.get(8..12) == Some(b"IREE")
}

/// Which tensors are 16-bit floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Those that the model has.
    #[default]
    Model,
    /// All that kernels take so; what the caller hands in and gets keeps its type.
    F16,
}

/// A model that was read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Model {
    /// From an ONNX file.
    Onnx(onnx::Model),
}

impl Model {
    /// Reads a model file of a format.
    ///
    /// # Errors
    /// The file cannot be read or is no such model.
    pub fn open(path: &Path, format: ModelFormat) -> Result<Model, CompileError> {
        match format {
            ModelFormat::Onnx => onnx::Model::open(path).map(Model::Onnx),
        }
    }

    /// Reads a model that is all in these bytes.
    ///
    /// # Errors
    /// The bytes are no such model.
    pub fn from_bytes(bytes: Bytes, format: ModelFormat) -> Result<Model, CompileError> {
        match format {
            ModelFormat::Onnx => onnx::Model::from_bytes(bytes).map(Model::Onnx),
        }
    }

    /// Files that it was read from, beside its own: those that hold its weights.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Model::Onnx(model) => model.files(),
        }
    }

    /// Names of its functions, at least one.
    pub fn functions(&self) -> Vec<String> {
        match self {
            Model::Onnx(_) => vec!["main".to_owned()],
        }
    }

    /// What the caller of a function hands in.
    pub fn inputs(&self, _function: &str) -> Vec<Signature> {
        match self {
            Model::Onnx(model) => model.inputs(),
        }
    }

    /// What the caller of a function gets.
    pub fn outputs(&self, _function: &str) -> Vec<Signature> {
        match self {
            Model::Onnx(model) => model.outputs(),
        }
    }

    /// A function for several sets of sizes and values, with its graphs optimized.
    ///
    /// # Errors
    /// There is no such function, sizes or values are missing, or the model is wrong or not supported.
    pub fn function(
        &self,
        name: &str,
        versions: &[Bindings],
        precision: Precision,
    ) -> Result<(Function, Halved), CompileError> {
        let known = self.functions();
        if !known.iter().any(|own| own == name) {
            let reason = format!("there is no function '{name}'; there are: {}", known.join(", "));
            return Err(CompileError::Request(reason));
        }
        let mut halved = Halved::default();
        let mut graphs = Vec::new();
        for bindings in versions {
            let mut graph = match self {
                Model::Onnx(model) => model.graph(bindings)?,
            };
            if precision == Precision::F16 {
                let count = passes::halve(&mut graph);
                halved.halved += count.halved;
                halved.kept += count.kept;
            }
            passes::optimize(&mut graph)?;
            graphs.push(graph);
        }
        Ok((Function { name: name.to_owned(), versions: graphs }, halved))
    }

    /// A program of one function; see [`Model::function`].
    ///
    /// # Errors
    /// As [`Model::function`].
    pub fn program(&self, versions: &[Bindings], precision: Precision) -> Result<Program, CompileError> {
        let name = self.functions().swap_remove(0);
        let (function, _) = self.function(&name, versions, precision)?;
        Ok(Program { functions: vec![function] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_content_first() {
        let of = |start: &[u8], name: &str| ModelFormat::detect(start, Path::new(name));
        assert_eq!(of(b"\x08\x08\x12\x07pytorch", "model"), Some(ModelFormat::Onnx));
        assert_eq!(of(b"", "MODEL.ONNX"), Some(ModelFormat::Onnx));
        assert_eq!(of(b"PK\x03\x04", "model.onnx"), None);
        assert_eq!(of(b"\x20\0\0\0IREE", "model.onnx"), None);
        assert_eq!(of(b"hello", "model"), None);
    }
}
