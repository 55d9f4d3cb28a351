//! How types and constants of ONNX become those of graphs.

use std::{cell::RefCell, collections::HashMap};

use bytes::Bytes;
use halite_formats::onnx::{DataType, ExternalData, NoExternalData, Tensor};
use halite_ops::DType;

use super::{Result, narrow};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::{Builder, budget::Cost},
    control::Watch,
    graph::ElementType,
    signature::BoundValue,
};

/// The type of elements, if graphs have it.
pub(crate) fn element_type(data_type: DataType) -> Option<ElementType> {
    Some(ElementType::Of(match data_type {
        DataType::Bool => return Some(ElementType::Bool),
        DataType::Float => DType::F32,
        DataType::Double => DType::F64,
        DataType::Float16 => DType::F16,
        DataType::Bfloat16 => DType::BF16,
        DataType::Int8 => DType::I8,
        DataType::Uint8 => DType::U8,
        DataType::Int16 => DType::I16,
        DataType::Uint16 => DType::U16,
        DataType::Int32 => DType::I32,
        DataType::Uint32 => DType::U32,
        DataType::Int64 => DType::I64,
        DataType::Uint64 => DType::U64,
        _ => return None,
    }))
}

/// The type with a number, as attributes give it.
///
/// # Errors
/// There is no such type, or graphs do not have it.
pub(crate) fn element_of_number(number: i64, location: &SourceLocation) -> Result<ElementType> {
    let data_type = DataType::from_number(number)
        .ok_or_else(|| CompileError::invalid(location, format!("{number} is no element type of ONNX")))?;
    element_type(data_type).ok_or_else(|| {
        let hint = instead(data_type);
        CompileError::unsupported(
            location,
            format!("elements of type {data_type} are not supported here{hint}"),
        )
    })
}

/// What an error says after it of elements of a type that graphs lack: what to do about it.
pub(super) fn instead(data_type: DataType) -> &'static str {
    match data_type {
        DataType::String => {
            "; devices hold numbers and no texts: make numbers of the texts before the call, as the model's author does, or \
             run the model with halite.onnxruntime (Python), which computes texts on the host"
        }
        _ => "; export the model with another type",
    }
}

/// The type of elements in graphs: their own, or the one that holds a narrow type.
pub(crate) fn held_type(data_type: DataType) -> Option<ElementType> {
    element_type(data_type).or_else(|| narrow::held_in(data_type))
}

fn supported(data_type: DataType, location: &SourceLocation) -> Result<ElementType> {
    held_type(data_type).ok_or_else(|| {
        let hint = instead(data_type);
        CompileError::unsupported(location, format!("elements of type {data_type} are not supported{hint}"))
    })
}

/// Reads a tensor that is no part of a model, such as an input of the ONNX backend tests. Elements of types that graphs
/// lack are given in the type that holds them: 8-bit floats in `f32`, integers of 2 and 4 bits in bytes.
///
/// # Errors
/// Its type is not supported, or its data are damaged.
pub fn read_tensor(tensor: &Tensor) -> Result<BoundValue> {
    let location = SourceLocation::new(format!("tensor '{}'", tensor.name));
    let control = Control::new();
    let watch = control.at(Stage::Importing);
    let (element, dims, bytes) = constant(tensor, &NoExternalData, &location, watch)?;
    Ok(BoundValue { element, dims, bytes })
}

/// A tensor of the model: type, dimensions, bytes.
pub(crate) type Constant = (ElementType, Vec<u64>, Bytes);

/// The tensors of a model. Each is read once, however often a loop asks for it.
pub(crate) struct Constants<'m> {
    external: &'m dyn ExternalData,
    known: RefCell<HashMap<*const Tensor, Constant>>,
    /// Bytes of files beside the model that tensors have.
    files: RefCell<HashMap<&'m str, u64>>,
}

impl<'m> Constants<'m> {
    /// Tensors of a model and of files beside it.
    pub(super) fn of(external: &'m dyn ExternalData) -> Self {
        Constants { external, known: RefCell::default(), files: RefCell::default() }
    }

    /// A tensor of the model.
    ///
    /// # Errors
    /// Its type is not supported, its data are not there, it makes the model cost too much, or nobody wants it any more.
    pub(super) fn read(
        &self,
        tensor: &'m Tensor,
        location: &SourceLocation,
        b: &Builder,
    ) -> Result<Constant> {
        if let Some(known) = self.known.borrow().get(&std::ptr::from_ref(tensor)) {
            return Ok(known.clone());
        }
        let made = constant(tensor, self.external, location, b.watch())?;
        self.count(tensor, &made, b).map_err(|reason| CompileError::unsupported(location, reason))?;
        self.known.borrow_mut().insert(tensor, made.clone());
        Ok(made)
    }

    /// A tensor of the model whose elements are moved alone. Texts are their places in it: devices hold numbers, and who reads the
    /// results looks the texts up in the file.
    ///
    /// # Errors
    /// As for others.
    pub(super) fn moved(
        &self,
        tensor: &'m Tensor,
        location: &SourceLocation,
        b: &Builder,
    ) -> Result<Constant> {
        if tensor.data_type().ok() != Some(DataType::String) {
            return self.read(tensor, location, b);
        }
        let texts = tensor.strings().map_err(|error| CompileError::invalid(location, error.to_string()))?;
        if texts.len() as u64 != tensor.elements() {
            let reason =
                format!("'{}' has {} texts for {} elements", tensor.name, texts.len(), tensor.elements());
            return Err(CompileError::invalid(location, reason));
        }
        let places: Vec<u8> = (0..texts.len() as i64).flat_map(i64::to_le_bytes).collect();
        let made = (ElementType::Of(DType::I64), tensor.dims.clone(), places.into());
        self.count(tensor, &made, b).map_err(|reason| CompileError::unsupported(location, reason))?;
        Ok(made)
    }

    /// Counts what is unpacked. What lies in files as graphs have it is mapped and costs nothing.
    fn count(&self, tensor: &'m Tensor, (_, _, bytes): &Constant, b: &Builder) -> Result<(), String> {
        let data_type = tensor.data_type().ok();
        let is_own = data_type.is_some_and(|own| own != DataType::Bool && element_type(own).is_some());
        if is_own && !tensor.is_typed() {
            return Ok(());
        }
        if let Some((file, range)) = tensor.file() {
            let end = range.end;
            let mut files = self.files.borrow_mut();
            let before = files.entry(file).or_insert(0);
            b.budget.add_file(end.saturating_sub(*before));
            *before = end.max(*before);
        }
        b.budget.count(Cost::Decoded, bytes.len() as u64);
        b.budget.check()
    }
}

/// Reads a tensor of the model.
///
/// # Errors
/// Its type is not supported, its data are not there, or nobody wants it any more.
pub(crate) fn constant(
    tensor: &Tensor,
    external: &dyn ExternalData,
    location: &SourceLocation,
    watch: Watch<'_>,
) -> Result<Constant> {
    let invalid = |error: halite_formats::onnx::OnnxError| CompileError::invalid(location, error.to_string());
    let data_type = tensor.data_type().map_err(invalid)?;
    let element = supported(data_type, location)?;
    let mut bytes = tensor.bytes(external).map_err(invalid)?;
    if let Some(held) = narrow::unpack(data_type, tensor.elements(), &bytes, watch)? {
        bytes = held;
    }
    if element == ElementType::Bool && bytes.iter().any(|byte| *byte > 1) {
        bytes = bytes.iter().map(|byte| u8::from(*byte != 0)).collect::<Vec<_>>().into();
    }
    Ok((element, tensor.dims.clone(), bytes))
}
