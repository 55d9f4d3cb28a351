"""ONNX Runtime's interface on Halite: what Python packages use of it, on any Vulkan device.

Importing this module makes it the module `onnxruntime` of this process, so that packages which import that one run on Halite,
unchanged:

    import halite.onnxruntime          # before the package that uses onnxruntime
    import rapidocr

`python -m halite.onnxruntime program.py` does the same for a program that is not to be changed, and
`import halite.onnxruntime as ort` uses it directly. `uninstall()` takes the stand-in back; where `onnxruntime` was imported before,
it is left alone until `install()` is called.

What cannot be done raises `NotImplemented` (the exception of `onnxruntime.capi.onnxruntime_pybind11_state`) and says why. Models of
all formats that Halite reads are taken, not only ONNX.
"""

from __future__ import annotations

from .. import __version__ as halite_version
from ._device import (
    get_all_providers,
    get_available_providers,
    get_default_device,
    get_device,
    set_default_device,
)
from ._errors import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from ._logging import set_default_logger_severity, set_default_logger_verbosity
from ._options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtMemType,
    RunOptions,
    SessionOptions,
)
from ._plugins import (
    LoraAdapter,
    OrtArenaCfg,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
    OrtMemoryInfo,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    get_ep_devices,
    register_execution_provider_library,
    set_global_thread_pool_sizes,
    unregister_execution_provider_library,
)
from ._session import InferenceSession, ModelMetadata, NodeArg, Session
from ._stand_in import install, is_installed, uninstall
from ._values import IOBinding, OrtDevice, OrtValue, OrtValueVector, SparseTensor

__version__ = "1.23.0"
"""The version of ONNX Runtime whose interface this is."""

version = __version__
package_name = "onnxruntime"
cuda_version = ""
SessionIOBinding = IOBinding


def get_version_string() -> str:
    """The version of ONNX Runtime whose interface this is."""
    return __version__


def get_build_info() -> str:
    """Which library is behind the interface."""
    return f"Halite {halite_version}, with the interface of ONNX Runtime {__version__}"


def set_seed(seed: int) -> None:
    """The seed of random numbers of sessions that are made from now on."""
    from . import _session

    _session.default_seed = int(seed)


def preload_dlls(*_args, **_options) -> None:
    """Does nothing: there are no libraries of CUDA to load."""


def disable_telemetry_events() -> None:
    """Does nothing: Halite has no telemetry."""


def enable_telemetry_events() -> None:
    """Refused: Halite has no telemetry."""
    raise NotImplemented("Halite has no telemetry")


def print_debug_info() -> None:
    """Prints versions, system and device."""
    import platform

    print(get_build_info())
    print(f"platform: {platform.platform()}\npython: {platform.python_version()}\ndevice: {get_default_device() or 'the best one'}")


def has_collective_ops() -> bool:
    """Whether operators over several machines are there: no."""
    return False


def __getattr__(name: str):
    raise AttributeError(
        f"'{name}' is not among the names of onnxruntime that Halite stands in for; `uninstall()` gives onnxruntime itself back"
    )


__all__ = [
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "LoraAdapter",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "RuntimeException",
    "Session",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "cuda_version",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_default_device",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "install",
    "is_installed",
    "package_name",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_default_device",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "uninstall",
    "unregister_execution_provider_library",
    "version",
]

install(force=False)
