//! Functions of models whose sizes the caller fixed: one version each, which stays.

use std::sync::Arc;

use halite_cache::Digest;
use halite_compiler as compiler;

use super::{
    functions::ModelFunction,
    model::ModelProgram,
    versions::{Fixed, ShapeKey, Version},
};
use crate::{Result, Value, options::Limits};

impl ModelProgram {
    /// The version for the sizes that the caller fixed, which stays.
    pub(super) fn fixed_version(&self, place: usize, fixed: &Fixed, limits: &Limits) -> Result<Arc<Version>> {
        if let Some(version) = fixed.version.get() {
            return Ok(version.clone());
        }
        let function = &self.functions[place];
        let key = ShapeKey(format!("{place} fixed"));
        let none = |_: &[usize]| Ok(Digest::of(b""));
        let version = self.versions.get(&key, limits, &none, || {
            // Another thread may have made it meanwhile.
            match fixed.version.get() {
                Some(version) => Ok((Vec::new(), version.clone())),
                None => self.make(function, "fixed sizes", fixed.bindings.clone(), &[], limits),
            }
        })?;
        let version = fixed.version.get_or_init(|| version).clone();
        for other in self.beside(function, &[]) {
            if let (Some(fixed), Ok(version)) =
                (&other.fixed, Version::of(&other.name, &other.outputs, version.session.clone()))
            {
                fixed.version.get_or_init(|| Arc::new(version));
            }
        }
        self.versions.forget(&key);
        let made = |f: &ModelFunction| f.fixed.as_ref().and_then(|fixed| fixed.version.get().cloned());
        // What calls on a state would need is made of the model, too.
        let is_needed = |place: usize| {
            let base = self.functions.iter().find(|f| f.growing == Some(place));
            base.and_then(made).is_none_or(|version| version.capacities.has_windows())
        };
        let is_left = |(place, f): (usize, &ModelFunction)| made(f).is_none() && is_needed(place);
        if !self.functions.iter().enumerate().any(is_left) {
            // Nothing else can be made of the model, so its memory goes.
            *self.model.lock() = None;
        }
        Ok(version)
    }

    /// Functions that are in the module of a function whose sizes the caller fixed: those that choose tokens by its logits, and behind the
    /// first those that take a step of several sequences, or look at what another model wrote. Together they have one copy of what the device makes of weights.
    pub(super) fn beside(
        &self,
        function: &ModelFunction,
        values: &[Value],
    ) -> impl Iterator<Item = &ModelFunction> {
        let choice = self.options.choice.as_ref().map(|(choice, _)| choice);
        let is_fixed = function.fixed.is_some() && values.is_empty();
        let chooses = is_fixed && choice.is_some_and(|choice| choice.function == function.name);
        let is_first = self.functions.first().is_some_and(|first| first.name == function.name);
        let steps = is_fixed && is_first && self.options.batches;
        let verifies = is_fixed && is_first && self.options.verifies;
        let belongs = move |name: &str| {
            (chooses && compiler::ChoiceWay::of(name).is_some())
                || (steps && [compiler::BATCH, compiler::BATCH_SAMPLE].contains(&name))
                || (verifies && name == compiler::VERIFY)
        };
        self.functions.iter().filter(move |other| other.fixed.is_some() && belongs(&other.name))
    }
}
