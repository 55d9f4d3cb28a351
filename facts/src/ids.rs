//! Numbers by which vendors and drivers are known, where decisions depend on them.

/// PCI or Khronos vendor ids.
pub mod vendor {
    /// NVIDIA.
    pub const NVIDIA: u32 = 0x10DE;
    /// AMD.
    pub const AMD: u32 = 0x1002;
    /// Intel.
    pub const INTEL: u32 = 0x8086;
    /// Arm.
    pub const ARM: u32 = 0x13B5;
    /// Qualcomm.
    pub const QUALCOMM: u32 = 0x5143;
    /// Google (SwiftShader).
    pub const GOOGLE: u32 = 0x1AE0;
    /// Mesa's software drivers.
    pub const MESA: u32 = 0x1_0005;
}

/// `VkDriverId` numbers.
pub mod driver_id {
    /// AMD's own driver.
    pub const AMD_PROPRIETARY: u32 = 1;
    /// NVIDIA's own driver.
    pub const NVIDIA_PROPRIETARY: u32 = 4;
    /// Intel's own driver for Windows.
    pub const INTEL_PROPRIETARY_WINDOWS: u32 = 5;
    /// Mesa's driver for Intel.
    pub const INTEL_OPEN_SOURCE_MESA: u32 = 6;
    /// Qualcomm's own driver.
    pub const QUALCOMM_PROPRIETARY: u32 = 8;
    /// Arm's own driver.
    pub const ARM_PROPRIETARY: u32 = 9;
    /// SwiftShader.
    pub const GOOGLE_SWIFTSHADER: u32 = 10;
    /// Mesa's llvmpipe.
    pub const MESA_LLVMPIPE: u32 = 13;
    /// MoltenVK.
    pub const MOLTENVK: u32 = 14;
}
