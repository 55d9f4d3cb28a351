//! Values outside of models that are no plain tensors: `SequenceProto` and `OptionalProto` of `onnx-data.proto`, as the ONNX
//! backend tests keep them in files.

use bytes::Bytes;

use super::{OnnxError, Tensor};
use crate::wire::Reader;

type Result<T> = std::result::Result<T, OnnxError>;

/// A list of tensors.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// The tensors.
    pub tensors: Vec<Tensor>,
}

/// A value or none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Optional {
    /// None.
    #[default]
    None,
    /// A tensor.
    Tensor(Box<Tensor>),
    /// A list of tensors.
    Sequence(Sequence),
}

impl Sequence {
    /// Reads a list of tensors.
    ///
    /// # Errors
    /// The bytes are no such message, or hold what is no tensor.
    pub fn parse(bytes: Bytes) -> Result<Sequence> {
        const MESSAGE: &str = "SequenceProto";
        let mut sequence = Sequence::default();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 | 2 => {}
                3 => sequence.tensors.push(Tensor::parse(field.bytes(MESSAGE)?)?),
                other => {
                    let reason = format!("field {other} holds what is no list of tensors");
                    return Err(OnnxError::invalid(MESSAGE, reason));
                }
            }
        }
        Ok(sequence)
    }
}

impl Optional {
    /// Reads a value that may be none.
    ///
    /// # Errors
    /// The bytes are no such message, or hold neither a tensor nor a list of them.
    pub fn parse(bytes: Bytes) -> Result<Optional> {
        const MESSAGE: &str = "OptionalProto";
        let mut optional = Optional::None;
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 | 2 => {}
                3 => optional = Optional::Tensor(Box::new(Tensor::parse(field.bytes(MESSAGE)?)?)),
                5 => optional = Optional::Sequence(Sequence::parse(field.bytes(MESSAGE)?)?),
                other => {
                    let reason = format!("field {other} is neither a tensor nor a list of tensors");
                    return Err(OnnxError::invalid(MESSAGE, reason));
                }
            }
        }
        Ok(optional)
    }
}
