"""Types of the extension module; the package `halite` has the same names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as _List
from os import PathLike
from typing import Any, BinaryIO, Literal, Protocol, TypedDict, Union, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__version__: str

class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...

_Path = Union[str, PathLike[str]]
_Model = Union[_Path, bytes, bytearray, memoryview, BinaryIO, _Message]
_DeviceChoice = Union[str, "Device", "DeviceInfo"]
_Value = Union["Tensor", "Opaque", ArrayLike, bytes, None, _List[Any]]
_Inputs = Union[Mapping[str, _Value], _List[_Value], _Value]
_Told = Union[bool, Callable[["Progress"], object], None]
_Sizes = Union[int, tuple[int, int], Iterable[int]]
_ChatMessage = Union[Mapping[str, Any], tuple[str, str]]
_Prompt = Union[str, _List[int], Iterable[_ChatMessage]]
_MemoryKind = Literal["opaque-fd", "dma-buf", "host", "android-hardware-buffer", "opaque-win32"]

class _HasDescriptor(Protocol):
    def fileno(self) -> int: ...

_MemorySupport = TypedDict("_MemorySupport", {"import": bool, "export": bool, "alignment": int})

# A JSON schema as text, or as `json` reads it.
_Schema = Union[str, bool, Mapping[str, Any]]
_Shapes = Union[_List[int], _List[_List[int]]]

@final
class CancelToken:
    """Stops work from any thread."""

    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

@final
class Compiled:
    """A module that was made from a model."""

    def to_bytes(self) -> bytes: ...
    def save(self, path: _Path, *, parameters: _Path | None = None) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def parameter_bytes(self) -> int | None: ...
    @property
    def report(self) -> dict[str, Any]: ...
    def explain(self) -> str: ...

@final
class Device:
    """An open device, which several sessions may share."""

    def __new__(cls, uri: str = "vulkan", *, options: Mapping[str, str] | None = None, plugins: bool = False) -> Device: ...
    @property
    def uri(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def info(self) -> DeviceInfo: ...
    def memory(self) -> dict[str, int]: ...
    def transfers(self) -> dict[str, int]: ...
    def recordings(self) -> dict[str, int]: ...
    def trim(self) -> None: ...

@final
class DeviceInfo:
    """What is known of a device before it is opened."""

    @property
    def uri(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def driver(self) -> str: ...
    @property
    def kind(self) -> Literal["discrete_gpu", "integrated_gpu", "virtual_gpu", "cpu", "other"]: ...
    @property
    def target(self) -> str | None: ...
    @property
    def unusable(self) -> str | None: ...
    @property
    def properties(self) -> dict[str, str]: ...
    @property
    def external_memory(self) -> dict[_MemoryKind, _MemorySupport]: ...
    @property
    def uuids(self) -> tuple[bytes, bytes] | None: ...

@final
class Embedder:
    """A language model that makes vectors of texts."""

    def __new__(
        cls,
        model: _Model,
        *,
        device: _DeviceChoice | _List[_DeviceChoice] | None = None,
        options: Mapping[str, str] | None = None,
        plugins: bool = False,
        precision: Literal["model", "f16", "float16"] | None = None,
        cache: bool | _Path | None = None,
        load: Literal["map", "preload"] | None = None,
        tuning: Literal["user", "shipped"] | _Path | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Embedder: ...
    def embed(
        self,
        text: str | _List[int] | _List[str] | _List[_List[int]],
        *,
        normalize: bool = True,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> NDArray[np.float32]: ...
    def tokenize(self, text: str) -> list[int]: ...
    @property
    def longest(self) -> int: ...
    @property
    def session(self) -> Session: ...

@final
class ExternalMemory:
    """Memory as others know it: a descriptor of Linux or a `HANDLE` of Windows, which this object owns."""

    def __new__(
        cls,
        handle: int | _HasDescriptor,
        size: int,
        *,
        kind: _MemoryKind = "opaque-fd",
        memory_type: int | None = None,
        dedicated: bool = False,
    ) -> ExternalMemory: ...
    @property
    def kind(self) -> _MemoryKind: ...
    @property
    def size(self) -> int: ...
    @property
    def memory_type(self) -> int | None: ...
    @property
    def dedicated(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int: ...
    def detach(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> ExternalMemory: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Function:
    """A function of a session."""

    @property
    def name(self) -> str: ...
    @property
    def info(self) -> FunctionInfo: ...
    def run(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Outputs: ...
    def start(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Pending: ...
    def prewarm(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> None: ...
    def profile(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[Outputs, dict[str, Any]]: ...
    def state(self) -> State: ...

@final
class FunctionInfo:
    """What a function takes and gives."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def inputs(self) -> list[ValueInfo]: ...
    @property
    def outputs(self) -> list[ValueInfo]: ...
    @property
    def states(self) -> list[tuple[str, str]]: ...
    @property
    def declaration(self) -> str | None: ...

