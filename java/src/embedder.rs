//! Native methods of `org.halite.Embedder`.

use jni::{
    EnvUnowned,
    objects::{JByteArray, JByteBuffer, JClass, JFloatArray, JIntArray, JObject, JObjectArray, JString},
    sys::{jboolean, jint, jlong},
};

use crate::{
    builder::builder,
    calls, convert,
    failure::enter,
    held::{self, Held, hold},
};

/// Builds a language model that makes vectors.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_embedder<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    settings: JObjectArray<'local, JString<'local>>,
    array: JByteArray<'local>,
    buffer: JByteBuffer<'local>,
    file: jint,
    offset: jlong,
    length: jlong,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> jlong {
    enter(env, |env| {
        let builder = builder(env, &settings, &array, &buffer, (file, offset, length))?;
        let embedder = calls::bounded(env, timeout, token, &listener, |options| {
            builder.options(options.clone()).embedder()
        })?;
        Ok(hold(Held::Embedder(embedder)))
    })
}

/// Most tokens of a text.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_embedderLongest<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    embedder: jlong,
) -> jlong {
    enter(env, |_| Ok(i64::try_from(held::embedder(embedder)?.longest()).unwrap_or(i64::MAX)))
}

/// The tokens of a text.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_embedderTokenize<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    embedder: jlong,
    text: JString<'local>,
) -> JIntArray<'local> {
    enter(env, |env| {
        let text = convert::text(env, &text)?;
        let tokens = held::embedder(embedder)?.tokenize(&text);
        convert::array_of_tokens(env, &tokens)
    })
}

/// The vector of a text's tokens.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_embedderEmbed<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    embedder: jlong,
    tokens: JIntArray<'local>,
    normalize: jboolean,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> JFloatArray<'local> {
    enter(env, |env| {
        let (embedder, tokens) = (held::embedder(embedder)?, convert::tokens(env, &tokens)?);
        let vector = calls::bounded(env, timeout, token, &listener, |options| match normalize {
            true => embedder.embed(&tokens, options),
            false => embedder.embed_raw(&tokens, options),
        })?;
        let array = env.new_float_array(vector.len())?;
        array.set_region(env, 0, &vector)?;
        Ok(array)
    })
}
