//! Names of executable formats, as modules give them to `hal.executable.create` and ask devices for.

/// SPIR-V whose kernels take descriptors.
pub const VULKAN_SPIRV: &str = "vulkan-spirv-fb";
/// SPIR-V whose kernels take descriptors or device addresses.
pub const VULKAN_SPIRV_PTR: &str = "vulkan-spirv-fb-ptr";
/// SPIR-V whose kernels take device addresses, in a layout with a version.
pub const VULKAN_SPIRV_BDA: &str = "vulkan-spirv-bda-v1";
/// The same without a version.
pub const VULKAN_SPIRV_BDA_RAW: &str = "vulkan-spirv-bda-raw";
/// Bytecode modules with microkernels, for any processor.
pub const VMVX: &str = "vmvx-bytecode-fb";
/// ELF files for processors of this architecture.
pub const ELF_X86_64: &str = "embedded-elf-x86_64";
/// The same for this one.
pub const ELF_ARM_64: &str = "embedded-elf-arm_64";
/// The same for this one.
pub const ELF_X86_32: &str = "embedded-elf-x86_32";
/// The same for this one.
pub const ELF_ARM_32: &str = "embedded-elf-arm_32";
/// The same for this one.
pub const ELF_RISCV_32: &str = "embedded-elf-riscv_32";
/// The same for this one.
pub const ELF_RISCV_64: &str = "embedded-elf-riscv_64";

/// All of them.
pub const ALL: [&str; 11] = [
    VULKAN_SPIRV,
    VULKAN_SPIRV_PTR,
    VULKAN_SPIRV_BDA,
    VULKAN_SPIRV_BDA_RAW,
    VMVX,
    ELF_X86_64,
    ELF_ARM_64,
    ELF_X86_32,
    ELF_ARM_32,
    ELF_RISCV_32,
    ELF_RISCV_64,
];