@final
class Generator:
    """A language model that writes text."""

    def __new__(
        cls,
        model: _Model,
        *,
        context: int | None = None,
        cache_types: str | tuple[str, str] | None = None,
        scoring: bool = False,
        tokenizer: _Path | None = None,
        choose_on: Literal["auto", "host", "device"] = "auto",
        batch: int = 1,
        device: _DeviceChoice | _List[_DeviceChoice] | None = None,
        options: Mapping[str, str] | None = None,
        plugins: bool = False,
        precision: Literal["model", "f16", "float16"] | None = None,
        cache: bool | _Path | None = None,
        load: Literal["map", "preload"] | None = None,
        tuning: Literal["user", "shipped"] | _Path | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Generator: ...
    def generate(
        self,
        prompt: _Prompt,
        *,
        max_tokens: int = 256,
        stop: str | _List[str] | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last: int | None = None,
        seed: int | None = None,
        ignore_end: bool = False,
        json_schema: _Schema | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Stream: ...
    def step(
        self, writers: _List[tuple[Sequence, Sampler]], /, *, timeout: float | None = None, cancel: CancelToken | None = None
    ) -> list[int | Literal["end", "context"]]: ...
    def schema_sampler(
        self,
        schema: _Schema,
        /,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last: int | None = None,
        seed: int | None = None,
        ignore_end: bool = False,
    ) -> Sampler: ...
    @property
    def batch(self) -> int: ...
    def sequence(self) -> Sequence: ...
    def tokenize(self, text: str, *, control: bool = False) -> list[int]: ...
    def text(self, tokens: _List[int]) -> str: ...
    def is_end(self, token: int) -> bool: ...
    def chat(
        self,
        messages: Iterable[_ChatMessage],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> str: ...
    @property
    def context(self) -> int: ...
    @property
    def vocabulary_size(self) -> int: ...
    @property
    def begin(self) -> int | None: ...
    @property
    def cache_types(self) -> tuple[str, str]: ...
    @property
    def session(self) -> Session: ...

@final
class Opaque:
    """Something that only modules understand: a result that another call takes."""

    @property
    def kind(self) -> str: ...

@final
class Outputs(Mapping[str, Any]):
    """The results of a call, by name and by place, as NumPy arrays."""

    def __getitem__(self, key: str | int) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, key: object) -> bool: ...
    def keys(self) -> list[str]: ...  # type: ignore[override]
    def values(self) -> list[Any]: ...  # type: ignore[override]
    def items(self) -> list[tuple[str, Any]]: ...  # type: ignore[override]
    def get(self, key: str | int, default: Any = None) -> Any: ...
    def tensor(self, key: str | int) -> Tensor: ...
    def tensors(self) -> dict[str, Tensor]: ...

@final
class _Pattern:
    """A regular expression in the language of RE2, of which the longest matches are found."""

    def __new__(cls, pattern: str) -> _Pattern: ...
    def is_whole(self, text: str) -> bool: ...
    def matches(self, text: str, least: int) -> _List[str]: ...
    def between(self, text: str, least: int) -> _List[str]: ...

@final
class _Tokenizer:
    """A tokenizer of a file's bytes: `tokenizer.json`, SentencePiece's `.model`, tiktoken's lists, GGUF."""

    def __new__(cls, file: bytes) -> _Tokenizer: ...
    def encode(self, texts: _List[str], marks: bool = False) -> _List[_List[int]]: ...
    def decode(self, tokens: _List[int]) -> str: ...
    def __len__(self) -> int: ...
    @property
    def begin(self) -> int | None: ...
    @property
    def end(self) -> int | None: ...

@final
class Pending:
    """A call that was started."""

    @property
    def done(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> Outputs: ...

@final
class Progress:
    """How far a piece of work is."""

    @property
    def stage(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...

@final
class Sampler:
    """Chooses the tokens of a sequence, one behind the other."""

    def __new__(
        cls,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last: int | None = None,
        seed: int | None = None,
        ignore_end: bool = False,
    ) -> Sampler: ...

@final
class Sequence:
    """Tokens of a generator, with their caches on the device."""

    def prompt(self, prompt: _Prompt, /, *, timeout: float | None = None, cancel: CancelToken | None = None) -> int: ...
    def append(self, tokens: _List[int], /, *, timeout: float | None = None, cancel: CancelToken | None = None) -> None: ...
    def score(
        self, tokens: _List[int], /, *, timeout: float | None = None, cancel: CancelToken | None = None
    ) -> NDArray[np.float64]: ...
    def generate(
        self,
        *,
        max_tokens: int = 256,
        stop: str | _List[str] | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last: int | None = None,
        seed: int | None = None,
        ignore_end: bool = False,
        json_schema: _Schema | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> Stream: ...
    def truncate(self, count: int) -> None: ...
    def fork(self) -> Sequence: ...
    def save(self) -> bytes: ...
    def load(self, saved: bytes) -> None: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def logits(self) -> NDArray[np.float32]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def generator(self) -> Generator: ...
    def __len__(self) -> int: ...

@final
class Session:
    """A model or module, ready to run on its devices."""

    def __new__(
        cls,
        model: _Model,
        *,
        device: _DeviceChoice | _List[_DeviceChoice] | None = None,
        options: Mapping[str, str] | None = None,
        plugins: bool = False,
        precision: Literal["model", "f16", "float16"] | None = None,
        dimensions: Mapping[str, _Sizes] | None = None,
        shapes: Mapping[str, _Shapes] | None = None,
        values: Mapping[str, _Value] | None = None,
        seed: int | None = None,
        states: Mapping[str, str] | None = None,
        cache: bool | _Path | None = None,
        load: Literal["map", "preload"] | None = None,
        imports: Iterable[_Model] | None = None,
        parameters: _Path | Mapping[str, _Path] | None = None,
        tuning: Literal["user", "shipped"] | _Path | None = None,
        max_loaded_versions: int | None = None,
        compile_ahead: bool | None = None,
        program_memory: int | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Session: ...
    def run(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Outputs: ...
    def start(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Pending: ...
    def prewarm(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> None: ...
    def profile(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[Outputs, dict[str, Any]]: ...
    def state(self) -> State: ...
    def function(self, name: str) -> Function: ...
    @property
    def functions(self) -> list[FunctionInfo]: ...
    @property
    def inputs(self) -> list[ValueInfo]: ...
    @property
    def outputs(self) -> list[ValueInfo]: ...
    @property
    def device(self) -> Device | None: ...
    @property
    def devices(self) -> list[Device]: ...
    @property
    def loaded_versions(self) -> int: ...

@final
class SharedMemory:
    """Memory that a device shares with others; tensors lie in it without a copy."""

    def __new__(cls, device: Device, size: int, *, kind: _MemoryKind = "opaque-fd") -> SharedMemory: ...
    @staticmethod
    def open(device: Device, memory: ExternalMemory) -> SharedMemory: ...
    @staticmethod
    def from_array(device: Device, array: NDArray[Any]) -> SharedMemory: ...
    def tensor(self, shape: int | _List[int], dtype: DTypeLike | None = None, *, offset: int = 0) -> Tensor: ...
    def write(self, tensor: Tensor | ArrayLike, *, offset: int = 0) -> None: ...
    def release(self) -> None: ...
    def acquire(self) -> None: ...
    def export(self, kind: _MemoryKind | None = None) -> ExternalMemory: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def kind(self) -> _MemoryKind: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> SharedMemory: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class State:
    """Tensors that live on the device between calls."""

    def run(
        self,
        inputs: _Inputs = None,
        /,
        *,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        progress: _Told = None,
    ) -> Outputs: ...
    def reset(self) -> None: ...
    def fork(self) -> State: ...
    def save(self) -> bytes: ...
    def load(self, saved: bytes) -> None: ...
    def keys(self) -> list[str]: ...
    @property
    def nbytes(self) -> int: ...
    def __getitem__(self, name: str) -> NDArray[Any] | None: ...
    def __setitem__(self, name: str, value: ArrayLike | Tensor) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...

@final
class Stream(Iterator[str]):
    """What a language model writes, text by text."""

    def __iter__(self) -> Stream: ...
    def __next__(self) -> str: ...
    def read(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def stop(self) -> Literal["end", "length", "context", "text"] | None: ...
    @property
    def sequence(self) -> Sequence: ...

@final
class Tensor:
    """A dense array of numbers on a device or on the host, which never changes."""

    def __new__(cls, data: ArrayLike | Tensor, *, dtype: str | None = None, device: Device | None = None) -> Tensor: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def device(self) -> Device | None: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def numpy(self) -> NDArray[Any]: ...
    def read_into(self, array: NDArray[Any]) -> None: ...
    def to(self, device: Device | None) -> Tensor: ...
    def reshape(self, *shape: int | _List[int]) -> Tensor: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...

@final
class ValueInfo:
    """An input or output of a function."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Literal["tensor", "sequence", "scalar", "other"]: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def shape(self) -> tuple[int | str | None, ...] | None: ...
    @property
    def most(self) -> tuple[int | None, ...] | None: ...
    @property
    def optional(self) -> bool: ...

def compile(
    model: _Model,
    *,
    targets: str | Device | DeviceInfo | _List[str | Device | DeviceInfo] | None = None,
    baseline: bool = True,
    precision: Literal["model", "f16", "float16"] | None = None,
    dimensions: Mapping[str, _Sizes] | None = None,
    shapes: Mapping[str, _Shapes] | None = None,
    values: Mapping[str, _Value] | None = None,
    seed: int | None = None,
    functions: _List[str] | None = None,
    states: Mapping[str, str] | None = None,
    find_states: bool = False,
    name: str | None = None,
    external_parameters: str | None = None,
    tuning: Literal["user", "shipped"] | _Path | None = None,
    timeout: float | None = None,
    cancel: CancelToken | None = None,
    progress: _Told = None,
) -> Compiled: ...
def devices(*, options: Mapping[str, str] | None = None, plugins: bool = False) -> list[DeviceInfo]: ...
def inspect(model: _Model) -> list[FunctionInfo]: ...
def set_log_level(level: str) -> None: ...
def unavailable_drivers(*, plugins: bool = False) -> dict[str, str]: ...
