"""Which device sessions run on, and what ONNX Runtime calls execution providers."""

from __future__ import annotations

import os
import warnings

from ._errors import InvalidArgument

PROVIDER = "VulkanExecutionProvider"
"""What Halite is called among execution providers."""

FALLBACK = "CPUExecutionProvider"
"""The provider that packages ask for when they want none in particular; it means the default device, too."""

_default_device = None


def set_default_device(device) -> None:
    """The device of sessions that name none: a URI (`vulkan://0`), a `halite.Device`, or `None` for the best one."""
    global _default_device
    _default_device = device


def get_default_device():
    """The device of sessions that name none; the variable `HALITE_ONNXRUNTIME_DEVICE` says it where no program did."""
    if _default_device is not None:
        return _default_device
    return os.environ.get("HALITE_ONNXRUNTIME_DEVICE") or None


def get_device() -> str:
    """`CPU`, as in builds of ONNX Runtime without CUDA: packages ask whether it is `GPU` before they use CUDA."""
    return "CPU"


def get_available_providers() -> list[str]:
    """The providers that sessions take."""
    return [PROVIDER, FALLBACK]


def get_all_providers() -> list[str]:
    """The same: no others are known."""
    return get_available_providers()


def chosen(providers, provider_options) -> tuple[list[str], object]:
    """The providers of a session, and its device.

    Other providers than those that exist are left out with a warning, as in ONNX Runtime.
    """
    try:
        return _chosen(providers, provider_options)
    except ValueError as error:
        # As ONNX Runtime, which goes on with its own choice.
        warnings.warn(f"{error}; the default device is used", stacklevel=4)
        return _chosen(None, None)


def _chosen(providers, provider_options) -> tuple[list[str], object]:
    names, device = [], None
    given = [] if providers is None else list(providers)
    options = [{}] * len(given) if not provider_options else list(provider_options)
    if len(options) != len(given):
        raise ValueError("'providers' and 'provider_options' have to be of the same length")
    for provider, option in zip(given, options):
        name, option = provider if isinstance(provider, tuple) else (provider, option)
        if not isinstance(name, str):
            raise ValueError("'providers' are names, or pairs of a name and options")
        if name not in get_available_providers():
            available = ", ".join(get_available_providers())
            warnings.warn(f"execution provider '{name}' does not exist here; there are: {available}", stacklevel=4)
            continue
        names.append(name)
        option = dict(option or {})
        if name == PROVIDER:
            device = option.pop("device", device)
            if "device_id" in option:
                device = f"vulkan://{int(option.pop('device_id'))}"
            if option:
                raise InvalidArgument(f"{PROVIDER} has the options 'device' and 'device_id', not {sorted(option)}")
    ordered = [name for name in get_available_providers() if name in names] or get_available_providers()
    return ordered, get_default_device() if device is None else device
