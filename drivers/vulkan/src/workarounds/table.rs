//! The entries. A fault gets in when somebody has described it in public and it can hit a compute driver; its text says what
//! was seen, not what is guessed.

use super::{Avoid, Match, Workaround};
use halite_facts::{DeviceFacts, DeviceType, Feature, api_version, driver_id, vendor};

/// Every known fault.
pub(super) static TABLE: &[Workaround] = &[
    Workaround {
        name: "swiftshader-no-bda",
        avoid: Avoid::BufferDeviceAddress,
        reason: "SwiftShader reports bufferDeviceAddress, but its compiler ends the process on the conversion of an \
                 integer to a pointer (OpConvertUToPtr) that such kernels begin with",
        link: "https://github.com/KhronosGroup/VK-GL-CTS/issues/327",
        applies: Match::driver(driver_id::GOOGLE_SWIFTSHADER),
    },
    Workaround {
        name: "swiftshader-growing-cache",
        avoid: Avoid::PipelineCache,
        reason: "a VkPipelineCache keeps the program of every pipeline layout that it was ever used with: a process that \
                 loads modules again and again grows without end (225 KiB for each load of a small network, seen with \
                 the SwiftShader of Chromium 156)",
        link: "https://swiftshader.googlesource.com/SwiftShader/+/refs/heads/master/src/Vulkan/VkPipelineCache.hpp",
        applies: Match::driver(driver_id::GOOGLE_SWIFTSHADER),
    },
    Workaround {
        name: "swiftshader-forks",
        avoid: Avoid::ForkedDevices,
        reason: "SwiftShader has one scheduler for all devices of a process, whose threads a fork lacks: work of a device that was opened \
                 there waits for them for ever (seen with the SwiftShader of Chromium 156)",
        link: "https://swiftshader.googlesource.com/SwiftShader/+/refs/heads/master/src/Vulkan/libVulkan.cpp",
        applies: Match::driver(driver_id::GOOGLE_SWIFTSHADER),
    },
    Workaround {
        name: "llvmpipe-halves",
        avoid: Avoid::Halves,
        reason: "where llvmpipe has no 16-bit floats in kernels (on ARM: Mesa 22.3; on x86: processors without F16C), it \
                 takes their bits for integers when they become 32-bit floats: results are wrong, or LLVM ends the \
                 process. Mesa 25.0 is right on ARM",
        link: "https://gitlab.freedesktop.org/mesa/mesa/-/blob/mesa-22.3.6/src/gallium/auxiliary/gallivm/lp_bld_nir.c",
        applies: Match {
            fact: Some(("no 16-bit floats in kernels", |facts| !facts.features.has(Feature::ShaderFloat16))),
            ..Match::driver(driver_id::MESA_LLVMPIPE)
        },
    },
    Workaround {
        name: "nvidia-unaligned-fill",
        avoid: Avoid::UnalignedFill,
        reason: "vkCmdFillBuffer of more than 4096 bytes, a multiple of 16, from a byte that is no multiple of 16 writes \
                 a range that lies up to 12 bytes lower; fixed in an unknown version (580.159 on an H200 is right)",
        link: "https://github.com/gfx-rs/wgpu/issues/4122",
        applies: Match::driver(driver_id::NVIDIA_PROPRIETARY),
    },
    Workaround {
        name: "nvidia-old-push-descriptors",
        avoid: Avoid::PushDescriptors,
        reason: "on GPUs before Turing, going back and forth between descriptor sets and pushed descriptors breaks the \
                 bindings; no driver version is known to be right",
        link: "https://github.com/yuzu-emu/yuzu/pull/11684",
        applies: Match {
            fact: Some(("GPUs before Turing (no shading rate extension)", before_turing)),
            ..Match::driver(driver_id::NVIDIA_PROPRIETARY)
        },
    },
    Workaround {
        name: "anv-push-descriptors",
        avoid: Avoid::PushDescriptors,
        reason: "pushed descriptors are read wrongly; the fault came with Mesa 22.3 and was reproduced and repaired by \
                 the driver's authors",
        link: "https://github.com/yuzu-emu/yuzu/pull/10365",
        applies: Match {
            since: Some(api_version(22, 3, 0)),
            fixed_in: Some(api_version(23, 2, 0)),
            ..Match::driver(driver_id::INTEL_OPEN_SOURCE_MESA)
        },
    },
    Workaround {
        name: "intel-arc-windows-push-descriptors",
        avoid: Avoid::PushDescriptors,
        reason: "pushed descriptors do not work on Arc GPUs with the Windows driver",
        link: "https://github.com/Ryujinx/Ryujinx/pull/6551",
        applies: Match {
            fact: Some(("name has 'Arc'", |facts| facts.name.contains("Arc"))),
            ..Match::driver(driver_id::INTEL_PROPRIETARY_WINDOWS)
        },
    },
    Workaround {
        name: "moltenvk-push-descriptors",
        avoid: Avoid::PushDescriptors,
        reason: "programs that use both descriptor sets and pushed descriptors get wrong buffers bound; before 1.2.11 \
                 pushing storage buffers could also crash the process",
        link: "https://github.com/KhronosGroup/MoltenVK/issues/2616",
        applies: Match::driver(driver_id::MOLTENVK),
    },
    Workaround {
        name: "moltenvk-amd-subgroup-size",
        avoid: Avoid::SubgroupSizeControl,
        reason: "on AMD GPUs a subgroup has 32 live invocations although 64 is reported, and a required size changes \
                 nothing: Metal chooses",
        link: "https://github.com/KhronosGroup/MoltenVK/issues/1553",
        applies: Match { vendor_id: Some(vendor::AMD), ..Match::driver(driver_id::MOLTENVK) },
    },
    Workaround {
        name: "amd-igpu-cooperative-matrix",
        avoid: Avoid::CooperativeMatrix,
        reason: "asking an integrated GPU for its cooperative matrix shapes \
                 (vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) crashes the process; seen with a Radeon 860M",
        link: "https://github.com/GPUOpen-Drivers/AMDVLK/issues/422",
        applies: Match {
            device_type: Some(DeviceType::Integrated),
            ..Match::driver(driver_id::AMD_PROPRIETARY)
        },
    },
    Workaround {
        name: "amd-emulated-dot-product",
        avoid: Avoid::IntegerDotProduct,
        reason: "on GPUs without the instructions (before RDNA 3) packed 4x8-bit dot products are reported as accelerated \
                 and give wrong numbers",
        link: "https://github.com/0xShug0/audio.cpp/pull/193",
        applies: Match {
            fact: Some(("no accelerated mixed-sign dot product", |facts| {
                !facts.dot_product.is_some_and(|fast| fast.packed_4x8_mixed)
            })),
            ..Match::driver(driver_id::AMD_PROPRIETARY)
        },
    },
];

