//! Owns a model that was read: what it says of its inputs and outputs, and the way to a graph.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use halite_formats::onnx::{self, ExternalData, NoExternalData, Type, ValueInfo};

use super::{
    Result,
    constant::held_type,
    external::{Folder, ReadFile},
    importer::Importer,
};
use crate::{
    CompileError, Control, Place, Stage,
    graph::Graph,
    signature::{Arity, Bindings, Dim, Signature},
};

/// An ONNX model.
pub struct Model {
    proto: onnx::Model,
    external: Box<dyn ExternalData + Send + Sync>,
    /// Where its other files are, when it is one itself.
    folder: Option<Folder>,
    /// The name of its file, or of its graph.
    name: String,
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
        let read = |path: &Path| fs::read(path).map(Bytes::from);
        Self::open_with(path, Arc::new(read), &Control::default())
    }

    /// As [`Model::open`], with files read by `read`, which may map them: constants of graphs are slices of what it gives.
    /// `read` itself is not interrupted.
    ///
    /// # Errors
    /// As [`Model::open`], and when `control` ends the work.
    pub fn open_with(path: &Path, read: Arc<ReadFile>, control: &Control) -> Result<Model> {
        control.check(Stage::Reading)?;
        let bytes =
            read(path).map_err(|source| CompileError::Io { path: path.display().to_string(), source })?;
        let folder = Folder::of(path, read);
        let model = Self::parse(bytes, Box::new(folder.clone()), control)?;
        let name = crate::model::file_name(path).unwrap_or(model.name);
        Ok(Model { folder: Some(folder), name, ..model })
    }

    /// Reads a model from bytes that hold everything.
    ///
    /// # Errors
    /// The bytes are no model.
    pub fn from_bytes(bytes: Bytes) -> Result<Model> {
        Self::parse(bytes, Box::new(NoExternalData), &Control::default())
    }

    /// Reads a model; `external` reads the tensors that it keeps elsewhere.
    ///
    /// # Errors
    /// The bytes are no model, or `control` ended the work.
    pub fn parse(
        bytes: Bytes,
        external: Box<dyn ExternalData + Send + Sync>,
        control: &Control,
    ) -> Result<Model> {
        let watch = control.at(Stage::Reading);
        let proto = onnx::Model::parse_while(bytes, &|| watch.goes_on());
        watch.check()?;
        let proto = proto.map_err(|error| CompileError::invalid(&Place::default(), error.to_string()))?;
        let name = proto.graph.name.clone();
        Ok(Model { proto, external, folder: None, name })
    }

    /// The name of its file without the folder; of a model that came as bytes, that of its graph.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Files in which the model keeps tensors, as far as [`Model::graph`] has read them.
    pub fn files(&self) -> Vec<PathBuf> {
        self.folder.as_ref().map(Folder::files).unwrap_or_default()
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
        self.graph_with(bindings, &Control::default())
    }

    /// As [`Model::graph`], watched and stopped by `control`.
    ///
    /// # Errors
    /// As [`Model::graph`], and when `control` ends the work.
    pub fn graph_with(&self, bindings: &Bindings, control: &Control) -> Result<Graph> {
        Importer::new(&self.proto, &*self.external, control).import(&self.inputs(), bindings)
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

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;
    use crate::{
        graph::ElementType,
        onnx::encode::{FLOAT, INT4, INT64, Message, graph, info, model, node, tensor_type},
    };

    /// A `TypeProto` that is a list (4) or optional (9) of another.
    fn of(field: u64, inner: &Message) -> Message {
        Message::default().bytes(field, Message::default().bytes(1, inner))
    }

    #[test]
    fn types_of_lists_and_optional_values_are_told_before_anything_is_compiled() {
        let (floats, ints) = (tensor_type(FLOAT, &[2]), tensor_type(INT64, &[]));
        let (list, optional) = (of(4, &floats), of(9, &ints));
        let inputs = [
            info("tensor", &floats),
            info("list", &list),
            info("optional", &optional),
            info("optional list", &of(9, &list)),
            info("narrow", &tensor_type(INT4, &[2])),
            info("text", &tensor_type(8, &[2])),
        ];
        let nodes = [node("Identity", &["tensor"], &["y"], &[])];
        let bytes = model(&graph(&nodes, &[], &inputs, &[info("y", &list)]), &[]);
        let model = Model::from_bytes(bytes).unwrap();
        let told: Vec<_> =
            model.inputs().into_iter().map(|input| (input.arity, input.is_optional, input.element)).collect();
        let (tensor, sequence) = (Arity::Tensor, Arity::Sequence);
        let some = |dtype| Some(ElementType::Of(dtype));
        assert_eq!(
            told,
            [
                (tensor, false, some(DType::F32)),
                (sequence, false, some(DType::F32)),
                (tensor, true, some(DType::I64)),
                (sequence, true, some(DType::F32)),
                (tensor, false, some(DType::I8)),
                (tensor, false, None),
            ]
        );
        assert_eq!(model.outputs()[0].element, some(DType::F32));
        assert_eq!(model.name(), "test");
    }
}
