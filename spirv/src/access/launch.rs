//! What a kernel is started with.

/// The numbers that a kernel is started with.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The push constants, from byte 0 on; kernels that take a table of addresses have its address in the first two.
    pub push_constants: &'a [u32],
    /// Workgroups in x, y and z; `None` where only the device knows.
    pub workgroups: Option<[u32; 3]>,
}
