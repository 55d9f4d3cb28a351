//! Letting a language model write, and `org.halite.TextListener`, which is told what it writes.

use std::ops::ControlFlow;

use halite::{JsonSchema, RunOptions, Sampler, Sampling, Sequence, Stop, StopTexts};
use jni::{
    Env, EnvUnowned, jni_sig, jni_str,
    objects::{JClass, JObject, JObjectArray, JString, JThrowable, JValue},
    refs::Global,
    sys::{jboolean, jfloat, jint, jlong},
    vm::JavaVM,
};

use crate::{
    calls, convert,
    failure::{Failure, Result, enter},
    held,
};

/// Lets the model write on; gives the name of the reason why it stopped. Numbers that are not given (not a number, negative) are the
/// library's own.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_sequenceGenerate<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    sequence: jlong,
    temperature: jfloat,
    top_p: jfloat,
    min_p: jfloat,
    penalty: jfloat,
    top_k: jint,
    penalty_last: jint,
    seed: jlong,
    most: jlong,
    ignore_end: jboolean,
    stops: JObjectArray<'local, JString<'local>>,
    json_schema: JString<'local>,
    texts: JObject<'local>,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> JString<'local> {
    enter(env, |env| {
        let sampling = sampling([temperature, top_p, min_p, penalty], [top_k, penalty_last], seed);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let stops = StopTexts::new(convert::texts(env, &stops)?);
        let schema = schema(env, &json_schema)?;
        let (sequence, mut reader) = (held::sequence(sequence)?, Reader::new(env, &texts)?);
        let outcome = calls::bounded(env, timeout, token, &listener, |options| {
            let mut sequence = sequence.lock();
            let sampler = match &schema {
                Some(schema) => sequence.generator().schema_sampler(sampling, schema),
                None => Sampler::new(sampling),
            };
            write(&mut sequence, sampler, (most, ignore_end), stops, options, &mut reader)
        });
        if let Some(thrown) = reader.thrown {
            let error = match env.throw(&*thrown) {
                Ok(()) => jni::errors::Error::JavaException,
                Err(error) => error,
            };
            return Err(Failure::Machine(error));
        }
        let (stop, by_text) = outcome?;
        let name = stop_name(stop, by_text)?;
        Ok(env.new_string(name)?)
    })
}

/// How tokens are chosen, as Java's half says. Numbers that are not given (not a number, negative) are the library's own.
pub fn sampling(floats: [jfloat; 4], counts: [jint; 2], seed: jlong) -> Sampling {
    let own = Sampling::default();
    let float = |given: jfloat, own: f32| if given.is_nan() { own } else { given };
    let count = |given: jint, own: usize| usize::try_from(given).unwrap_or(own);
    let [temperature, top_p, min_p, penalty] = floats;
    let [top_k, penalty_last] = counts;
    Sampling {
        temperature: float(temperature, own.temperature),
        top_k: count(top_k, own.top_k),
        top_p: float(top_p, own.top_p),
        min_p: float(min_p, own.min_p),
        repeat_penalty: float(penalty, own.repeat_penalty),
        repeat_last: count(penalty_last, own.repeat_last),
        seed: seed.cast_unsigned(),
        ..own
    }
}

/// The JSON schema of a text, which may be null.
pub fn schema(env: &Env<'_>, text: &JString<'_>) -> Result<Option<JsonSchema>> {
    if text.is_null() {
        return Ok(None);
    }
    Ok(Some(JsonSchema::parse(&convert::text(env, text)?)?))
}

/// The name of a reason in Java's enumeration `Stop`.
fn stop_name(stop: Stop, by_text: bool) -> Result<&'static str> {
    Ok(match stop {
        Stop::End => "END",
        Stop::Length => "LENGTH",
        Stop::Context => "CONTEXT",
        Stop::Caller if by_text => "TEXT",
        Stop::Caller => "CALLER",
        other => return Err(Failure::invalid(format!("Java has no name for {other:?}"))),
    })
}

/// Writes; tells why it stopped, and whether that was for one of the texts.
fn write(
    sequence: &mut Sequence,
    mut sampler: Sampler,
    (most, ignore_end): (usize, bool),
    mut stops: StopTexts,
    options: &RunOptions,
    reader: &mut Reader,
) -> halite::Result<(Stop, bool)> {
    sequence.ignore_end(ignore_end);
    let mut by_text = false;
    let why = sequence.generate(&mut sampler, most, options, |piece| {
        let (text, ended) = stops.push(&piece.text);
        by_text = ended;
        let goes_on = reader.tell(&text);
        if ended || !goes_on { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let held = stops.finish();
    if why != Stop::Caller && !held.is_empty() {
        reader.tell(&held);
    }
    Ok((why, by_text))
}

/// A listener, and what it threw.
struct Reader {
    machine: JavaVM,
    listener: Option<Global<JObject<'static>>>,
    thrown: Option<Global<JThrowable<'static>>>,
}

impl Reader {
    /// Of a listener, which may be null.
    fn new(env: &mut Env<'_>, listener: &JObject<'_>) -> Result<Reader> {
        let listener = if listener.is_null() { None } else { Some(env.new_global_ref(listener)?) };
        Ok(Reader { machine: env.get_java_vm()?, listener, thrown: None })
    }

    /// Tells a text; whether more is wanted.
    fn tell(&mut self, text: &str) -> bool {
        let Some(listener) = &self.listener else { return true };
        let told = self.machine.attach_current_thread(|env| {
            // A frame of its own: a long answer must not fill the table of references.
            env.with_local_frame(8, |env| {
                let text = env.new_string(text)?;
                let arguments = [JValue::Object(&text)];
                let called = env.call_method(
                    &**listener,
                    jni_str!("tell"),
                    jni_sig!("(Ljava/lang/String;)Z"),
                    &arguments,
                );
                let Some(exception) = env.exception_occurred() else {
                    return Ok((called?.z()?, None));
                };
                env.exception_clear();
                Ok::<_, jni::errors::Error>((false, Some(env.new_global_ref(exception)?)))
            })
        });
        // A virtual machine that takes no calls any more is going away: nobody wants more.
        let (goes_on, thrown) = told.unwrap_or_default();
        self.thrown = thrown;
        goes_on
    }
}
