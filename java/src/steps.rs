//! Native methods of `org.halite.Sampler`, and steps of several sequences together.

use std::sync::Arc;

use halite::{Next, Sampler, Stop};
use jni::{
    EnvUnowned,
    objects::{JClass, JIntArray, JLongArray, JObject, JString},
    sys::{jboolean, jfloat, jint, jlong},
};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    calls,
    failure::{Failure, Result, enter},
    held::{self, Chooser, Held, hold},
    writing::{sampling, schema},
};

/// What Java's half takes as the end of a text, and a context that is full, in the place of a token.
const END: i32 = -1;
const CONTEXT: i32 = -2;

/// What chooses the tokens of a sequence. Numbers that are not given are the library's own. With a schema, which may be null, it is one for
/// sequences of a generator.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sampler<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    temperature: jfloat,
    top_p: jfloat,
    min_p: jfloat,
    penalty: jfloat,
    top_k: jint,
    penalty_last: jint,
    seed: jlong,
    ignore_end: jboolean,
    json_schema: JString<'local>,
) -> jlong {
    enter(env, |env| {
        let wanted = sampling([temperature, top_p, min_p, penalty], [top_k, penalty_last], seed);
        let sampler = match schema(env, &json_schema)? {
            Some(schema) => held::generator(generator)?.schema_sampler(wanted, &schema),
            None => Sampler::new(wanted),
        };
        let sampler = Arc::new(Mutex::new(sampler));
        Ok(hold(Held::Sampler(Chooser { sampler, ignore_end })))
    })
}

/// How many sequences take a step together at most.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorBatch<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
) -> jlong {
    enter(env, |_| Ok(i64::try_from(held::generator(generator)?.batch()).unwrap_or(i64::MAX)))
}

/// Objects, each locked once, in an order that is the same for all threads.
fn locked<'a, T>(all: &'a [Arc<Mutex<T>>], what: &str) -> Result<Vec<MutexGuard<'a, T>>> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|place| Arc::as_ptr(&all[*place]).addr());
    if order.windows(2).any(|pair| Arc::ptr_eq(&all[pair[0]], &all[pair[1]])) {
        return Err(Failure::invalid(format!("a {what} takes part in a step once")));
    }
    let mut guards: Vec<Option<MutexGuard<'a, T>>> = all.iter().map(|_| None).collect();
    for place in order {
        guards[place] = Some(all[place].lock());
    }
    Ok(guards.into_iter().flatten().collect())
}

/// The next token of each of these sequences, which is added to it; a negative number where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorStep<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    sequences: JLongArray<'local>,
    samplers: JLongArray<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> JIntArray<'local> {
    enter(env, |env| {
        let generator = held::generator(generator)?;
        let sequences = held::all(env, &sequences, held::sequence)?;
        let choosers = held::all(env, &samplers, held::sampler)?;
        if sequences.len() != choosers.len() {
            let text = format!("{} sequences for {} samplers", sequences.len(), choosers.len());
            return Err(Failure::invalid(text));
        }
        let samplers: Vec<_> = choosers.iter().map(|chooser| chooser.sampler.clone()).collect();
        let (mut own, mut choosing) = (locked(&sequences, "sequence")?, locked(&samplers, "sampler")?);
        let mut members = Vec::new();
        for ((sequence, sampler), chooser) in own.iter_mut().zip(&mut choosing).zip(&choosers) {
            sequence.ignore_end(chooser.ignore_end);
            members.push((&mut **sequence, &mut **sampler));
        }
        let next =
            calls::bounded(env, timeout, token, &listener, |options| generator.step(&mut members, options))?;
        let numbers = next.into_iter().map(number).collect::<Result<Vec<i32>>>()?;
        let array = env.new_int_array(numbers.len())?;
        array.set_region(env, 0, &numbers)?;
        Ok(array)
    })
}

fn number(next: Next) -> Result<i32> {
    match next {
        // Models know fewer tokens than Java's numbers reach.
        Next::Token(token) => Ok(token.cast_signed()),
        Next::Stop(Stop::End) => Ok(END),
        Next::Stop(Stop::Context) => Ok(CONTEXT),
        other => Err(Failure::invalid(format!("Java has no name for {other:?}"))),
    }
}
