"""Names about parts that Halite does not have: arenas, providers as libraries, adapters of weights. What only configures is kept."""

from __future__ import annotations

import enum

from ._errors import Unavailable
from ._options import OrtAllocatorType, OrtMemType


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """Which device ONNX Runtime would choose. Halite takes the one that is set, or the best."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfo:
    """A kind of memory; kept, and without effect."""

    def __init__(
        self,
        name: str = "Cpu",
        alloc_type: OrtAllocatorType = OrtAllocatorType.ORT_ARENA_ALLOCATOR,
        id: int = 0,
        mem_type: OrtMemType = OrtMemType.DEFAULT,
    ):
        self.name, self.alloc_type, self.id, self.mem_type = name, alloc_type, id, mem_type


class OrtArenaCfg:
    """Sizes of an arena; kept, and without effect."""

    def __init__(self, *sizes, **named):
        self.sizes, self.named = sizes, named


class LoraAdapter:
    """Refused: weights come from the model and its files."""

    def __init__(self):
        raise Unavailable("adapters of weights are not supported")

    @staticmethod
    def Load(path) -> LoraAdapter:
        """Refused."""
        raise Unavailable(f"adapters of weights such as '{path}' are not supported")


def create_and_register_allocator(mem_info, arena_cfg=None) -> None:
    """Does nothing: sessions have no arenas to share."""
    del mem_info, arena_cfg


def create_and_register_allocator_v2(provider, mem_info, options=None, arena_cfg=None) -> None:
    """Does nothing: sessions have no arenas to share."""
    del provider, mem_info, options, arena_cfg


def set_global_thread_pool_sizes(intra_op_num_threads: int, inter_op_num_threads: int) -> None:
    """Does nothing: sessions have no threads of the host."""
    del intra_op_num_threads, inter_op_num_threads


def get_ep_devices() -> list:
    """Devices of providers that are libraries: none."""
    return []


def register_execution_provider_library(registration_name: str, library_path) -> None:
    """Refused: such libraries are made for ONNX Runtime."""
    raise Unavailable(f"the provider '{registration_name}' in '{library_path}' is machine code for ONNX Runtime")


def unregister_execution_provider_library(registration_name: str) -> None:
    """Refused: none was registered."""
    raise Unavailable(f"no provider '{registration_name}' was registered")
