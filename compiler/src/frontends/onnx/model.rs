//! The front end for ONNX: models that were read, what they say of their inputs and outputs, and the way to a graph.

use std::{collections::HashSet, path::Path};

use bytes::Bytes;
use halite_formats::onnx::{self, ExternalData, NoExternalData, Type, ValueInfo};

use super::{
    Result,
    constant::{held_type, instead},
    importer::Importer,
    operators::compute,
    order,
    survey::{self, MAIN},
};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    frontends::{FrontEnd, Recognition, Source, SourceModel, files::Files, outline::Outline},
    graph::{ElementType, Graph},
    signature::{Arity, Bindings, Dim, Signature},
};

/// The front end for ONNX.
#[derive(Debug)]
pub struct Onnx;

impl FrontEnd for Onnx {
    fn id(&self) -> &'static str {
        "onnx"
    }

    fn name(&self) -> &'static str {
        "ONNX"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["onnx"]
    }

    /// A protocol buffer whose first field is the version of the representation, a small number.
    fn recognizes(&self, start: &[u8]) -> Recognition {
        match start {
            [0x08, version, 0x12 | 0x1a | 0x22 | 0x2a | 0x32 | 0x3a, ..] if *version < 64 => {
                Recognition::Possible
            }
            _ => Recognition::No,
        }
    }

    fn read(&self, source: Source, control: &Control) -> Result<Box<dyn SourceModel>> {
        Ok(Box::new(Model::read(source, control)?))
    }
}

/// An ONNX model.
pub struct Model {
    proto: onnx::Model,
    /// Length of the file, without those beside it.
    bytes: u64,
    external: Box<dyn ExternalData + Send + Sync>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("producer", &self.proto.producer).finish_non_exhaustive()
    }
}

/// Files beside a model, as the reader of tensors asks for them.
struct Beside(Files);

impl ExternalData for Beside {
    fn read(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, String> {
        self.0.read(location, offset, length)
    }
}

impl Model {
    /// Reads a model file. Tensors that it keeps in files of its own are read from its folder when they are needed.
    ///
    /// # Errors
    /// The file cannot be read or is no model.
    pub fn open(path: &Path) -> Result<Model> {
        Self::read(Source::open(path)?, &Control::default())
    }

    /// Reads a model from bytes that hold everything.
    ///
    /// # Errors
    /// The bytes are no model.
    pub fn from_bytes(bytes: Bytes) -> Result<Model> {
        Self::read(Source::from_bytes(bytes), &Control::default())
    }

    /// Reads a model. Constants of graphs are slices of the source's bytes.
    ///
    /// # Errors
    /// The bytes are no model, or `control` ended the work.
    pub fn read(source: Source, control: &Control) -> Result<Model> {
        let watch = control.at(Stage::Reading);
        let bytes = source.bytes.len() as u64;
        let proto = onnx::Model::parse_while(source.bytes, &|| watch.goes_on());
        watch.check()?;
        let proto =
            proto.map_err(|error| CompileError::invalid(&SourceLocation::default(), error.to_string()))?;
        let external: Box<dyn ExternalData + Send + Sync> = match source.files {
            Some(files) => {
                files.expect(order::bytes_of_files(&proto));
                Box::new(Beside(files))
            }
            None => Box::new(NoExternalData),
        };
        Ok(Model { proto, bytes, external })
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
        let importer = Importer::new(&self.proto, self.bytes, &*self.external, compute, control);
        let made = importer.import(&self.inputs(), bindings);
        made.map_err(|error| survey::beside(&self.proto, error, control.at(Stage::Importing)))
    }
}

impl SourceModel for Model {
    fn name(&self) -> &str {
        &self.proto.graph.name
    }

    fn functions(&self) -> Vec<String> {
        vec![MAIN.to_owned()]
    }

    fn inputs(&self, function: &str) -> Result<Vec<Signature>> {
        known(function)?;
        Ok(self.inputs())
    }

    fn outputs(&self, function: &str) -> Result<Vec<Signature>> {
        known(function)?;
        Ok(self.outputs())
    }

    fn takes_tensors(&self, function: &str) -> Result<()> {
        known(function)?;
        let inputs = self.inputs();
        let required = inputs.iter().filter(|input| !input.is_optional && input.arity == Arity::Tensor);
        let named = |input: &Signature| self.proto.graph.inputs.iter().find(|info| info.name == input.name);
        for info in required.filter_map(named) {
            let Some(Type::Tensor(Some(data_type), _)) = &info.value else { continue };
            if held_type(*data_type).is_none() {
                let hint = instead(*data_type);
                let reason = format!("the input '{}' has elements of type {data_type}{hint}", info.name);
                return Err(CompileError::unsupported(&SourceLocation::default(), reason));
            }
        }
        Ok(())
    }

    fn graph(&self, function: &str, bindings: &Bindings, control: &Control) -> Result<Graph> {
        known(function)?;
        self.graph_with(bindings, control)
    }

    fn switches(&self, function: &str) -> Vec<String> {
        let branches =
            self.proto.graph.nodes.iter().filter(|node| node.domain.is_empty() && node.op_type == "If");
        let conditions: Vec<&String> = branches.filter_map(|node| node.inputs.first()).collect();
        let is_one = |dims: &Vec<Dim>| dims.iter().all(|dim| *dim == Dim::Known(1));
        let is_truth = |input: &Signature| {
            input.arity == Arity::Tensor
                && !input.is_optional
                && input.element == Some(ElementType::Bool)
                && input.dims.as_ref().is_some_and(is_one)
        };
        let inputs = self.inputs().into_iter().filter(|_| known(function).is_ok()).filter(is_truth);
        inputs.map(|input| input.name).filter(|name| conditions.contains(&name)).collect()
    }

    fn outline(&self) -> Option<Outline> {
        Some(survey::outline(&self.proto))
    }
}

/// Whether a model has a function.
fn known(function: &str) -> Result<()> {
    if function == MAIN {
        return Ok(());
    }
    let reason = format!("there is no function '{function}'; there are: {MAIN}");
    Err(CompileError::Request(reason))
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
        frontends::onnx::encode::{FLOAT, INT4, INT64, Message, graph, info, model, node, tensor_type},
        graph::ElementType,
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
        assert_eq!(SourceModel::name(&model), "test");
    }
}
