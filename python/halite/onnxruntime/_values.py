"""Values outside of NumPy: `OrtValue`, and `IOBinding`, which keeps inputs and outputs where they are."""

from __future__ import annotations

import ctypes

import numpy as np

from .. import Tensor
from ._errors import BadBinding, InvalidArgument, NotImplemented, Unavailable, translated

_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "bool": "bool",
    "object": "string",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}

_NUMBERS = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
}
"""Numbers of element types in onnx.proto (TensorProto.DataType)."""

NUMBER_OF_TYPE = {name: number for number, name in _NUMBERS.items()}
"""The same the other way."""

VULKAN = "vulkan"


def type_text(dtype) -> str:
    """`tensor(float)`, of a name of NumPy's types."""
    return f"tensor({_TYPES.get(str(dtype), str(dtype))})"


def _dtype(element_type) -> np.dtype:
    """Of what ONNX Runtime takes: a NumPy type, or a number of ONNX's."""
    if isinstance(element_type, int):
        if element_type not in _NUMBERS:
            raise InvalidArgument(f"{element_type} is no type of elements of ONNX that tensors have")
        name = _NUMBERS[element_type]
        if name == "bfloat16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(name)
    return np.dtype(element_type)


def _check_device(device_type: str) -> str:
    name = str(device_type).lower()
    if name not in ("cpu", VULKAN):
        raise Unavailable(f"memory of '{device_type}' cannot be used; there are: cpu, {VULKAN}")
    return name


