"""Options of sessions and of runs.

What is about ONNX Runtime's threads, arenas and graph passes is kept and has no effect: Halite has none of them, and always optimizes.
The page docs/how-to/python-onnxruntime.md lists which options do something.
"""

from __future__ import annotations

import enum
import os
import re
import shutil

import numpy as np

from .. import CancelToken
from ._errors import Fail, InvalidArgument, Missing, NotImplemented
from ._metadata import has_external_data

_EXTENSIONS = re.compile(r"(_extensions_pydll|_?ortextensions|libortextensions)\b.*\.(so|pyd|dll|dylib)(\.[\d.]+)?$")
"""Names of the library of onnxruntime-extensions."""


class GraphOptimizationLevel(enum.IntEnum):
    """How much a model is rewritten. Halite always does all."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether operators run one after another. Halite's devices decide."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """The order of operators. Halite's compiler decides."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(enum.IntEnum):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """Kinds of memory."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class SessionOptions:
    """What a session is made with."""

    def __init__(self):
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._dimensions: dict[str, int] = {}
        self._entries: dict[str, str] = {}
        self._external: dict[str, np.ndarray] = {}
        self._loading = CancelToken()
        self._initializers: dict[str, np.ndarray] = {}
        self._providers: list[tuple[str, dict]] = []

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """The size of a named dimension."""
        self._dimensions[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Refused: Halite reads no denotations."""
        raise NotImplemented(f"dimensions are known by their names, not by denotations such as '{denotation}'")

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry. Those of ONNX Runtime are about its own parts, so none has an effect."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"an entry is two texts, not {key!r} and {value!r}")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was kept."""
        if key not in self._entries:
            raise Missing(f"there is no entry '{key}'")
        return self._entries[key]

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Set it from another thread to stop the making of sessions that have these options, which then raises `ModelLoadCanceled`."""
        if value:
            self._loading.cancel()
        elif self._loading.cancelled:
            self._loading = CancelToken()

    def add_provider(self, name: str, options: dict | None = None) -> None:
        """A provider of sessions that name none."""
        self._providers.append((name, dict(options or {})))

    def has_providers(self) -> bool:
        """Whether there is one."""
        return bool(self._providers)

    def set_provider_selection_policy(self, policy) -> None:
        """Does nothing: the device is the one that is set, or the best."""

    def add_provider_for_devices(self, devices, options=None) -> None:
        """Refused: there are no devices of providers."""
        raise NotImplemented("there are no devices of providers that are libraries; name a provider")

    def register_custom_ops_library(self, path: str) -> None:
        """Does nothing for the library of onnxruntime-extensions, whose operators on texts are here; others are refused."""
        path = os.fspath(path)
        if not os.path.exists(path):
            raise Fail(f"there is no library '{path}'")
        if not _EXTENSIONS.match(os.path.basename(path)):
            raise NotImplemented(f"the operators in '{path}' are machine code for ONNX Runtime, which Halite cannot run")

    def add_initializer(self, name: str, value) -> None:
        """The value of an initializer, as an `OrtValue`, in place of the model's; names that the model has not are passed over."""
        self._initializers[str(name)] = value.numpy()

    def add_external_initializers(self, names, values) -> None:
        """Values of initializers, as `OrtValue`s, in place of those in files beside the model, which need not be there."""
        if len(names) != len(values):
            raise InvalidArgument(f"there are {len(names)} names and {len(values)} values")
        self._external.update({str(name): value.numpy() for name, value in zip(names, values)})


def write_optimized(model, path) -> None:
    """Where ONNX Runtime writes the model that it made of the given one, this writes the given one, which computes the same.

    Halite compiles models to modules, not to ONNX, and keeps the modules in its cache.
    """
    path = os.fspath(path) if path else ""
    if not path:
        return
    if not isinstance(model, str):
        with open(path, "wb") as file:
            file.write(model)
        return
    target, source = os.path.abspath(path), os.path.abspath(model)
    if target == source:
        return
    if os.path.dirname(target) != os.path.dirname(source) and has_external_data(model):
        raise NotImplemented(f"the weights of '{model}' are in files beside it, so it cannot be written to another folder")
    shutil.copyfile(source, target)


class RunOptions:
    """What a run is made with."""

    def __init__(self):
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._token = CancelToken()
        self._entries: dict[str, str] = {}

    @property
    def terminate(self) -> bool:
        """Set it from another thread to stop the runs that have these options; unset it before the next one."""
        return self._token.cancelled

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if value:
            self._token.cancel()
        elif self._token.cancelled:
            self._token = CancelToken()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; none has an effect."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was kept."""
        if key not in self._entries:
            raise Missing(f"there is no entry '{key}'")
        return self._entries[key]

    def add_active_adapter(self, adapter) -> None:
        """Refused."""
        raise NotImplemented("adapters of weights are not supported")
