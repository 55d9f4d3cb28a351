//! Arm's VGF delegate as a back end: its data are a VGF file, whose segments are put into the method's graph.

use bytes::Bytes;
use halite_formats::{pte::Program, vgf::Vgf};

use super::{
    Result,
    back_end::{BackEnd, Inlined},
    value::Passed,
};
use crate::{SourceLocation, UnsupportedOperator, build::Builder, frontends::vgf, graph::TensorId};

/// Arm's VGF back end of ExecuTorch.
#[derive(Debug)]
pub(super) struct Arm;

impl BackEnd for Arm {
    fn id(&self) -> &'static str {
        "VgfBackend"
    }

    fn read(&self, data: &Bytes) -> std::result::Result<Box<dyn Inlined>, String> {
        Ok(Box::new(Vgf::parse(data).map_err(|e| e.to_string())?))
    }
}

impl Inlined for Vgf {
    /// As many as the model had that was converted: those that nothing reads are handed in and have no slot in the file.
    fn inputs(&self) -> usize {
        let bound = self.inputs.iter().map(|slot| slot.binding as usize + 1).max();
        self.input_names.len().max(bound.unwrap_or(0))
    }

    fn outputs(&self) -> usize {
        self.outputs.len()
    }

    fn import(
        &self,
        mut builder: Builder,
        _program: &Program,
        inputs: &[Passed],
        _orders: &[Vec<usize>],
        _kept: &mut [TensorId],
        name: &str,
    ) -> Result<(Builder, Vec<Passed>)> {
        builder.at(SourceLocation::new(name));
        let mut given: Vec<TensorId> = Vec::with_capacity(self.inputs.len());
        for slot in &self.inputs {
            let Some(Passed::Tensor(tensor)) = inputs.get(slot.binding as usize) else {
                return Err(builder.invalid(format!("input {} of the delegate is no tensor", slot.binding)));
            };
            vgf::check_input(&builder, self, slot.resource, *tensor)?;
            given.push(*tensor);
        }
        let results = vgf::import(&mut builder, self, &given)?;
        Ok((builder, results.into_iter().map(Passed::Tensor).collect()))
    }

    /// None: files have their constants inside.
    fn data(&self) -> Vec<&str> {
        Vec::new()
    }

    fn operators(&self) -> Vec<&str> {
        vgf::operators(self)
    }

    fn unsupported(&self, name: &str) -> Vec<UnsupportedOperator> {
        let mut all = vgf::unsupported(self);
        for operator in &mut all {
            operator.first = SourceLocation::new(format!("{} of {name}", operator.first));
        }
        all
    }
}
