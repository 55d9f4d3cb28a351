//! Tries for versions that many sizes share.

use std::sync::Arc;

use halite_compiler::{
    self as compiler, CompileError, OpenVersion,
    signature::{Bindings, Signature},
};

use super::{
    ahead::Shapes,
    model::OpenModel,
    refusals::{Refusal, Refused},
};
use crate::{Result, compile, kept::Kept, options::Limits};

/// The compilation of a version with open sizes, which any thread can do: no device is in it.
pub(super) struct OpenWork {
    pub model: Arc<OpenModel>,
    pub name: String,
    pub function: String,
    pub inputs: Vec<Signature>,
    /// The function's place, and what is known not to work.
    pub refused: (usize, Arc<Refused>),
    /// Sizes to choose kernels for, the best first, and what they mean; not each gives a version that holds for the sizes wanted.
    pub examples: Vec<(Shapes, Bindings)>,
    pub wanted: Shapes,
    pub precision: compiler::Precision,
    pub options: compiler::CompileOptions,
}

impl OpenWork {
    /// `None` where the model cannot be had so.
    pub fn run(self, limits: &Limits) -> Result<Option<Kept>> {
        for (example, bindings) in &self.examples {
            let made = self.make(example, bindings, limits);
            limits.check("compiling for many sizes")?;
            if let Some(OpenVersion { compiled, coverage, capacities }) = made {
                let parameters = compiled.parameters.map(|archive| archive.entries).unwrap_or_default();
                let module = compiled.module.to_vec().into();
                let (bound, coverage) = (Vec::new(), Some(coverage));
                return Ok(Some(Kept { module, parameters, bound, coverage, capacities }));
            }
        }
        Ok(None)
    }

    /// One try. Not all that a model does with one size it can do with many, and sizes larger than those of the call may be more than
    /// it is for: what is wrong is logged, and at last a version for these sizes alone is made, or says it.
    fn make(&self, example: &[Vec<u64>], bindings: &Bindings, limits: &Limits) -> Option<OpenVersion> {
        let (place, refused) = (self.refused.0, &self.refused.1);
        if refused.knows(place, example, &self.inputs, &self.wanted) {
            return None;
        }
        let control = compile::control(limits);
        let (model, sizes) = (&self.model.model, (bindings, &self.wanted[..]));
        let made = model.open_version(&self.function, sizes, self.precision, &self.options, &control);
        match made {
            Ok(made) => made,
            Err(error) => {
                log::info!(
                    "'{}' has no version for many sizes by the example {example:?}: {error}",
                    self.name
                );
                if let CompileError::OtherSizes { region, .. } = error {
                    refused.note(Refusal { place, example: example.to_vec(), region: *region });
                }
                None
            }
        }
    }
}
