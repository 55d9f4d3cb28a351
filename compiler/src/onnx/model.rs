//! Owns a model that was read: what it says of its inputs and outputs, and the way to a graph.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use halite_formats::onnx::{self, ExternalData, NoExternalData, Type, ValueInfo};

use super::{Result, constant::held_type, importer::Importer};
use crate::{
    CompileError, Place,
    graph::Graph,
    signature::{Arity, Bindings, Dim, Signature},
};

/// An ONNX model.
pub struct Model {
    proto: onnx::Model,
    external: Box<dyn ExternalData + Send + Sync>,
    files: Files,
}

/// Files that tensors were read from.
type Files = Arc<Mutex<BTreeSet<PathBuf>>>;

/// External data next to a model file.
struct Folder {
    path: PathBuf,
    /// What was read.
    files: Files,
}

impl ExternalData for Folder {
    fn read(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, String> {
        use std::io::{Read, Seek, SeekFrom};
        let path = self.path.join(location);
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = fs::File::open(&path).map_err(said)?;
        let left = file.metadata().map_err(said)?.len().saturating_sub(offset);
        let length = length.unwrap_or(left);
        if length > left {
            return Err(format!("{}: has {left} bytes from {offset}, not {length}", path.display()));
        }
        file.seek(SeekFrom::Start(offset)).map_err(said)?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(said)?;
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        Ok(bytes.into())
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("producer", &self.proto.producer).finish_non_exhaustive()
    }
}

impl Model {
    /// Reads a model file. Tensors that it keeps in files of its own are read from its folder when they are needed.
    ///
    /// # Errors
    /// The file cannot be read or is no model.
    pub fn open(path: &Path) -> Result<Model> {
        let bytes =
            fs::read(path).map_err(|source| CompileError::Io { path: path.display().to_string(), source })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let files = Files::default();
        let external = Folder { path: folder, files: Arc::clone(&files) };
        Ok(Model { files, ..Self::parse(bytes.into(), Box::new(external))? })
    }

    /// Reads a model from bytes that hold everything.
    ///
    /// # Errors
    /// The bytes are no model.
    pub fn from_bytes(bytes: Bytes) -> Result<Model> {
        Self::parse(bytes, Box::new(NoExternalData))
    }

    /// Reads a model; `external` reads the tensors that it keeps elsewhere.
    ///
    /// # Errors
    /// The bytes are no model.
    pub fn parse(bytes: Bytes, external: Box<dyn ExternalData + Send + Sync>) -> Result<Model> {
        let proto = onnx::Model::parse(bytes)
            .map_err(|error| CompileError::invalid(&Place::default(), error.to_string()))?;
        Ok(Model { proto, external, files: Files::default() })
    }

    /// Files in which the model keeps tensors, as far as [`Model::graph`] has read them.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// What the caller has to hand in. Inputs that have a default in the model are not among them.
    pub fn inputs(&self) -> Vec<Signature> {
        let graph = &self.proto.graph;
        let defaults: HashSet<&str> = graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
        let given = graph.inputs.iter().filter(|input| !defaults.contains(input.name.as_str()));
        given.map(signature).collect()
    }

    /// What the caller gets.
    pub fn outputs(&self) -> Vec<Signature> {
        self.proto.graph.outputs.iter().map(signature).collect()
    }

    /// The graph of the model for some sizes and values.
    ///
    /// # Errors
    /// Sizes or values are missing, or the model is wrong or not supported.
    pub fn graph(&self, bindings: &Bindings) -> Result<Graph> {
        Importer::new(&self.proto, &*self.external).import(&self.inputs(), bindings)
    }
}

fn signature(info: &ValueInfo) -> Signature {
    let mut declared = info.value.as_ref();
    let is_optional = matches!(declared, Some(Type::Optional(_)));
    if let Some(Type::Optional(of)) = declared {
        declared = Some(of);
    }
    let (arity, tensor) = match declared {
        Some(Type::Sequence(of)) => (Arity::Sequence, Some(&**of)),
        other => (Arity::Tensor, other),
    };
    let (element, dims) = match tensor {
        Some(Type::Tensor(data_type, dims)) => (data_type.and_then(held_type), dims.clone()),
        _ => (None, None),
    };
    let dim = |dim: onnx::Dim| match dim {
        onnx::Dim::Known(size) => Dim::Known(size),
        onnx::Dim::Symbol(name) => Dim::Symbol(name),
        onnx::Dim::Unknown => Dim::Unknown,
    };
    let dims = dims.map(|dims| dims.into_iter().map(dim).collect());
    Signature { name: info.name.clone(), arity, is_optional, element, dims }
}