/// Turing brought shading rates; each of these extensions is on all newer GPUs, data centre ones included.
fn before_turing(facts: &DeviceFacts) -> bool {
    !facts.has_extension("VK_NV_shading_rate_image") && !facts.has_extension("VK_KHR_fragment_shading_rate")
}

const fn on_request(name: &'static str, avoid: Avoid) -> Workaround {
    let reason = "a user suspects a fault that is not in this table yet";
    Workaround { name, avoid, reason, link: "", applies: Match { on_request: true, ..Match::ANY } }
}

/// One entry for each thing that can be avoided, to find out about new faults with.
pub(super) static ON_REQUEST: &[Workaround] = &[
    on_request("avoid-bda", Avoid::BufferDeviceAddress),
    on_request("avoid-push-descriptors", Avoid::PushDescriptors),
    on_request("avoid-pipeline-cache", Avoid::PipelineCache),
    on_request("avoid-forked-devices", Avoid::ForkedDevices),
    on_request("avoid-unaligned-fill", Avoid::UnalignedFill),
    on_request("avoid-subgroup-size-control", Avoid::SubgroupSizeControl),
    on_request("avoid-cooperative-matrix", Avoid::CooperativeMatrix),
    on_request("avoid-integer-dot-product", Avoid::IntegerDotProduct),
    on_request("avoid-float16", Avoid::Float16),
    on_request("avoid-halves", Avoid::Halves),
    on_request("avoid-storage16", Avoid::Storage16),
    on_request("avoid-storage8", Avoid::Storage8),
    on_request("avoid-synchronization2", Avoid::Synchronization2),
    on_request("avoid-robust-access", Avoid::RobustBufferAccess),
];
