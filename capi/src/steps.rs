//! Shared steps of several sequences, and samplers.

use std::ptr;

use halite::{Next, Sampler, Stop};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    generator::halite_generator,
    options::{Bounds, halite_run_options},
    raw::{self, Out},
    sequence::{
        HALITE_STOP_CALLER, HALITE_STOP_CONTEXT, HALITE_STOP_END, HALITE_STOP_LENGTH, halite_generation,
        halite_sequence, halite_stop,
    },
    tokens::{HALITE_NO_TOKEN, given},
};

/// Chooses the tokens of a sequence, one after the other. One call at a time uses it; others wait.
pub struct halite_sampler {
    sampler: Mutex<Sampler>,
    ignore_end: bool,
}

/// A sequence that takes a step, and the outcome.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_writer {
    /// The sequence.
    pub sequence: *mut halite_sequence,
    /// What chooses its tokens.
    pub sampler: *mut halite_sampler,
    /// Output: the new token; `HALITE_NO_TOKEN` if there is none.
    pub token: u32,
    /// Output: why there is no token; 0 if there is one.
    pub stop: halite_stop,
}

/// Objects, each locked once, in an order that is the same for all threads.
fn locked<'a, T>(all: &[&'a Mutex<T>], what: &str) -> Result<Vec<MutexGuard<'a, T>>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|place| ptr::from_ref(all[*place]).addr());
    if order.windows(2).any(|pair| ptr::eq(all[pair[0]], all[pair[1]])) {
        return Err(Failure::invalid(format!(
            "a {what} takes part in a step once, and this one is there twice"
        )));
    }
    let mut guards: Vec<Option<MutexGuard<'a, T>>> = all.iter().map(|_| None).collect();
    for place in order {
        guards[place] = Some(all[place].lock());
    }
    Ok(guards.into_iter().flatten().collect())
}

/// Makes a sampler, which chooses tokens as `generation` says: its choice of tokens, the seed and `ignore_end` count. NULL
/// takes the most likely ones. `json_schema` is an error here: `halite_generator_schema_sampler` takes it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sampler_create(
    generation: *const halite_generation,
    out: *mut *mut halite_sampler,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_sampler_create", || unsafe {
        let out = Out::handle(out, "out")?;
        let stated = raw::structure(generation)?;
        if !stated.json_schema.is_null() {
            return Err(Failure::invalid(
                "a sampler that follows 'json_schema' knows the tokens of a model: halite_generator_schema_sampler makes it",
            ));
        }
        let sampler = Mutex::new(Sampler::new(stated.sampling()));
        out.give(halite_sampler { sampler, ignore_end: stated.ignore_end });
        Ok(())
    })
}

/// Makes a sampler for sequences of this generator, whose tokens make one JSON value that follows `json_schema` of `generation`,
/// and then end. The rest is as with `halite_sampler_create`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_schema_sampler(
    generator: *const halite_generator,
    generation: *const halite_generation,
    out: *mut *mut halite_sampler,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_schema_sampler", || unsafe {
        let out = Out::handle(out, "out")?;
        let (generator, stated) = (raw::handle(generator, "generator")?, raw::structure(generation)?);
        let Some(schema) = stated.schema()? else {
            return Err(Failure::invalid("'json_schema' is NULL, and the sampler is to follow it"));
        };
        let sampler = Mutex::new(stated.sampler(generator.inner(), Some(&schema)));
        out.give(halite_sampler { sampler, ignore_end: stated.ignore_end });
        Ok(())
    })
}

/// Frees a sampler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_sampler_free(sampler: *mut halite_sampler) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_sampler_free", sampler) }
}

/// The largest number of sequences that take a step together.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_batch(generator: *const halite_generator) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_generator_batch", 0, || unsafe { Ok(raw::handle(generator, "generator")?.inner().batch()) })
}

/// Chooses the next token of each of these sequences and adds it. The logits of all sequences are computed together, so that
/// weights are read once. The list may change between steps. Each sequence and each sampler may be in it once. If the device
/// chooses tokens (`halite_generator_options.choose_on`), it already computes the next step when the function returns.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_step(
    generator: *const halite_generator,
    writers: *mut halite_writer,
    count: usize,
    options: *const halite_run_options,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_step", || unsafe {
        let (generator, bounds) = (raw::handle(generator, "generator")?, Bounds::read(options)?);
        let stated = raw::slice(writers.cast_const(), count, "writers")?.to_vec();
        let sequences =
            stated.iter().map(|own| Ok(raw::handle(own.sequence.cast_const(), "sequence")?.own()));
        let samplers = stated.iter().map(|own| raw::handle(own.sampler.cast_const(), "sampler"));
        let samplers = samplers.collect::<Result<Vec<&halite_sampler>>>()?;
        let mut sequences = locked(&sequences.collect::<Result<Vec<_>>>()?, "sequence")?;
        let mutexes: Vec<_> = samplers.iter().map(|own| &own.sampler).collect();
        let mut choosing = locked(&mutexes, "sampler")?;
        for (sequence, sampler) in sequences.iter_mut().zip(&samplers) {
            sequence.ignore_end(sampler.ignore_end);
        }
        let mut members: Vec<_> = sequences
            .iter_mut()
            .zip(&mut choosing)
            .map(|(own, sampler)| (&mut **own, &mut **sampler))
            .collect();
        let next = generator.inner().step(&mut members, &bounds.options)?;
        for (place, next) in next.into_iter().enumerate() {
            let (token, stop) = match next {
                Next::Token(token) => (token, 0),
                Next::Stop(why) => (HALITE_NO_TOKEN, number(why)?),
                other => {
                    return Err(Failure::internal(format!("this interface has no number for {other:?}")));
                }
            };
            writers.add(place).write(halite_writer { token, stop, ..stated[place] });
        }
        Ok(())
    })
}

fn number(why: Stop) -> Result<halite_stop> {
    match why {
        Stop::End => Ok(HALITE_STOP_END),
        Stop::Length => Ok(HALITE_STOP_LENGTH),
        Stop::Context => Ok(HALITE_STOP_CONTEXT),
        Stop::Caller => Ok(HALITE_STOP_CALLER),
        other => Err(Failure::internal(format!("this interface has no number for {other:?}"))),
    }
}

/// Adds a token to each of these sequences, and computes the logits that follow, of all together. For programs that choose tokens
/// themselves. Both arrays have `count` elements, and each sequence may be in the list once.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_generator_append_each(
    generator: *const halite_generator,
    sequences: *const *mut halite_sequence,
    tokens: *const u32,
    count: usize,
    options: *const halite_run_options,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_generator_append_each", || unsafe {
        let (generator, bounds) = (raw::handle(generator, "generator")?, Bounds::read(options)?);
        let (stated, tokens) = (raw::slice(sequences, count, "sequences")?, given(tokens, count)?);
        let own = stated.iter().map(|own| Ok(raw::handle(own.cast_const(), "sequence")?.own()));
        let mut guards = locked(&own.collect::<Result<Vec<_>>>()?, "sequence")?;
        let mut members: Vec<_> =
            guards.iter_mut().zip(tokens).map(|(own, token)| (&mut **own, *token)).collect();
        Ok(generator.inner().append_each(&mut members, &bounds.options)?)
    })
}
