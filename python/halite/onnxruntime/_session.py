"""`InferenceSession` on a session of Halite."""

from __future__ import annotations

import json
import os
import threading
import time

import numpy as np

from .. import Session as Compiled
from .. import Tensor
from . import _initializers, _labels, _metadata, _planned
from ._device import FALLBACK, PROVIDER, chosen
from ._errors import BadBinding, InvalidArgument, ModelLoadCanceled, NotImplemented, translated
from ._logging import set_default_logger_severity
from ._options import RunOptions, SessionOptions, write_optimized
from ._plugins import OrtMemoryInfo
from ._values import IOBinding, OrtValue, type_text

default_seed: int | None = None

_NO_VERSION = (1 << 63) - 1
"""What ONNX Runtime tells of a file without a version."""

_MOST_VARIANTS = 8
"""Most sets of given initializers that a session keeps a compiled model for."""


class NodeArg:
    """An input or output: `name`, `type` (`tensor(float)`), `shape` (numbers, names of open sizes, `None`)."""

    def __init__(self, info, given: dict[str, int], declared: str = ""):
        self.name: str = info.name
        # Sizes that the options give are fixed, as in ONNX Runtime.
        self.shape: list | None = [given.get(size, size) for size in info.shape or []]
        self.type: str = declared or {
            "tensor": lambda: type_text(info.dtype),
            "sequence": lambda: "seq(tensor)",
        }.get(info.kind, lambda: str(info.dtype))()

    @classmethod
    def declared(cls, name: str, declared: str, shape: list) -> NodeArg:
        """As the file declares it."""
        made = cls.__new__(cls)
        made.name, made.type, made.shape = name, declared, shape
        return made

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __repr__ = __str__


class ModelMetadata:
    """What the model's file says of itself."""

    def __init__(self, found: dict):
        self.producer_name: str = found.get("producer_name", "")
        self.graph_name: str = found.get("graph_name", "")
        self.domain: str = found.get("domain", "")
        self.description: str = found.get("description", "")
        self.graph_description: str = found.get("graph_description", "")
        self.version: int = found.get("version", _NO_VERSION)
        self.custom_metadata_map: dict[str, str] = found["custom"]


class Session:
    """What packages find in ONNX Runtime's sessions below their interface, under its names there."""

    @property
    def _sess(self):
        """Itself: it has the methods of both layers."""
        return self

    @property
    def _model_path(self) -> str:
        """The path that it was made of; empty where it was bytes."""
        return self._model if isinstance(self._model, str) else ""

    @property
    def _model_bytes(self):
        """The bytes that it was made of, or nothing."""
        return None if isinstance(self._model, str) else self._model

    @property
    def _inputs_meta(self) -> list[NodeArg]:
        """What has to be given."""
        return self._inputs

    @property
    def _outputs_meta(self) -> list[NodeArg]:
        """What comes out."""
        return self._outputs

    @property
    def _sess_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    @property
    def _model_meta(self) -> ModelMetadata:
        """What the model's file says of itself."""
        return self.get_modelmeta()


