//! Prompts that are a part of their answers, with how likely their tokens were.

use halite::{Likely, Sequence};

use super::{
    error::Refusal,
    likely::Told,
    limits::{Limits, checked},
};

/// Tokens between looks at whether time is over.
const TOKENS: usize = 64;

/// Gives a sequence a prompt, and says how likely each of its tokens was behind those before it.
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
    for piece in prompt.chunks(TOKENS) {
        checked(limits, deadline)?;
        let done = sequence.append_told(piece, &limits.options(), |token, logits| {
            let told = match Likely::of(token, logits, count).filter(|_| !all.is_empty()) {
                Some(likely) => Told::new(&generator, &likely, all.last()),
                None => Told::alone(&generator, token, all.last()),
            };
            all.push(told);
        });
        done.map_err(|error| Refusal::of(&error))?;
    }
    Ok(all)
}
