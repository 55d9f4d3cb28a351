//! Native methods of `org.halite.Tensor`: elements go in and out by direct buffers.

use halite::Tensor;
use jni::{
    EnvUnowned,
    objects::{JByteBuffer, JClass, JLongArray, JString},
    sys::{jboolean, jint, jlong},
};

use crate::{
    bytes::Direct,
    convert,
    failure::enter,
    held::{self, Held, hold},
};

/// A tensor with a copy of these elements: on the session's device, or on the host where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_tensor<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    element_type: JString<'local>,
    shape: JLongArray<'local>,
    buffer: JByteBuffer<'local>,
    offset: jint,
    length: jint,
    session: jlong,
) -> jlong {
    enter(env, |env| {
        let element_type = convert::element_type(env, &element_type)?;
        let shape = convert::shape(env, &shape)?;
        let elements = Direct::part(env, &buffer, offset, length)?;
        let session = if session == 0 { None } else { Some(held::session(session)?) };
        let tensor = match session.as_ref().and_then(halite::Session::device) {
            Some(device) => Tensor::upload(device, element_type, shape, elements.bytes())?,
            None => Tensor::from_bytes(element_type, shape, elements.bytes().to_vec())?,
        };
        Ok(hold(Held::Tensor(tensor)))
    })
}

/// Its type: `f32`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_tensorType<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tensor: jlong,
) -> JString<'local> {
    enter(env, |env| Ok(env.new_string(held::tensor(tensor)?.element_type().to_string())?))
}

/// Its sizes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_tensorShape<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tensor: jlong,
) -> JLongArray<'local> {
    enter(env, |env| {
        let tensor = held::tensor(tensor)?;
        let sizes: Vec<jlong> = tensor.shape().iter().map(|size| *size as jlong).collect();
        convert::array_of_longs(env, &sizes)
    })
}

/// How many bytes its elements have.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_tensorBytes<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tensor: jlong,
) -> jlong {
    enter(env, |_| Ok(held::tensor(tensor)?.byte_len() as jlong))
}

/// Whether its elements are on a device.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_tensorIsOnDevice<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tensor: jlong,
) -> jboolean {
    enter(env, |_| Ok(held::tensor(tensor)?.device().is_some()))
}

/// Copies its elements to a direct buffer.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_tensorRead<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tensor: jlong,
    buffer: JByteBuffer<'local>,
    offset: jint,
    length: jint,
) {
    enter(env, |env| {
        let tensor = held::tensor(tensor)?;
        let mut target = Direct::part(env, &buffer, offset, length)?;
        Ok(tensor.read_into(target.bytes_mut())?)
    });
}
