//! Native methods of `org.halite.SharedMemory` and `org.halite.ExternalMemory`: memory that a device shares with others.

use std::sync::Arc;

use halite::{Bytes, ExternalHandle, ExternalKind, ExternalMemory, ExternalSupport, SharedMemory};
use jni::{
    Env, EnvUnowned,
    objects::{JByteArray, JByteBuffer, JClass, JLongArray, JObject, JString},
    refs::Global,
    sys::{jboolean, jint, jlong},
};
use parking_lot::Mutex;

use crate::{
    bytes::Direct,
    convert,
    failure::{Failure, Result, enter},
    handles,
    held::{self, Held, hold},
};

/// The kind of a name, which Java's half has from its enumeration.
fn kind_of(env: &Env<'_>, name: &JString<'_>) -> Result<ExternalKind> {
    let name = convert::text(env, name)?;
    let found = ExternalKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| Failure::invalid(format!("there is no kind of memory '{name}'")))
}

/// The device of a session.
fn device_of(session: jlong) -> Result<halite::Device> {
    let session = held::session(session)?;
    session.device().cloned().ok_or_else(|| Failure::invalid("the session has no device"))
}

fn size(bytes: jlong) -> Result<u64> {
    u64::try_from(bytes).map_err(|_| Failure::invalid(format!("no memory has {bytes} bytes")))
}

fn place(offset: jlong) -> Result<usize> {
    usize::try_from(offset).map_err(|_| Failure::invalid(format!("{offset} is no offset")))
}

fn hold_memory(memory: SharedMemory) -> jlong {
    hold(Held::Memory(memory))
}

fn hold_handle(memory: ExternalMemory) -> jlong {
    hold(Held::External(Arc::new(Mutex::new(Some(memory)))))
}

/// What the session's device does with a kind: whether it takes it, whether it gives it, and the alignment.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memorySupport<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    kind: JString<'local>,
) -> JLongArray<'local> {
    enter(env, |env| {
        let (kind, info) = (kind_of(env, &kind)?, device_of(session)?.info());
        let found = info.external_memory().iter().find(|support| support.kind == kind).copied();
        let found = found.unwrap_or(ExternalSupport { kind, import: false, export: false, alignment: 1 });
        let told = [jlong::from(found.import), jlong::from(found.export), found.alignment as jlong];
        convert::array_of_longs(env, &told)
    })
}

/// Vulkan's UUIDs of the session's device and of its driver, one behind the other; null where it has none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryUuids<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
) -> JByteArray<'local> {
    enter(env, |env| match device_of(session)?.info().uuids() {
        Some((device, driver)) => Ok(env.byte_array_from_slice(&[device, driver].concat())?),
        None => Ok(JByteArray::null()),
    })
}

/// Makes memory for others.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryCreate<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    kind: JString<'local>,
    bytes: jlong,
) -> jlong {
    enter(env, |env| {
        let kind = kind_of(env, &kind)?;
        let bytes = usize::try_from(size(bytes)?)
            .map_err(|_| Failure::invalid(format!("the process has no {bytes} bytes")))?;
        Ok(hold_memory(SharedMemory::create(&device_of(session)?, kind, bytes)?))
    })
}

/// Takes memory of others by its handle, of which it gets a duplicate.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryOpen<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    external: jlong,
) -> jlong {
    enter(env, |_| {
        let device = device_of(session)?;
        let memory = handles::duplicate(held::external(external)?.lock().as_ref())?;
        Ok(hold_memory(SharedMemory::import(&device, memory)?))
    })
}

/// Bytes of a direct buffer, which is held as long as they are.
struct Pages {
    bytes: Direct,
    _buffer: Global<JByteBuffer<'static>>,
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

/// Takes the memory of a part of a direct buffer.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryOfBuffer<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    buffer: JByteBuffer<'local>,
    offset: jint,
    length: jint,
) -> jlong {
    enter(env, |env| {
        let bytes = Direct::part(env, &buffer, offset, length)?;
        let pages = Pages { bytes, _buffer: env.new_global_ref(&buffer)? };
        let memory = ExternalMemory::host(Bytes::from_owner(pages));
        Ok(hold_memory(SharedMemory::import(&device_of(session)?, memory)?))
    })
}

/// Takes an `android.hardware.HardwareBuffer`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryOfHardwareBuffer<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    session: jlong,
    buffer: JObject<'local>,
    bytes: jlong,
) -> jlong {
    enter(env, |env| {
        let handle = ExternalHandle::AndroidHardwareBuffer(handles::hardware_buffer(env, &buffer)?);
        let memory = ExternalMemory::new(handle, size(bytes)?);
        Ok(hold_memory(SharedMemory::import(&device_of(session)?, memory)?))
    })
}

/// A new handle of memory that was made for others.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryExport<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    memory: jlong,
    kind: JString<'local>,
) -> jlong {
    enter(env, |env| {
        let kind = kind_of(env, &kind)?;
        Ok(hold_handle(held::memory(memory)?.export(kind)?))
    })
}

/// Bytes that tensors can lie in.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryBytes<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    memory: jlong,
) -> jlong {
    enter(env, |_| Ok(held::memory(memory)?.size() as jlong))
}

/// A tensor of the bytes from an offset on.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryTensor<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    memory: jlong,
    element_type: JString<'local>,
    shape: JLongArray<'local>,
    offset: jlong,
) -> jlong {
    enter(env, |env| {
        let element_type = convert::element_type(env, &element_type)?;
        let (shape, offset) = (convert::shape(env, &shape)?, place(offset)?);
        Ok(hold(Held::Tensor(held::memory(memory)?.tensor(element_type, shape, offset)?)))
    })
}

/// Copies a tensor to the bytes from an offset on.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryWrite<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    memory: jlong,
    offset: jlong,
    tensor: jlong,
) {
    enter(env, |_| Ok(held::memory(memory)?.write(place(offset)?, &held::tensor(tensor)?)?));
}

/// Takes the memory back from the others.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryAcquire<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    memory: jlong,
) {
    enter(env, |_| Ok(held::memory(memory)?.acquire()?));
}

/// Gives the memory to the others.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_memoryRelease<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    memory: jlong,
) {
    enter(env, |_| Ok(held::memory(memory)?.release()?));
}

/// A duplicate of somebody's descriptor, with what is known of its memory; a negative memory type is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_external<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    kind: JString<'local>,
    descriptor: jint,
    bytes: jlong,
    memory_type: jint,
    dedicated: jboolean,
) -> jlong {
    enter(env, |env| {
        let handle = handles::named(kind_of(env, &kind)?, descriptor)?;
        let memory_type = u32::try_from(memory_type).ok();
        Ok(hold_handle(ExternalMemory { handle, size: size(bytes)?, memory_type, dedicated }))
    })
}

/// Its descriptor, the memory's size and type (-1 where that is not known), and whether the memory is one buffer's alone.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_externalFacts<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    external: jlong,
) -> JLongArray<'local> {
    enter(env, |env| {
        let external = held::external(external)?;
        let external = external.lock();
        let memory = external.as_ref().ok_or(Failure::Closed)?;
        let memory_type = memory.memory_type.map_or(-1, jlong::from);
        let number = jlong::from(handles::number(&memory.handle)?);
        let told = [number, memory.size as jlong, memory_type, jlong::from(memory.dedicated)];
        convert::array_of_longs(env, &told)
    })
}

/// Its descriptor, which is the caller's then.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_externalDetach<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    external: jlong,
) -> jint {
    enter(env, |_| {
        let memory = held::external(external)?.lock().take().ok_or(Failure::Closed)?;
        handles::into_number(memory.handle)
    })
}
