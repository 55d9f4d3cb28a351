//! How many sequences of a language model a device takes a step of at once: as many as it can bind caches of.

use halite_compiler::{self as compiler, BATCH};
use halite_targets::Capabilities;

use crate::{Result, compile, compile::Sizes};

/// Leaves those sizes of batches out whose caches a device cannot bind, one behind the other; gives whether some are left.
pub(super) fn fit(sizes: &mut Sizes, model: &compiler::Model, capabilities: &Capabilities) -> Result<bool> {
    let main = model.functions().swap_remove(0);
    let inputs = model.inputs(&main).map_err(compile::error)?;
    let shapes = sizes.single(&inputs)?.resolve(&inputs).map_err(compile::error)?;
    let bytes = inputs.iter().zip(shapes).filter_map(|(input, shape)| {
        let element = u128::from(input.element?.storage().size());
        Some(shape.into_iter().map(u128::from).product::<u128>() * element)
    });
    let most = u128::from(capabilities.max_storage_buffer_bytes) / bytes.max().unwrap_or(1).max(1);
    Ok(sizes.at_most(BATCH, usize::try_from(most).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

    use halite_compiler::{Control, Model, ModelFormat};
    use halite_targets::Target;

    use super::*;

    #[test]
    fn batches_have_as_many_sequences_as_can_be_bound() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../compiler/tests/data/gguf/llama.gguf");
        let bytes = std::fs::read(file).unwrap().into();
        let format = ModelFormat::named("gguf").unwrap();
        let mut model = Model::from_bytes(bytes, format, &Control::default()).unwrap();
        // Keys of 16 elements and 128 tokens.
        let one = 16 * 2 * 128;
        let left = |bytes: u64| {
            let mut capabilities = Capabilities::of(Target::parse("hopper-h100-linux").unwrap());
            capabilities.max_storage_buffer_bytes = bytes;
            let mut sizes = Sizes::new().dimension("tokens", [1]).dimension("rows", [1]);
            sizes.merge(Sizes::new().dimension("context", [128]).dimension(BATCH, [2, 4, 8]));
            let some = fit(&mut sizes, &model, &capabilities).unwrap();
            (some, sizes)
        };
        assert!(left(2 * one - 1).0.eq(&false), "one alone");
        let (some, sizes) = left(5 * one);
        model.decode_batches(false).unwrap();
        let inputs = model.inputs(BATCH).unwrap();
        let versions = sizes.for_function(&inputs).unwrap().unwrap();
        assert_eq!(versions.iter().map(|version| version.dims[BATCH]).collect::<Vec<_>>(), [2, 4]);
        assert!(some);
    }
}
