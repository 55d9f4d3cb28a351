"""Run ONNX models, ExecuTorch programs and IREE modules on any Vulkan device.

    import halite

    session = halite.Session("digits.onnx", device="vulkan")
    out = session.run({"picture": picture})
    print(out["probabilities"])

`halite.Generator` writes text with a language model, `halite.Embedder` makes vectors of texts.
`halite.onnxruntime` stands in for ONNX Runtime, `halite.torch` is a backend of `torch.compile`.
"""

from __future__ import annotations

import collections.abc as _abc

from ._errors import Error
from ._halite import (
    CancelToken,
    Compiled,
    Device,
    DeviceInfo,
    Embedder,
    ExternalMemory,
    Function,
    FunctionInfo,
    Generator,
    Opaque,
    Outputs,
    Pending,
    Progress,
    Sampler,
    Sequence,
    Session,
    SharedMemory,
    State,
    Stream,
    Tensor,
    ValueInfo,
    __version__,
    compile,
    devices,
    inspect,
    set_log_level,
    unavailable_drivers,
)
from ._progress import Bar


def explain(model, *, device=None, **choices) -> str:
    """What becomes of a model, as text: which kernels are chosen and why, memory, work, sizes.

    `device` is a URI, a `Device`, or the name of a target such as `rdna3`; without it, what every Vulkan device would run. The
    other arguments are those of `compile()`.
    """
    choices.setdefault("baseline", device is None)
    return compile(model, targets=device, **choices).explain()


_abc.Mapping.register(Outputs)

__all__ = [
    "Bar",
    "CancelToken",
    "Compiled",
    "Device",
    "DeviceInfo",
    "Embedder",
    "Error",
    "ExternalMemory",
    "Function",
    "FunctionInfo",
    "Generator",
    "Opaque",
    "Outputs",
    "Pending",
    "Progress",
    "Sampler",
    "Sequence",
    "Session",
    "SharedMemory",
    "State",
    "Stream",
    "Tensor",
    "ValueInfo",
    "__version__",
    "compile",
    "devices",
    "explain",
    "inspect",
    "set_log_level",
    "unavailable_drivers",
]
