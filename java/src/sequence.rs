//! Native methods of `org.halite.Sequence` but for writing.

use std::sync::Arc;

use jni::{
    EnvUnowned,
    objects::{JByteArray, JClass, JDoubleArray, JFloatArray, JIntArray, JObject},
    sys::jlong,
};
use parking_lot::Mutex;

use crate::{
    calls, convert,
    failure::{Failure, enter},
    held::{self, Held, hold},
};

/// Makes the sequence these tokens; gives how many it had already.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequencePrompt<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
    tokens: JIntArray<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> jlong {
    enter(env, |env| {
        let (sequence, tokens) = (held::sequence(sequence)?, convert::tokens(env, &tokens)?);
        let kept = calls::bounded(env, timeout, token, &listener, |options| {
            sequence.lock().prompt(&tokens, options)
        })?;
        Ok(i64::try_from(kept).unwrap_or(i64::MAX))
    })
}

/// Adds tokens.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceAppend<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
    tokens: JIntArray<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) {
    enter(env, |env| {
        let (sequence, tokens) = (held::sequence(sequence)?, convert::tokens(env, &tokens)?);
        calls::bounded(env, timeout, token, &listener, |options| sequence.lock().append(&tokens, options))
    });
}

/// Adds tokens, and gives how likely they were.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceScore<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
    tokens: JIntArray<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> JDoubleArray<'local> {
    enter(env, |env| {
        let (sequence, tokens) = (held::sequence(sequence)?, convert::tokens(env, &tokens)?);
        let scores = calls::bounded(env, timeout, token, &listener, |options| {
            sequence.lock().score(&tokens, options)
        })?;
        let array = env.new_double_array(scores.len())?;
        array.set_region(env, 0, &scores)?;
        Ok(array)
    })
}

/// Takes the last tokens back.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceTruncate<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
    count: jlong,
) {
    enter(env, |_| {
        let count =
            usize::try_from(count).map_err(|_| Failure::invalid("a number of tokens is not negative"))?;
        held::sequence(sequence)?.lock().truncate(count);
        Ok(())
    });
}

/// All tokens so far.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceTokens<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
) -> JIntArray<'local> {
    enter(env, |env| {
        let tokens = held::sequence(sequence)?.lock().tokens().to_vec();
        convert::array_of_tokens(env, &tokens)
    })
}

/// Logits of the token that comes next.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceLogits<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
) -> JFloatArray<'local> {
    enter(env, |env| {
        let logits = held::sequence(sequence)?.lock().logits().to_vec();
        let array = env.new_float_array(logits.len())?;
        array.set_region(env, 0, &logits)?;
        Ok(array)
    })
}

/// Bytes of its caches on the device.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceBytes<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
) -> jlong {
    enter(env, |_| Ok(i64::try_from(held::sequence(sequence)?.lock().byte_len()).unwrap_or(i64::MAX)))
}

/// Another sequence that goes on from the same place.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceFork<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
) -> jlong {
    enter(env, |_| {
        let forked = held::sequence(sequence)?.lock().fork()?;
        Ok(hold(Held::Sequence(Arc::new(Mutex::new(forked)))))
    })
}

/// Tokens and caches, as bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceSave<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
) -> JByteArray<'local> {
    enter(env, |env| {
        let bytes = held::sequence(sequence)?.lock().save()?;
        Ok(env.byte_array_from_slice(&bytes)?)
    })
}

/// Becomes what was saved.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceLoad<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
    saved: JByteArray<'local>,
) {
    enter(env, |env| {
        let bytes = env.convert_byte_array(&saved)?;
        Ok(held::sequence(sequence)?.lock().load(&bytes)?)
    });
}
