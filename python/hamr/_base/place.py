"""Devices as users write them, and whether an allocator's memory can be there."""

from __future__ import annotations

import hamr._native as _native

from .allocator import FACTS, Allocator, allocator_from, allocator_of, is_of_a_device, is_ordinary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, SupportsIndex, TypeAlias

    class _TorchDevice(Protocol):
        @property
        def type(self) -> str: ...

    class _JaxDevice(Protocol):
        @property
        def platform(self) -> str: ...

    class _CuPyDevice(Protocol):
        @property
        def id(self) -> int: ...

    Device: TypeAlias = SupportsIndex | str | _TorchDevice | _JaxDevice | _CuPyDevice

_HOST = ("cpu", "host")
_DEVICE = ("cuda", "gpu")
#: Backends with devices of their own.
_BACKENDS = {facts[5] for number, facts in enumerate(FACTS) if is_of_a_device(number)}
_DEVICES = (
    "n from 0 on, 'cuda:n' or 'cuda' for CUDA devices, and device objects of PyTorch, JAX and CuPy"
)
ACCEPTED = f"accepted are -1 or 'cpu' for the host, {_DEVICES}"
_ACCEPTED_ALONE = f"accepted are {_DEVICES}"


def device_number(value: Any) -> int:
    """The number of a CUDA device; -1, the current one, for None, -1 and "cuda"."""
    if value is None or (type(value) is int and value == -1):
        return -1
    host, number = device_of_spelling(value, _ACCEPTED_ALONE)
    if host:
        raise ValueError(
            f"device is {value!r}: accepted is a CUDA device, and not the host: {_DEVICES}"
        )
    return number


def device_and_backend(value: Any) -> tuple[int, str]:
    """A device's number as by ``device_number``, and its backend: "opencl:1" is OpenCL's second."""
    if isinstance(value, str):
        kind, _, _ = value.partition(":")
        if kind in _BACKENDS and kind not in _DEVICE:
            return _number_in(value), kind
    return device_number(value), "cuda"


def host_or_device(value: Any) -> tuple[int, str]:
    """As ``device_and_backend``. For the host, which is -1 or "cpu", they are -1 and "host"."""
    if not isinstance(value, str) or value.partition(":")[0] not in _BACKENDS:
        host, number = device_of_spelling(value)
        return (number, "host") if host else (number, "cuda")
    return device_and_backend(value)


def new_place(allocator: Any, device: Any) -> tuple[int, int]:
    """The allocator and device of new memory for which a user gave a device."""
    host, number = device_of_spelling(device)
    if allocator is None:
        return (Allocator.malloc if host else Allocator.cuda), number
    return _fitting(allocator_of(allocator), host, number, device)


def copy_place(allocator: Any, device: Any, now: int) -> tuple[int, int]:
    """The allocator and device of a copy of elements that are in memory of allocator ``now``.

    If ``allocator`` is "same", the device decides.
    """
    chosen = allocator_of(allocator)
    if device is None:
        return chosen, -1
    host, number = device_of_spelling(device)
    if chosen != Allocator.same:
        return _fitting(chosen, host, number, device)
    if host == is_of_a_device(now):
        return (Allocator.malloc if host else Allocator.cuda), number
    return now, number


def _fitting(allocator: int, host: bool, number: int, device: Any) -> tuple[int, int]:
    name = allocator_from(allocator).name
    if host and is_of_a_device(allocator):
        raise ValueError(
            f"device is {device!r}, the host, and {name} memory is a device's: accepted are "
            "devices, or an allocator such as malloc"
        )
    if not host and is_ordinary(allocator):
        raise ValueError(
            f"device is {device!r}: {name} memory is the host's: accepted are -1 and 'cpu', or an "
            "allocator such as cuda"
        )
    return allocator, number


def device_of_spelling(device: Any, accepted: str = ACCEPTED) -> tuple[bool, int]:
    """Whether a device is the host, and its number; -1 is the host, or the current device."""
    kind, number = device, None
    if isinstance(device, str):
        kind, found = device.partition(":")[0], _number_in(device, accepted)
        number = None if found < 0 else found
    elif hasattr(type(device), "__index__") and not isinstance(device, bool):
        number = device.__index__()
        kind = "cpu" if number == -1 else "cuda"
    else:
        kind, number = _of_object(device)
    if not isinstance(kind, str) or not (number is None or type(number) is int):
        raise TypeError(f"device is {device!r}: {accepted}")
    if kind in _HOST:
        return True, -1
    if kind not in _DEVICE:
        raise ValueError(f"device is {device!r}: {accepted}{_meant(kind, device)}")
    if not 0 <= (number or 0) < 2**31:
        raise ValueError(f"device is {device!r}: {accepted}")
    return False, -1 if number is None else number


def _meant(kind: str, device: Any) -> str:
    """What to write instead of another library's name of a device."""
    known = {"nvidia": "cuda", "xpu": "sycl"}.get(kind.lower(), kind.lower())
    if known in _HOST or known in _DEVICE:
        meant = "cpu" if known in _HOST else str(device).lower().replace("nvidia", "cuda")
        return f"; write {meant!r}"
    allocators = {"hip": "hip", "opencl": "opencl_device", "sycl": "sycl_device"}
    if known in allocators:
        return f"; {known}'s memory is named by allocator={allocators[known]!r}"
    return ""


def _number_in(device: str, accepted: str = ACCEPTED) -> int:
    """The number in "cuda:1"; -1 if there is none."""
    _, colon, digits = device.partition(":")
    if not colon:
        return -1
    if not (digits.isascii() and digits.isdecimal()) or int(digits) >= 2**31:
        raise ValueError(f"device is {device!r}: {accepted}")
    return int(digits)


def _of_object(device: Any) -> tuple[Any, Any]:
    """Kind and number of a device object of PyTorch, JAX or CuPy, by its attributes."""
    kind = getattr(device, "type", None)
    if isinstance(kind, str):  # torch.device
        return kind, getattr(device, "index", None)
    kind = getattr(device, "platform", None)
    if isinstance(kind, str):  # jax.Device, numbered by the process in one way, by CUDA in another
        local = getattr(device, "local_hardware_id", None)
        return kind, getattr(device, "id", None) if local is None else local
    number = getattr(device, "id", None)  # cupy.cuda.Device
    return ("cuda", number) if type(number) is int else (None, None)


_native.set_device_reader(device_number)
