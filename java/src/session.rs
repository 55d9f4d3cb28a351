//! Native methods of `org.halite.Session` but for building one.

use halite::{Function, ValueInfo, ValueType};
use jni::{
    Env, EnvUnowned,
    objects::{JClass, JLongArray, JObject, JObjectArray, JString},
    sys::{jboolean, jlong},
};

use crate::{
    calls, convert,
    failure::{Result, enter},
    held,
};

/// A function of a session: the default one where there is no name.
pub fn function(env: &Env<'_>, session: jlong, name: &JString<'_>) -> Result<Function> {
    let session = held::session(session)?;
    Ok(match convert::optional_text(env, name)? {
        Some(name) => session.function(&name)?,
        None => session.default_function()?,
    })
}

/// One call.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_run<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    name: JString<'local>,
    names: JObjectArray<'local, JString<'local>>,
    tensors: JLongArray<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> jlong {
    enter(env, |env| {
        let function = function(env, session, &name)?;
        let inputs = calls::inputs(env, &names, &tensors)?;
        let outputs =
            calls::bounded(env, timeout, token, &listener, |options| function.run_with(inputs, options))?;
        Ok(calls::given(outputs))
    })
}

/// Lets the state that a program keeps by itself begin anew.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_resetState<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
) {
    enter(env, |_| Ok(held::session(session)?.reset_state()?));
}

/// The names of all functions.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_functions<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
) -> JObjectArray<'local, JString<'local>> {
    enter(env, |env| {
        let session = held::session(session)?;
        let names: Vec<String> = session.functions().iter().map(halite::FunctionInfo::full_name).collect();
        convert::array_of(env, &names)
    })
}

/// The inputs or outputs of a function, four texts for each: its name, the type of its elements, its dimensions, and whether it may be
/// left out. Type and dimensions are empty where they are not known, or where it is no tensor; dimensions end in a comma each.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_values<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    name: JString<'local>,
    is_outputs: jboolean,
) -> JObjectArray<'local, JString<'local>> {
    enter(env, |env| {
        let function = function(env, session, &name)?;
        let info = function.info();
        let values = if is_outputs { &info.outputs } else { &info.inputs };
        let texts: Vec<String> = values.iter().flat_map(described).collect();
        convert::array_of(env, &texts)
    })
}

fn described(value: &ValueInfo) -> [String; 4] {
    let (element, shape) = match &value.value_type {
        ValueType::Tensor { element_type, shape } => (
            element_type.map(|element| element.to_string()).unwrap_or_default(),
            shape.iter().flatten().map(|size| format!("{size},")).collect(),
        ),
        _ => (String::new(), String::new()),
    };
    [value.name.clone(), element, shape, value.is_optional.to_string()]
}

/// The URI of its device; empty where it has none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sessionDevice<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
) -> JString<'local> {
    enter(env, |env| {
        let session = held::session(session)?;
        let uri = session.device().map(halite::Device::uri).unwrap_or_default();
        Ok(env.new_string(uri)?)
    })
}

/// What was recorded on its device, four numbers: executed, written, written ahead, found ahead.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_recordings<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
) -> JLongArray<'local> {
    enter(env, |env| {
        let session = held::session(session)?;
        let told = session.device().map(halite::Device::recordings).unwrap_or_default();
        let counts = [told.executed, told.written, told.written_ahead, told.found_ahead];
        let counts = counts.map(|count| jlong::try_from(count).unwrap_or(jlong::MAX));
        convert::array_of_longs(env, &counts)
    })
}
