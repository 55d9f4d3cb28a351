//! Tensors.

use std::{ffi::c_void, ptr};

use halite::{ElementType, Tensor};

use crate::{
    device::halite_device,
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    raw::{self, Out},
    source::{self, Release, halite_release_fn},
};

/// The type of a tensor's elements: one of `HALITE_ELEMENT_…`, as compiled modules carry it. The lowest byte is the width in bits.
pub type halite_element_type = u32;

/// Truth values, a byte each.
pub const HALITE_ELEMENT_BOOL: halite_element_type = 0x1300_0008;
/// Integers of 8 bits, with a sign unless the module says otherwise.
pub const HALITE_ELEMENT_I8: halite_element_type = 0x1000_0008;
/// Integers of 16 bits.
pub const HALITE_ELEMENT_I16: halite_element_type = 0x1000_0010;
/// Integers of 32 bits.
pub const HALITE_ELEMENT_I32: halite_element_type = 0x1000_0020;
/// Integers of 64 bits.
pub const HALITE_ELEMENT_I64: halite_element_type = 0x1000_0040;
/// Integers of 8 bits without a sign.
pub const HALITE_ELEMENT_U8: halite_element_type = 0x1200_0008;
/// Integers of 16 bits without a sign.
pub const HALITE_ELEMENT_U16: halite_element_type = 0x1200_0010;
/// Integers of 32 bits without a sign.
pub const HALITE_ELEMENT_U32: halite_element_type = 0x1200_0020;
/// Integers of 64 bits without a sign.
pub const HALITE_ELEMENT_U64: halite_element_type = 0x1200_0040;
/// Floats of 16 bits (IEEE 754).
pub const HALITE_ELEMENT_F16: halite_element_type = 0x2100_0010;
/// Floats of 32 bits.
pub const HALITE_ELEMENT_F32: halite_element_type = 0x2100_0020;
/// Floats of 64 bits.
pub const HALITE_ELEMENT_F64: halite_element_type = 0x2100_0040;
/// Floats of 16 bits with the exponent of 32-bit ones (bfloat16).
pub const HALITE_ELEMENT_BF16: halite_element_type = 0x2200_0010;

/// A dense row-major array of numbers, on the host or on a device. Its elements never change. Results of a session stay on its
/// device until somebody reads them, so feeding one into the next call copies nothing.
pub struct halite_tensor(pub(crate) Tensor);

/// An element type that tensors can have.
pub(crate) fn element_type(number: halite_element_type) -> Result<ElementType> {
    let element = ElementType(number);
    if element.kind().is_some() && element.bit_count() > 0 {
        return Ok(element);
    }
    Err(Failure::invalid(format!("{number:#x} is no element type; take one of HALITE_ELEMENT_…")))
}

/// A tensor on the host with a copy of these bytes: its elements, in the byte order of the machine.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_create(
    element: halite_element_type,
    shape: *const usize,
    rank: usize,
    data: *const c_void,
    size: usize,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_create", || unsafe {
        let out = Out::handle(out, "out")?;
        let (element, shape) = (element_type(element)?, raw::slice(shape, rank, "shape")?);
        let bytes = raw::slice(data.cast::<u8>(), size, "data")?.to_vec();
        out.give(halite_tensor(Tensor::from_bytes(element, shape, bytes)?));
        Ok(())
    })
}

/// A tensor on the host of these bytes, which are not copied: they are borrowed, and must not change, until `release(context)` is
/// called. That happens when the last tensor and the last call that reads them is gone, at once when this fails.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_borrow(
    element: halite_element_type,
    shape: *const usize,
    rank: usize,
    data: *const c_void,
    size: usize,
    release: halite_release_fn,
    context: *mut c_void,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_borrow", || unsafe {
        let is_releasable = release.is_some();
        let release = Release::new(release, context);
        let out = Out::handle(out, "out")?;
        let (element, shape) = (element_type(element)?, raw::slice(shape, rank, "shape")?);
        if !is_releasable {
            return Err(Failure::invalid(
                "'release' is NULL: who borrows has to say when it ends; halite_tensor_create copies",
            ));
        }
        let bytes = source::lend(data.cast(), size, release, "data")?;
        out.give(halite_tensor(Tensor::from_bytes(element, shape, bytes)?));
        Ok(())
    })
}

/// A tensor on the host that is full of zeros.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_zeros(
    element: halite_element_type,
    shape: *const usize,
    rank: usize,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_zeros", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_tensor(Tensor::zeros(element_type(element)?, raw::slice(shape, rank, "shape")?)?));
        Ok(())
    })
}

/// The type of the elements; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_element_type(tensor: *const halite_tensor) -> halite_element_type {
    // SAFETY: the contract of the interface.
    quiet("halite_tensor_element_type", 0, || unsafe {
        Ok(raw::handle(tensor, "tensor")?.0.element_type().0)
    })
}

/// Number of dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_rank(tensor: *const halite_tensor) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_tensor_rank", 0, || unsafe { Ok(raw::handle(tensor, "tensor")?.0.shape().len()) })
}

/// The dimensions, outermost first: `halite_tensor_rank` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_shape(tensor: *const halite_tensor) -> *const usize {
    // SAFETY: the contract of the interface.
    quiet("halite_tensor_shape", ptr::null(), || unsafe {
        Ok(raw::handle(tensor, "tensor")?.0.shape().as_ptr())
    })
}

/// Bytes of all elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_size(tensor: *const halite_tensor) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_tensor_size", 0, || unsafe { Ok(raw::handle(tensor, "tensor")?.0.byte_len()) })
}