class InferenceSession(Session):
    """A model that is ready to run."""

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        del kwargs  # ONNX Runtime takes any, and those that it knows are about its own parts.
        self._options = sess_options if sess_options is not None else SessionOptions()
        if not isinstance(self._options, SessionOptions):
            raise InvalidArgument("sess_options are SessionOptions of this module")
        if self._options.log_severity_level >= 0:
            set_default_logger_severity(self._options.log_severity_level)
        if providers is None and self._options._providers:
            providers = self._options._providers
        self._providers, self._device = chosen(providers, provider_options)
        self._model = path_or_bytes
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model = os.fspath(path_or_bytes)
        elif not isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            raise TypeError(f"a model is a path or bytes, not {type(path_or_bytes).__name__}")
        write_optimized(self._model, self._options.optimized_model_filepath)
        self._metadata: ModelMetadata | None = None
        self._profiles: list[str] = []
        self._begun_ns = time.monotonic_ns()
        self._source = self._with_given_weights()
        self._variants: dict[frozenset[str], Compiled] = {}
        self._making_variants = threading.Lock()
        self._build()

    def _with_given_weights(self):
        """The model with the weights of the options in place of its own."""
        source = self._model
        if self._options._external:
            source = _initializers.rewritten(source, values=self._options._external, must_be_there=True)
        if self._options._initializers:
            source = _initializers.rewritten(source, values=self._options._initializers)
        return source

    def _compiled(self, source) -> Compiled:
        return Compiled(
            source,
            device=self._device,
            dimensions=dict(self._options._dimensions) or None,
            seed=default_seed,
            cancel=self._options._loading,
        )

    def _build(self) -> None:
        self._variants.clear()
        with translated({"cancelled": ModelLoadCanceled}):
            self._plan = _planned.of(self._source, self._compiled)
            if self._plan is not None:
                self._build_planned()
                return
            self._session = self._compiled(self._source)
            inputs, outputs = self._session.inputs, self._session.outputs
        types, self._makers = _labels.read(self._source)
        self._lists = {info.name for info in outputs if info.kind != "tensor"} - self._makers.keys()

        def args(infos):
            return [NodeArg(info, self._options._dimensions, types.get(info.name, "")) for info in infos]

        self._inputs = args(info for info in inputs if not info.optional)
        self._optional = args(info for info in inputs if info.optional)
        self._overridable = frozenset(_initializers.overridable(self._source))
        if self._overridable:
            sizes = _initializers.sizes(self._source, self._overridable)
            self._optional += [NodeArg.declared(name, types.get(name, ""), sizes[name]) for name in sizes]
        self._name_ports(args(outputs))

    def _name_ports(self, outputs: list[NodeArg]) -> None:
        self._outputs = outputs
        self._required = [arg.name for arg in self._inputs]
        self._output_names = [arg.name for arg in self._outputs]

    def _build_planned(self) -> None:
        """What is known of a model whose texts the host computes with."""
        plan, given = self._plan, self._options._dimensions
        self._session, self._makers, self._optional, self._overridable = None, {}, [], frozenset()

        def args(names):
            sizes = ([given.get(size, size) for size in plan.shapes[name]] for name in names)
            return [NodeArg.declared(name, plan.types[name], own) for name, own in zip(names, sizes)]

        self._inputs = args(plan.inputs)
        self._lists = {name for name in plan.outputs if not plan.types[name].startswith("tensor(") or "string" in plan.types[name]}
        self._name_ports(args(plan.outputs))

    def _opened_device(self):
        """The device that the model runs on; none while all of it is the host's."""
        return self._plan.device if self._session is None else self._session.device

    # What is known of it.

    def get_inputs(self) -> list[NodeArg]:
        """What has to be given."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """What comes out."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """What may be given, and has a value otherwise."""
        return list(self._optional)

    def get_modelmeta(self) -> ModelMetadata:
        """What the model's file says of itself."""
        if self._metadata is None:
            self._metadata = ModelMetadata(_metadata.read(self._model))
        return self._metadata

    def get_providers(self) -> list[str]:
        """The providers that it was made for."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict]:
        """The device of Halite's provider."""
        device = self._opened_device()
        uri = "" if device is None else device.uri
        return {name: {"device": uri} if name == PROVIDER else {} for name in self._providers}

    def set_providers(self, providers=None, provider_options=None) -> None:
        """Makes the session again for other providers."""
        self._providers, self._device = chosen(providers, provider_options)
        self._build()

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    def get_tuning_results(self) -> list:
        """None: kernels are chosen by tables of measurements, not by sessions."""
        return []

    def set_tuning_results(self, results, error_on_invalid: bool = False) -> None:
        """Does nothing: kernels are chosen by tables of measurements."""
        del results, error_on_invalid

    def set_ep_dynamic_options(self, options: dict[str, str]) -> None:
        """Does nothing: Halite has no options that change between runs."""
        del options

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where inputs are taken from: the host."""
        return [OrtMemoryInfo() for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where results are given: on the host."""
        return [OrtMemoryInfo() for _ in self._outputs]

    def disable_fallback(self) -> None:
        """Does nothing: a failed run is never made again elsewhere."""

    def enable_fallback(self) -> None:
        """Refused: a failed run is never made again elsewhere."""
        raise NotImplemented(f"a run that fails is not made again on {FALLBACK}")

    # Runs.

    def run(self, output_names, input_feed, run_options: RunOptions | None = None) -> list:
        """Runs it: the outputs with these names, or all for `None`, as arrays."""
        names = self._wanted(output_names)
        outputs = self._call(input_feed, run_options)
        with translated():
            return [self._made(outputs, name) for name in names]

    def _made(self, outputs, name: str):
        """An output as ONNX Runtime gives it: texts and dictionaries are made of what devices hold."""
        maker = self._makers.get(name)
        return outputs[name] if maker is None else maker(outputs[name])

    def _is_made(self, name: str) -> bool:
        """Whether an output is no tensor of numbers, and so lies on the host."""
        return name in self._makers or name in self._lists

    def _value(self, outputs, name: str) -> OrtValue:
        """An output as a value, where it lies."""
        return OrtValue(self._made(outputs, name) if self._is_made(name) else outputs.tensor(name))

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None) -> None:
        """Runs it on another thread, which calls `callback(results, user_data, error)`."""
        names = self._wanted(output_names)
        self._check_feed(input_feed)

        def work():
            results, error = [], ""
            try:
                results = self.run(names, input_feed, run_options)
            except Exception as failure:
                error = str(failure)
            callback(results, user_data, error)

        threading.Thread(target=work, name="halite-run-async", daemon=True).start()

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None) -> list[OrtValue]:
        """As `run`, with values that stay on the device."""
        names = self._wanted(output_names)
        outputs = self._call({name: value._value for name, value in input_dict_ort_values.items()}, run_options)
        with translated():
            return [self._value(outputs, name) for name in names]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are bound once."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs it with what is bound."""
        missing = [name for name in self._required if name not in iobinding._inputs]
        if missing:
            raise BadBinding(f"inputs are not bound: {', '.join(missing)}")
        outputs = self._call(iobinding._feed(), run_options)
        with translated():
            iobinding._take(outputs)

    def run_with_ortvaluevector(self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices) -> None:
        """As `run_with_ort_values`; results go to the end of `fetches`."""
        del fetch_devices
        fetches.extend(self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds)), run_options))

    def _wanted(self, output_names) -> list[str]:
        if not output_names:
            return self._output_names
        if isinstance(output_names, str):
            raise TypeError(f"output_names are a list of names, not the text '{output_names}'")
        for name in output_names:
            if name not in self._output_names:
                raise InvalidArgument(f"there is no output '{name}'; there are: {', '.join(self._output_names)}")
        return list(output_names)

    def _check_feed(self, feed) -> None:
        there = feed.keys()
        missing = [name for name in self._required if name not in there]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def _call(self, feed, run_options: RunOptions | None):
        self._check_feed(feed)
        feed = {name: value._value if isinstance(value, OrtValue) else value for name, value in feed.items()}
        cancel = None if run_options is None else run_options._token
        session = self._session
        if self._overridable and not self._overridable.isdisjoint(feed):
            session = self._variant(self._overridable.intersection(feed))

        def call(session, feed):
            if not self._options.enable_profiling:
                return session.run(feed, cancel=cancel)
            outputs, profile = session.profile(feed, cancel=cancel)
            self._profiles.append(profile["trace"])
            return outputs

        with translated():
            return call(session, feed) if self._plan is None else self._plan.run(feed, call)

    def _variant(self, given: frozenset[str]) -> Compiled:
        """The model with these initializers as inputs. It is compiled when they are given for the first time."""
        with self._making_variants:
            made = self._variants.get(given)
            if made is None:
                if len(self._variants) >= _MOST_VARIANTS:
                    self._variants.pop(next(iter(self._variants)))
                with translated():
                    made = self._variants[given] = self._compiled(_initializers.rewritten(self._source, without=given))
            return made

    def _on_device(self, array: np.ndarray):
        """A tensor on the session's device, of an array."""
        with translated():
            return Tensor(array, device=self._opened_device())

    # Profiles.

    def end_profiling(self) -> str:
        """Writes what runs were measured as trace events, and gives the file's name; empty where profiling was not enabled."""
        if not self._options.enable_profiling:
            return ""
        path = f"{self._options.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        events, offset = [], 0.0
        for text in self._profiles:
            own = json.loads(text)["traceEvents"]
            for event in own:
                if "ts" in event:
                    event["ts"] += offset
            events.extend(own)
            offset = max((e["ts"] + e.get("dur", 0.0) for e in own if "ts" in e), default=offset)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(events, file)
        self._profiles.clear()
        return path

    def get_profiling_start_time_ns(self) -> int:
        """When the session was made, by the clock of `time.monotonic_ns()`."""
        return self._begun_ns
