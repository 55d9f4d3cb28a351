//! Prompts that are a part of their answers, with how likely their tokens were.

use halite::{Likely, Sequence};

use super::{
    error::Refusal,
    likely::Told,
    limits::{Limits, checked},
};

/// Gives a sequence a prompt, token by token, and says how likely each was behind those before it.
pub(super) fn read(
    sequence: &mut Sequence,
    prompt: &[u32],
    count: usize,
    limits: &Limits,
) -> Result<Vec<Told>, Refusal> {
    let generator = sequence.generator().clone();
    let mut all: Vec<Told> = Vec::with_capacity(prompt.len());
    let deadline = limits.deadline();
    sequence.truncate(0);
    for token in prompt {
        checked(limits, deadline)?;
        let told = match Likely::of(*token, sequence.logits(), count).filter(|_| !all.is_empty()) {
            Some(likely) => Told::new(&generator, &likely, all.last()),
            None => Told::alone(&generator, *token, all.last()),
        };
        all.push(told);
        sequence.append(&[*token], &limits.options()).map_err(|error| Refusal::of(&error))?;
    }
    Ok(all)
}
