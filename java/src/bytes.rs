//! Bytes of direct buffers.

use std::ops::Range;

use jni::{Env, objects::JByteBuffer, sys::jint};

use crate::failure::{Failure, Result};

/// A part of a direct buffer of Java's, for the time of a native method, or as long as somebody holds the buffer.
pub struct Direct {
    address: *mut u8,
    part: Range<usize>,
}

// SAFETY: the address is that of memory which is no thread's own.
unsafe impl Send for Direct {}

impl Direct {
    /// The part of a buffer that begins at an offset. Buffers that are not direct, and parts that reach beyond them, are refused.
    pub fn part(env: &Env<'_>, buffer: &JByteBuffer<'_>, offset: jint, length: jint) -> Result<Direct> {
        let capacity = env.get_direct_buffer_capacity(buffer).ok();
        let (Some(capacity), Ok(address)) = (capacity, env.get_direct_buffer_address(buffer)) else {
            return Err(Failure::invalid(
                "the buffer is not direct; make one with ByteBuffer.allocateDirect",
            ));
        };
        let (start, length) = (usize::try_from(offset), usize::try_from(length));
        let part = match (start, length) {
            (Ok(start), Ok(length)) => start.checked_add(length).map(|end| start..end),
            _ => None,
        };
        match part {
            Some(part) if part.end <= capacity => Ok(Direct { address, part }),
            _ => Err(Failure::invalid(format!("the part is not within a buffer of {capacity} bytes"))),
        }
    }

    /// Reads.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the virtual machine told the address and the number of bytes, the part is within, and the buffer is an argument of
        // the native method that runs, or held beside this, so its memory stays. Java's half says that nobody writes to it meanwhile.
        unsafe { std::slice::from_raw_parts(self.address.add(self.part.start), self.part.len()) }
    }

    /// Writes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; Java's half refuses buffers that are for reading only, and says that nobody uses it meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.address.add(self.part.start), self.part.len()) }
    }
}
