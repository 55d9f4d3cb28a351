"""Being the module `onnxruntime` of a process."""

from __future__ import annotations

import importlib.machinery
import sys
import types

_OWN = __package__
_NAME = "onnxruntime"
_replaced: dict[str, types.ModuleType] = {}
_placed: dict[str, types.ModuleType] = {}


def _capi() -> dict[str, types.ModuleType]:
    """The modules below `onnxruntime.capi` that packages import names from."""
    own = sys.modules[_OWN]
    names = {name: getattr(own, name) for name in dir(own) if not name.startswith("_")}
    modules = {}
    for name in ("_pybind_state", "onnxruntime_pybind11_state", "onnxruntime_inference_collection"):
        module = types.ModuleType(f"{_NAME}.capi.{name}", "Names of ONNX Runtime that Halite stands in for.")
        module.__dict__.update(names)
        modules[f"{_NAME}.capi.{name}"] = module
    beside = {
        "_ld_preload": {},
        "build_and_package_info": {"package_name": _NAME},
        "onnxruntime_validation": {"check_distro_info": lambda: None, "check_training_module": lambda: (False, _NAME, "", "")},
    }
    for name, own_names in beside.items():
        module = types.ModuleType(f"{_NAME}.capi.{name}", "Names of ONNX Runtime that Halite stands in for.")
        module.__dict__.update(own_names)
        modules[f"{_NAME}.capi.{name}"] = module
    capi = types.ModuleType(f"{_NAME}.capi", "Names of ONNX Runtime that Halite stands in for.")
    capi.__path__ = []
    for name, module in modules.items():
        setattr(capi, name.rpartition(".")[2], module)
    return {f"{_NAME}.capi": capi, **modules}


def is_installed() -> bool:
    """Whether `import onnxruntime` gives this module."""
    return sys.modules.get(_NAME) is sys.modules[_OWN]


def install(*, force: bool = True) -> bool:
    """Makes this module the module `onnxruntime` of the process, and says whether it is now.

    Without `force`, an `onnxruntime` that was imported before is left alone. With it, it is replaced for what is imported from now
    on; packages that have imported it keep it.
    """
    if is_installed():
        return True
    there = {name: module for name, module in sys.modules.items() if name == _NAME or name.startswith(f"{_NAME}.")}
    if there and not force:
        return False
    for name in there:
        _replaced[name] = sys.modules.pop(name)
    own = sys.modules[_OWN]
    capi = _capi()
    own.capi = capi[f"{_NAME}.capi"]
    _add_parts_in_python(own)
    _placed.update({_NAME: own, **capi})
    sys.modules.update(_placed)
    return True


def _add_parts_in_python(own: types.ModuleType) -> None:
    """Where ONNX Runtime is installed, its packages in Python (`quantization`, `tools`, `transformers`) are found below this one.

    They import `onnxruntime`, which is this module. ONNX Runtime itself is not imported.
    """
    try:
        found = importlib.machinery.PathFinder.find_spec(_NAME)
    except (ImportError, ValueError):
        return
    for folder in (found.submodule_search_locations if found else None) or []:
        if folder not in own.__path__:
            own.__path__.append(folder)


def uninstall() -> None:
    """Takes the stand-in back: `import onnxruntime` gives what it gave before."""
    for name, module in _placed.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _placed.clear()
    sys.modules.update(_replaced)
    _replaced.clear()
