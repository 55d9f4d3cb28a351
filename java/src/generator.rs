//! Native methods of `org.halite.Generator`.

use std::{str::FromStr, sync::Arc};

use halite::{CacheType, ChooseOn, GeneratorOptions, Message};
use jni::{
    EnvUnowned,
    objects::{JByteArray, JByteBuffer, JClass, JIntArray, JObject, JObjectArray, JString},
    sys::{jboolean, jint, jlong},
};
use parking_lot::Mutex;

use crate::{
    builder::builder,
    calls, convert,
    failure::{Failure, enter},
    held::{self, Held, hold},
};

/// Builds a language model that writes. A context of zero is the library's own choice; a tokenizer of null is looked for beside the model.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generator<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    settings: JObjectArray<'local, JString<'local>>,
    array: JByteArray<'local>,
    buffer: JByteBuffer<'local>,
    file: jint,
    offset: jlong,
    length: jlong,
    context: jlong,
    keys: JString<'local>,
    values: JString<'local>,
    scoring: jboolean,
    tokenizer: JString<'local>,
    choose_on: JString<'local>,
    batch: jlong,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> jlong {
    enter(env, |env| {
        let builder = builder(env, &settings, &array, &buffer, (file, offset, length))?;
        let keys = CacheType::from_str(&convert::text(env, &keys)?)?;
        let values = CacheType::from_str(&convert::text(env, &values)?)?;
        let mut wanted = GeneratorOptions::new().cache_types(keys, values).scoring(scoring);
        wanted = wanted.choose_on(ChooseOn::from_str(&convert::text(env, &choose_on)?)?);
        if !tokenizer.is_null() {
            wanted = wanted.tokenizer(convert::text(env, &tokenizer)?);
        }
        wanted = wanted.batch(usize::try_from(batch).unwrap_or(1));
        if context != 0 {
            let context = usize::try_from(context);
            wanted = wanted.context(context.map_err(|_| Failure::invalid("a context is not negative"))?);
        }
        let generator = calls::bounded(env, timeout, token, &listener, |options| {
            builder.options(options.clone()).generator(wanted)
        })?;
        Ok(hold(Held::Generator(generator)))
    })
}

/// How many tokens the model knows, or a sequence has room for.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorSize<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    of_vocabulary: jboolean,
) -> jlong {
    enter(env, |_| {
        let generator = held::generator(generator)?;
        let size = if of_vocabulary { generator.vocabulary_len() } else { generator.context() };
        Ok(i64::try_from(size).unwrap_or(i64::MAX))
    })
}

/// The tokens of a text.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorTokenize<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    text: JString<'local>,
    with_control: jboolean,
) -> JIntArray<'local> {
    enter(env, |env| {
        let text = convert::text(env, &text)?;
        let tokens = held::generator(generator)?.tokenize(&text, with_control);
        convert::array_of_tokens(env, &tokens)
    })
}

/// The text of tokens.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorText<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    tokens: JIntArray<'local>,
) -> JString<'local> {
    enter(env, |env| {
        let text = held::generator(generator)?.text(&convert::tokens(env, &tokens)?);
        Ok(env.new_string(text)?)
    })
}

/// Whether a token ends what the model says.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorIsEnd<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    token: jint,
) -> jboolean {
    enter(env, |_| {
        let generator = held::generator(generator)?;
        Ok(u32::try_from(token).is_ok_and(|token| generator.is_end(token)))
    })
}

/// The prompt of a conversation: roles and contents in turns; tools and other values, as JSON, or none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorChat<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
    messages: JObjectArray<'local, JString<'local>>,
    tools: JString<'local>,
    values: JString<'local>,
) -> JString<'local> {
    enter(env, |env| {
        let texts = convert::texts(env, &messages)?;
        let messages: Vec<Message> =
            texts.chunks_exact(2).map(|pair| Message::new(&*pair[0], &*pair[1])).collect();
        let (tools, values) = (convert::optional_text(env, &tools)?, convert::optional_text(env, &values)?);
        let values = values.as_deref().unwrap_or("{}");
        let options = halite::RunOptions::new();
        let prompt =
            held::generator(generator)?.chat_with_values(&messages, tools.as_deref(), values, &options)?;
        Ok(env.new_string(prompt)?)
    })
}

/// The URI of its device.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_generatorDevice<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
) -> JString<'local> {
    enter(env, |env| {
        let generator = held::generator(generator)?;
        let uri = generator.session().device().map(|device| device.uri().to_owned()).unwrap_or_default();
        Ok(env.new_string(uri)?)
    })
}

/// A sequence without tokens.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequence<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    generator: jlong,
) -> jlong {
    enter(env, |_| {
        let sequence = held::generator(generator)?.sequence()?;
        Ok(hold(Held::Sequence(Arc::new(Mutex::new(sequence)))))
    })
}
