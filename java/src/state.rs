//! Native methods of `org.halite.State`.

use std::sync::Arc;

use jni::{
    EnvUnowned,
    objects::{JByteArray, JClass, JLongArray, JObject, JObjectArray, JString},
    sys::jlong,
};
use parking_lot::Mutex;

use crate::{
    calls, convert,
    failure::enter,
    held::{self, Held, hold},
    session,
};

/// A state of a function: the default one where there is no name.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_state<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    function: JString<'local>,
) -> jlong {
    enter(env, |env| {
        let state = session::function(env, session, &function)?.state()?;
        Ok(hold(Held::State(Arc::new(Mutex::new(state)))))
    })
}

/// One call, which goes on from where the last one ended.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateRun<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
    names: JObjectArray<'local, JString<'local>>,
    tensors: JLongArray<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> jlong {
    enter(env, |env| {
        let inputs = calls::inputs(env, &names, &tensors)?;
        let state = held::state(state)?;
        let outputs =
            calls::bounded(env, timeout, token, &listener, |options| state.lock().run_with(inputs, options))?;
        Ok(calls::given(outputs))
    })
}

/// Begins anew.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateReset<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
) {
    enter(env, |_| Ok(held::state(state)?.lock().reset()?));
}

/// The names of what it keeps.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateNames<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
) -> JObjectArray<'local, JString<'local>> {
    enter(env, |env| {
        let names: Vec<String> = held::state(state)?.lock().names().map(str::to_owned).collect();
        convert::array_of(env, &names)
    })
}

/// A tensor that it keeps; zero where it keeps none yet.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateGet<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
    name: JString<'local>,
) -> jlong {
    enter(env, |env| {
        let name = convert::text(env, &name)?;
        let tensor = held::state(state)?.lock().tensor(&name)?;
        Ok(tensor.map_or(0, |tensor| hold(Held::Tensor(tensor))))
    })
}

/// Goes on from a tensor in the place of what it keeps.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateSet<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
    name: JString<'local>,
    tensor: jlong,
) {
    enter(env, |env| {
        let (name, tensor) = (convert::text(env, &name)?, held::tensor(tensor)?);
        Ok(held::state(state)?.lock().set(&name, &tensor)?)
    });
}

/// Another state that goes on from the same place.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateFork<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
) -> jlong {
    enter(env, |_| {
        let forked = held::state(state)?.lock().fork()?;
        Ok(hold(Held::State(Arc::new(Mutex::new(forked)))))
    })
}

/// What it keeps, as bytes that another process can load.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateSave<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
) -> JByteArray<'local> {
    enter(env, |env| {
        let bytes = held::state(state)?.lock().save()?;
        Ok(env.byte_array_from_slice(&bytes)?)
    })
}

/// Goes on from saved bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_stateLoad<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    state: jlong,
    saved: JByteArray<'local>,
) {
    enter(env, |env| {
        let bytes = env.convert_byte_array(&saved)?;
        Ok(held::state(state)?.lock().load(bytes)?)
    });
}
