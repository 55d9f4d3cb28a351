//! Bounds of calls, and what calls give.

use std::{sync::Arc, time::Duration};

use halite::{CancelToken, Inputs, Outputs, RunOptions, Value};
use jni::{
    Env, EnvUnowned,
    objects::{JClass, JLongArray, JObject, JObjectArray, JString},
    sys::{jboolean, jlong},
};

use crate::{
    convert,
    failure::{Failure, Result, enter},
    held::{self, Held, hold},
    progress::Watcher,
};

/// Does work within bounds: milliseconds, where they are not negative; a token, where it is not zero; a listener, where there is one.
pub fn bounded<T>(
    env: &mut Env<'_>,
    timeout: jlong,
    token: jlong,
    listener: &JObject<'_>,
    work: impl FnOnce(&RunOptions) -> halite::Result<T>,
) -> Result<T> {
    let token = if token == 0 { CancelToken::new() } else { held::token(token)? };
    let mut options = RunOptions::new().cancel(&token);
    if let Ok(milliseconds) = u64::try_from(timeout) {
        options = options.timeout(Duration::from_millis(milliseconds));
    }
    let (watcher, options) = Watcher::watch(env, listener, options, &token)?;
    let outcome = work(&options);
    watcher.end(env, outcome)
}

/// Inputs: by their names, or by their places where there are no names.
pub fn inputs(
    env: &mut Env<'_>,
    names: &JObjectArray<'_, JString<'_>>,
    tensors: &JLongArray<'_>,
) -> Result<Inputs> {
    let tensors = held::all(env, tensors, held::tensor)?;
    if names.is_null() {
        return Ok(tensors.into_iter().fold(Inputs::new(), Inputs::push));
    }
    let names = convert::texts(env, names)?;
    if names.len() != tensors.len() {
        return Err(Failure::invalid(format!("{} names for {} tensors", names.len(), tensors.len())));
    }
    Ok(names.into_iter().zip(tensors).fold(Inputs::new(), |inputs, (name, tensor)| inputs.with(name, tensor)))
}

/// The names of what a call gave.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_outputNames<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    outputs: jlong,
) -> JObjectArray<'local, JString<'local>> {
    enter(env, |env| {
        let outputs = held::outputs(outputs)?;
        let names: Vec<String> = outputs.names().map(str::to_owned).collect();
        convert::array_of(env, &names)
    })
}

/// The tensors that a call gave, each a handle of its own.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_outputTensors<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    outputs: jlong,
) -> JLongArray<'local> {
    enter(env, |env| {
        let outputs = held::outputs(outputs)?;
        let tensors = tensors(&outputs)?;
        let handles: Vec<jlong> = tensors.into_iter().map(|tensor| hold(Held::Tensor(tensor))).collect();
        convert::array_of_longs(env, &handles)
    })
}

/// All values as tensors.
fn tensors(outputs: &Outputs) -> Result<Vec<halite::Tensor>> {
    let tensor = |(name, value): (&str, &Value)| match value {
        Value::Tensor(tensor) => Ok(tensor.clone()),
        Value::I32(number) => Ok(halite::Tensor::scalar(*number)),
        Value::I64(number) => Ok(halite::Tensor::scalar(*number)),
        Value::F32(number) => Ok(halite::Tensor::scalar(*number)),
        Value::F64(number) => Ok(halite::Tensor::scalar(*number)),
        other => Err(Failure::invalid(format!(
            "the output '{name}' is a {}, which this interface cannot give; it gives tensors and numbers",
            other.kind()
        ))),
    };
    outputs.iter().map(tensor).collect()
}

/// Holds what a call gave.
pub fn given(outputs: Outputs) -> jlong {
    hold(Held::Outputs(Arc::new(outputs)))
}

/// A switch that stops work.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_token<'local>(
    _env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> jlong {
    hold(Held::Token(CancelToken::new()))
}

/// Stops the work that has the token.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_cancel<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    token: jlong,
) {
    enter(env, |_| {
        held::token(token)?.cancel();
        Ok(())
    });
}

/// Whether the token was set.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_isCancelled<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    token: jlong,
) -> jboolean {
    enter(env, |_| Ok(held::token(token)?.is_cancelled()))
}
