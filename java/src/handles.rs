//! Handles of memory: descriptors by their numbers, and Android's `HardwareBuffer`.

use halite::{
    ExternalHandle, ExternalKind, ExternalMemory,
    hal::external::{Descriptor, HardwareBuffer},
};
use jni::{Env, objects::JObject, sys::jint};

use crate::failure::{Failure, Result};

/// A duplicate of a descriptor that Java knows by its number.
#[cfg(unix)]
fn descriptor(number: jint) -> Result<Descriptor> {
    if number < 0 {
        return Err(Failure::invalid(format!("{number} is no descriptor")));
    }
    // SAFETY: the number is not negative. Java's half vouches that the file stays open during this call, in which it is only duplicated;
    // a number that no file has gives an error.
    let lent = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    lent.try_clone_to_owned()
        .map_err(|e| Failure::invalid(format!("descriptor {number} cannot be duplicated: {e}")))
}

#[cfg(not(unix))]
fn descriptor(_number: jint) -> Result<Descriptor> {
    Err(Failure::invalid("this system has no memory that descriptors stand for"))
}

/// The handle of a number.
pub fn named(kind: ExternalKind, number: jint) -> Result<ExternalHandle> {
    match kind {
        ExternalKind::OpaqueFd => descriptor(number).map(ExternalHandle::OpaqueFd),
        ExternalKind::DmaBuf => descriptor(number).map(ExternalHandle::DmaBuf),
        _ => Err(Failure::invalid(format!("memory of the kind {kind} has no descriptor"))),
    }
}

/// The same memory with a handle of its own; fails where it was given away.
pub fn duplicate(memory: Option<&ExternalMemory>) -> Result<ExternalMemory> {
    let memory = memory.ok_or(Failure::Closed)?;
    let handle = match &memory.handle {
        #[cfg(unix)]
        ExternalHandle::OpaqueFd(own) => own.try_clone().map(ExternalHandle::OpaqueFd),
        #[cfg(unix)]
        ExternalHandle::DmaBuf(own) => own.try_clone().map(ExternalHandle::DmaBuf),
        #[cfg(windows)]
        ExternalHandle::OpaqueWin32(own) => own.try_clone().map(ExternalHandle::OpaqueWin32),
        other => {
            return Err(Failure::invalid(format!("memory of the kind {} has no handle", other.kind())));
        }
    };
    let handle = handle.map_err(|e| Failure::invalid(format!("the handle has no duplicate: {e}")))?;
    Ok(ExternalMemory { handle, ..*memory })
}

/// The descriptor's number, which stays the owner's.
pub fn number(handle: &ExternalHandle) -> Result<jint> {
    match handle {
        #[cfg(unix)]
        ExternalHandle::OpaqueFd(own) | ExternalHandle::DmaBuf(own) => {
            Ok(std::os::fd::AsRawFd::as_raw_fd(own))
        }
        other => Err(none(other)),
    }
}

/// The descriptor's number, which is the caller's then.
pub fn into_number(handle: ExternalHandle) -> Result<jint> {
    match handle {
        #[cfg(unix)]
        ExternalHandle::OpaqueFd(own) | ExternalHandle::DmaBuf(own) => {
            Ok(std::os::fd::IntoRawFd::into_raw_fd(own))
        }
        other => Err(none(&other)),
    }
}

fn none(handle: &ExternalHandle) -> Failure {
    Failure::invalid(format!("memory of the kind {} has no descriptor", handle.kind()))
}

/// The `AHardwareBuffer` of Android's object, which holds it.
#[cfg(target_os = "android")]
pub fn hardware_buffer(env: &mut Env<'_>, object: &JObject<'_>) -> Result<HardwareBuffer> {
    use jni::{jni_str, sys};

    /// `AHardwareBuffer_fromHardwareBuffer` of `android/hardware_buffer_jni.h`, there since API 26.
    type FromObject =
        unsafe extern "C" fn(env: *mut sys::JNIEnv, object: sys::jobject) -> *mut std::ffi::c_void;

    let class = jni_str!("android/hardware/HardwareBuffer");
    if object.is_null() || !env.is_instance_of(object, class)? {
        return Err(Failure::invalid("this is no android.hardware.HardwareBuffer"));
    }
    let failed = |e: libloading::Error| Failure::invalid(format!("Android has no hardware buffers: {e}"));
    // SAFETY: Android's own library runs no code when it is loaded that is not safe to run here.
    let library = unsafe { libloading::Library::new("libandroid.so") }.map_err(failed)?;
    // SAFETY: the function has this type, and is called before the library is let go of; the object is a hardware buffer, and stays for
    // the time of the native method.
    let address = unsafe {
        let from_object =
            library.get::<FromObject>(b"AHardwareBuffer_fromHardwareBuffer\0").map_err(failed)?;
        from_object(env.get_raw(), object.as_raw())
    };
    let address = std::num::NonZeroUsize::new(address.expose_provenance());
    let address = address.ok_or_else(|| Failure::invalid("the hardware buffer was closed"))?;
    Ok(HardwareBuffer::from_address(address))
}

#[cfg(not(target_os = "android"))]
pub fn hardware_buffer(_env: &mut Env<'_>, _object: &JObject<'_>) -> Result<HardwareBuffer> {
    Err(Failure::invalid("only Android has hardware buffers"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_duplicated_and_given_away() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let own = std::os::fd::AsRawFd::as_raw_fd(&file);
        let handle = named(ExternalKind::DmaBuf, own).unwrap();
        assert_ne!(number(&handle).unwrap(), own);
        let memory =
            ExternalMemory { memory_type: Some(3), dedicated: true, ..ExternalMemory::new(handle, 64) };
        let again = duplicate(Some(&memory)).unwrap();
        assert_ne!(number(&again.handle).unwrap(), number(&memory.handle).unwrap());
        assert_eq!((again.size, again.memory_type, again.dedicated), (64, Some(3), true));
        assert_eq!(again.handle.kind(), ExternalKind::DmaBuf);
        let given = into_number(again.handle).unwrap();
        drop(named(ExternalKind::OpaqueFd, given).expect("it is open"));
        for wrong in [-1, 1 << 20] {
            assert!(named(ExternalKind::OpaqueFd, wrong).is_err());
        }
        assert!(named(ExternalKind::Host, own).is_err());
        assert!(matches!(duplicate(None), Err(Failure::Closed)));
        assert!(duplicate(Some(&ExternalMemory::host(halite::Bytes::new()))).is_err());
    }
}