def _at_address(address: int, dtype: np.dtype, shape) -> np.ndarray:
    """The memory of the host at an address as an array; the caller owns it."""
    if not address:
        raise InvalidArgument("the address of the buffer is 0")
    count = int(np.prod(shape, dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype=dtype, count=count).reshape(shape)


class OrtDevice:
    """A place for values."""

    def __init__(self, device_type: str, device_id: int = 0):
        self._type, self._id = _check_device(device_type), int(device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """A place by the name of its kind, `cpu` or `vulkan`."""
        del vendor_id
        return OrtDevice(ort_device_name, device_id)

    def _get_c_device(self) -> OrtDevice:
        """Itself: what packages find below ONNX Runtime's class of this name."""
        return self

    def device_type(self) -> str:
        """`cpu` or `vulkan`."""
        return self._type

    def device_id(self) -> int:
        """Its number."""
        return self._id

    @staticmethod
    def cpu() -> int:
        """The number of the kind `cpu`."""
        return 0


class OrtValue:
    """A tensor on the host or on the device of a session."""

    def __init__(self, value):
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(numpy_obj, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """The array itself. A session takes it to its device when it is used first."""
        del device_id, vendor_id
        _check_device(device_type)
        array = np.asarray(numpy_obj)
        if array.dtype.kind in "OUS":
            raise Unavailable("values are made of arrays of numbers, not of texts")
        return OrtValue(array)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data, onnx_element_type: int) -> OrtValue:
        """The array's bits as a type of ONNX."""
        return OrtValue(np.asarray(data).view(_dtype(int(onnx_element_type))))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape, element_type, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Room for a tensor."""
        del device_id, vendor_id
        _check_device(device_type)
        return OrtValue(np.zeros(tuple(shape), _dtype(element_type)))

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor) -> OrtValue:
        """Refused."""
        raise NotImplemented("sparse tensors are not supported")

    @classmethod
    def from_dlpack(cls, data, is_bool_tensor: bool = False) -> OrtValue:
        """Of an object with `__dlpack__`, without a copy."""
        array = np.from_dlpack(data)
        return cls(array.view(np.bool_) if is_bool_tensor else array)

    def numpy(self) -> np.ndarray:
        """The elements as an array; a copy where they lie on a device."""
        with translated():
            return self._value.numpy() if isinstance(self._value, Tensor) else self._value

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if copy:
            array = array.copy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, *, stream=None):
        del stream
        return self.numpy().__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)

    def data_ptr(self) -> int:
        """The address of the elements on the host."""
        if isinstance(self._value, Tensor):
            raise NotImplemented("elements on a Vulkan device have no address; use numpy()")
        return self._value.ctypes.data

    def device_name(self) -> str:
        """`cpu` or `vulkan`."""
        return VULKAN if isinstance(self._value, Tensor) and self._value.device is not None else "cpu"

    def shape(self) -> list[int]:
        """Sizes."""
        if isinstance(self._value, list):
            raise BadBinding("a list of values has no sizes")
        return list(self._value.shape)

    def data_type(self) -> str:
        """Type as text, `tensor(float)`."""
        if isinstance(self._value, list):
            return f"seq({type_text(self._value[0].dtype) if self._value else 'tensor'})"
        return type_text(self._value.dtype)

    @property
    def _ortvalue(self) -> OrtValue:
        """Itself: what packages find below ONNX Runtime's class of this name."""
        return self

    def element_type(self) -> int:
        """The number of the type in ONNX."""
        name = str(self._value.dtype)
        return next((number for number, own in _NUMBERS.items() if own == name), 0)

    def tensor_size_in_bytes(self) -> int:
        """Bytes of all elements."""
        return self._value.nbytes

    def has_value(self) -> bool:
        """Whether there is a tensor."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._value, (np.ndarray, Tensor))

    def is_sparse_tensor(self) -> bool:
        """Whether it is a sparse one: never."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self._value, list)

    def update_inplace(self, data) -> None:
        """Replaces the elements."""
        data = np.asarray(data)
        if tuple(data.shape) != tuple(self._value.shape) or data.dtype != self._value.dtype:
            raise BadBinding(f"{data.dtype}{data.shape} cannot replace {self.data_type()}{self.shape()}")
        if isinstance(self._value, Tensor):
            with translated():
                self._value = Tensor(data, device=self._value.device)
        else:
            self._value[...] = data


class OrtValueVector(list):
    """A list of values with the names of ONNX Runtime's."""

    def push_back(self, value: OrtValue) -> None:
        """Adds a value."""
        self.append(value)

    def reserve(self, count: int) -> None:
        """Does nothing: lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Does nothing: lists shrink by themselves."""


class SparseTensor:
    """Refused: Halite has no sparse tensors."""

    def __init__(self, *_args):
        raise NotImplemented("sparse tensors are not supported")


class _Output:
    """Where an output goes."""

    def __init__(self, device: str, array: np.ndarray | None = None, value: OrtValue | None = None):
        self.device, self.array, self.value = device, array, value


class IOBinding:
    """Inputs and outputs that are bound once, for many runs."""

    def __init__(self, session):
        self._session = session
        self._inputs: dict[str, object] = {}
        self._outputs: dict[str, _Output] = {}
        self._results: list[OrtValue] = []

    def _known(self, name: str, args) -> str:
        names = [arg.name for arg in args]
        if name not in names:
            raise BadBinding(f"there is no '{name}' to bind; there are: {', '.join(names)}")
        return name

    def _takes(self) -> list:
        """All that can be given."""
        return self._session.get_inputs() + self._session.get_overridable_initializers()

    def bind_cpu_input(self, name: str, arr_on_cpu) -> None:
        """An array, which is copied to the device now; one of texts is looked up at each run."""
        array = np.asarray(arr_on_cpu)
        self._inputs[self._known(name, self._takes())] = array if array.dtype.kind in "OUS" else self._session._on_device(array)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr) -> None:
        """Memory of the host at an address, which is read at each run."""
        del device_id
        if _check_device(device_type) != "cpu":
            raise NotImplemented("memory of a Vulkan device has no address; bind an OrtValue")
        array = _at_address(buffer_ptr, _dtype(element_type), tuple(shape))
        self._inputs[self._known(name, self._takes())] = array

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """A value, which is used as it lies."""
        self._inputs[self._known(name, self._takes())] = ortvalue

    def bind_output(
        self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None
    ) -> None:
        """An output that is kept: on the host, on the device, or in memory of the host at an address."""
        del device_id
        device, array = _check_device(device_type), None
        if buffer_ptr is not None:
            if device != "cpu":
                raise NotImplemented("memory of a Vulkan device has no address; bind the output to 'vulkan' without one")
            if element_type is None or shape is None:
                raise InvalidArgument("an output at an address needs its type and shape")
            array = _at_address(buffer_ptr, _dtype(element_type), tuple(shape))
        self._outputs[self._known(name, self._session.get_outputs())] = _Output(device, array)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """A value whose elements are replaced."""
        self._outputs[self._known(name, self._session.get_outputs())] = _Output("cpu", None, ortvalue)

    def synchronize_inputs(self) -> None:
        """Does nothing: inputs are there when binding returns."""

    def synchronize_outputs(self) -> None:
        """Does nothing: a run waits for its outputs."""

    def get_outputs(self) -> list[OrtValue]:
        """What the last run gave, in the order of binding."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """The same."""
        return self.get_outputs()

    @property
    def _iobinding(self) -> IOBinding:
        """Itself: what packages find below ONNX Runtime's class of this name."""
        return self

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The same as arrays."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear()
        self._results = []

    def _feed(self) -> dict:
        """The inputs of a run. What is on the host goes to the device once."""
        feed = {}
        for name, value in self._inputs.items():
            feed[name] = value._value if isinstance(value, OrtValue) else value
        return feed

    def _take(self, outputs) -> None:
        """Puts the results of a run where they belong."""
        self._results = []
        for name, place in self._outputs.items():
            if self._session._is_made(name):
                self._results.append(self._session._value(outputs, name))
                continue
            tensor = outputs.tensor(name)
            if place.value is not None:
                place.value.update_inplace(tensor.numpy())
                self._results.append(place.value)
            elif place.array is not None:
                tensor.read_into(place.array)
                self._results.append(OrtValue(place.array))
            else:
                self._results.append(OrtValue(tensor if place.device == VULKAN else tensor.numpy()))
