//! Back ends of ExecuTorch whose delegates are put into a method's graph. One more is an implementation of [`BackEnd`] and a
//! line in `back_ends.rs`.

use std::fmt;

use bytes::Bytes;
use halite_formats::pte::Program;

use super::{Result, tenant::Tenant, value::Passed};
use crate::{UnsupportedOperator, build::Builder, graph::TensorId};

/// A back end: it reads the data that its partitioner made of a part of a method.
pub(super) trait BackEnd: fmt::Debug + Sync {
    /// The name by which programs call it, such as `VulkanBackend`.
    fn id(&self) -> &'static str;

    /// Reads a delegate's data, which are not trusted.
    ///
    /// # Errors
    /// Says what is damaged.
    fn read(&self, data: &Bytes) -> std::result::Result<Box<dyn Inlined>, String>;
}

/// A delegate that was read: what is put into the method's graph where the delegate is called.
pub(super) trait Inlined {
    /// Number of values that a call hands in; they come first.
    fn inputs(&self) -> usize;

    /// Number of values that a call gets.
    fn outputs(&self) -> usize;

    /// The dimensions of an output, if the delegate's data say them.
    fn output_dims(&self, output: usize) -> Option<Vec<u64>> {
        let _ = output;
        None
    }

    /// The buffers that it keeps from call to call, if a call gets the last `given` of its outputs.
    ///
    /// # Errors
    /// Says which buffer cannot be told, or what is wrong with its data.
    fn kept(&self, program: &Program, given: usize) -> std::result::Result<Vec<Tenant>, String> {
        let _ = (program, given);
        Ok(Vec::new())
    }

    /// Puts what the delegate computes into the graph that `builder` makes. `inputs` are the values that the call hands in,
    /// as many as [`Inlined::inputs`]; the results are as many as [`Inlined::outputs`]. `kept` are its buffers
    /// ([`Inlined::kept`]), which it replaces by their new values. `orders` tell for all values of the
    /// call, inputs first, in which order their dimensions lie in memory; what is no tensor has none. `program` has data by
    /// name; `name` is the delegate's in messages.
    ///
    /// # Errors
    /// The delegate is wrong, or has what is not supported.
    fn import(
        &self,
        builder: Builder,
        program: &Program,
        inputs: &[Passed],
        orders: &[Vec<usize>],
        kept: &mut [TensorId],
        name: &str,
    ) -> Result<(Builder, Vec<Passed>)>;

    /// Names of data that it looks up in the program, or in files beside it.
    fn data(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Its operators in the order of its calls, for those who ask what is in a program; none where it has other names.
    fn operators(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The calls of operators that nothing imports. `name` is the delegate's in messages.
    fn unsupported(&self, name: &str) -> Vec<UnsupportedOperator>;
}