/// Whether the elements lie on a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_is_on_device(tensor: *const halite_tensor) -> bool {
    // SAFETY: the contract of the interface.
    quiet("halite_tensor_is_on_device", false, || unsafe {
        Ok(raw::handle(tensor, "tensor")?.0.device().is_some())
    })
}

/// A handle to the device that the elements lie on. Fails for a tensor on the host.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_device(
    tensor: *const halite_tensor,
    out: *mut *mut halite_device,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_device", || unsafe {
        let out = Out::handle(out, "out")?;
        let device = raw::handle(tensor, "tensor")?.0.device();
        let device = device.ok_or_else(|| Failure::not_found("the tensor lies on the host"))?;
        out.give(halite_device::new(device.clone()));
        Ok(())
    })
}

/// The tensor on a device. A tensor that is already there is not copied.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_to_device(
    tensor: *const halite_tensor,
    device: *const halite_device,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_to_device", || unsafe {
        let out = Out::handle(out, "out")?;
        let device = &raw::handle(device, "device")?.device;
        out.give(halite_tensor(raw::handle(tensor, "tensor")?.0.to_device(device)?));
        Ok(())
    })
}

/// The tensor on the host. A tensor that is already there is not copied.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_to_host(
    tensor: *const halite_tensor,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_to_host", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_tensor(raw::handle(tensor, "tensor")?.0.to_host()?));
        Ok(())
    })
}

/// The same elements in another shape; nothing is copied.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_reshape(
    tensor: *const halite_tensor,
    shape: *const usize,
    rank: usize,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_reshape", || unsafe {
        let out = Out::handle(out, "out")?;
        let shape = raw::slice(shape, rank, "shape")?;
        out.give(halite_tensor(raw::handle(tensor, "tensor")?.0.reshape(shape)?));
        Ok(())
    })
}

/// Copies the elements into memory of `halite_tensor_size` bytes, from the device if they are there, which blocks.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_read(
    tensor: *const halite_tensor,
    target: *mut c_void,
    size: usize,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_read", || unsafe {
        let target = raw::target(target.cast(), size, "target")?;
        Ok(raw::handle(tensor, "tensor")?.0.read_into(target)?)
    })
}

/// The same with a check of what is expected: fails where the elements have another type, or are not as many. Integers without a
/// sign, as modules have them, are read either way.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_read_as(
    tensor: *const halite_tensor,
    element: halite_element_type,
    target: *mut c_void,
    count: usize,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_tensor_read_as", || unsafe {
        let (own, wanted) = (&raw::handle(tensor, "tensor")?.0, element_type(element)?);
        if !reads(wanted, own.element_type()) {
            let own = own.element_type();
            return Err(Failure::invalid(format!("the tensor's elements are {own}, not {wanted}")));
        }
        let elements: usize = own.shape().iter().product();
        if count != elements {
            return Err(Failure::invalid(format!("the tensor has {elements} elements, not {count}")));
        }
        Ok(own.read_into(raw::target(target.cast(), own.byte_len(), "target")?)?)
    })
}

/// Whether elements of one type may be read as another one.
fn reads(wanted: ElementType, from: ElementType) -> bool {
    use ElementType as E;
    match wanted {
        E::I8 | E::SI8 => matches!(from, E::I8 | E::SI8),
        E::I16 | E::SI16 => matches!(from, E::I16 | E::SI16),
        E::I32 | E::SI32 => matches!(from, E::I32 | E::SI32),
        E::I64 | E::SI64 => matches!(from, E::I64 | E::SI64),
        E::UI8 => matches!(from, E::I8 | E::UI8),
        E::UI16 => matches!(from, E::I16 | E::UI16),
        E::UI32 => matches!(from, E::I32 | E::UI32),
        E::UI64 => matches!(from, E::I64 | E::UI64),
        other => other == from,
    }
}

/// The elements of a tensor on the host, where they lie: `halite_tensor_size` bytes that live as long as the tensor. NULL for a
/// tensor on a device: `halite_tensor_read` and `halite_tensor_to_host` copy it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_data(tensor: *const halite_tensor) -> *const c_void {
    // SAFETY: the contract of the interface.
    quiet("halite_tensor_data", ptr::null(), || unsafe {
        let tensor = &raw::handle(tensor, "tensor")?.0;
        if tensor.device().is_some() {
            return Ok(ptr::null());
        }
        // Another count on the same bytes; the tensor keeps them where they are.
        Ok(tensor.to_bytes()?.as_ptr().cast())
    })
}

/// Frees a tensor. Its elements stay as long as another tensor or a running call uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_tensor_free(tensor: *mut halite_tensor) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_tensor_free", tensor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_are_those_of_modules() {
        for (number, own) in [
            (HALITE_ELEMENT_BOOL, ElementType::I1),
            (HALITE_ELEMENT_I8, ElementType::I8),
            (HALITE_ELEMENT_I16, ElementType::I16),
            (HALITE_ELEMENT_I32, ElementType::I32),
            (HALITE_ELEMENT_I64, ElementType::I64),
            (HALITE_ELEMENT_U8, ElementType::UI8),
            (HALITE_ELEMENT_U16, ElementType::UI16),
            (HALITE_ELEMENT_U32, ElementType::UI32),
            (HALITE_ELEMENT_U64, ElementType::UI64),
            (HALITE_ELEMENT_F16, ElementType::F16),
            (HALITE_ELEMENT_F32, ElementType::F32),
            (HALITE_ELEMENT_F64, ElementType::F64),
            (HALITE_ELEMENT_BF16, ElementType::BF16),
        ] {
            assert_eq!(element_type(number).unwrap(), own);
        }
        assert!(element_type(0).is_err() && element_type(0xFF00_0020).is_err());
        assert!(element_type(0x2100_0000).is_err());
    }
}
