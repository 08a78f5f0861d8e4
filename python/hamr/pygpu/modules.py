"""Kernels that users bring: a ``Module`` is code for devices, a ``Function`` is a kernel of it."""

from __future__ import annotations

import os

import hamr._native as _native

from . import arguments as arguments  # the extension asks it what arguments are
from .ptx import is_ptx, parameters_of
from .runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Function(_native.KernelBase):
    """A kernel of a Module: ``f(arguments, grid=, block=, stream=None, shared=0)`` launches it.

    ``grid`` and ``block`` are the blocks, and the threads of each block: an int, or up to three
    along x, y and z. ``stream`` is a hamr.Stream or anything that becomes one; by default that of
    the innermost ``with stream:`` block, else the default stream. ``shared`` is the bytes of
    dynamic shared memory of each block, up to what the device has for one block.

    Arguments are arrays on the device and values. Arrays are hamr's buffers and handles, GPUArray,
    DeviceArray_<dtype>, and objects with ``__cuda_array_interface__`` or DLPack. Values are bool,
    NumPy's scalars and records, and ctypes values; int and float are accepted if the parameter's
    size is known. PTX gives it, and for binaries the driver (CUDA 12.4 and later). Then the number
    and sizes of the arguments are compared with the parameters; else they are trusted.

    PTX also says whether a parameter is an integer or a float. An int for a float is converted:
    OverflowError if that would change it. A float for an integer is a TypeError, and so is an array
    for a float. A binary does not say it: there an int for 4 or 8 bytes is passed as an integer,
    and a float as a float, so write floats as 2.0.

    A kernel runs after all work on its arguments that hamr knows of, on any stream, and after the
    stream that another library's interface names. Later uses and releases of hamr's buffers come
    after the kernel. Keep other libraries' arrays until the kernel is over, and use them on its
    stream or after it, as with their own kernels. The call does not wait for the kernel, except for
    what ``Out`` and ``InOut`` copy back.

    A kernel may write to every buffer, unless it is given as ``In(buffer)``. Otherwise read-only
    buffers are a ValueError, and so is memory that the device cannot use in place. TypeError for a
    wrong type or size, OverflowError for an int beyond the parameter, ValueError for more threads
    or shared memory than the kernel can have, DeviceError for errors of the device. Errors while
    the kernel runs are raised by a later call that waits.

    The kernel runs on its stream's device, else on the device of its first array, else on the
    current one. The module is loaded there at the first launch, which may take seconds.
    """

    __slots__ = ("_parameters",)

    _parameters: tuple[tuple[str, str, int], ...] | None

    def __init__(self, code: Any, name: str, parameters: Any = None) -> None:
        self._parameters = parameters

    def attributes(self, device: Any = None) -> dict[str, Any]:
        """The facts about the kernel on a device, by default the current one, as a dict.

        ``parameters`` are the parameters' bytes, or None if the driver does not say; ``types``
        their types in PTX's words, such as "u32", "f32" and "b8[16]", or None for a binary;
        ``threads`` the most threads of a block; ``registers`` the registers and ``local`` the bytes
        of local memory of each thread; ``shared`` the bytes of the kernel's static shared memory,
        ``most_shared`` the most dynamic bytes of a launch; ``constant`` the bytes of constant
        memory; ``most_block`` and ``most_grid`` the most threads and blocks along x, y and z.
        """
        facts = self._code.facts(self.name, arguments.device_for(device, runtime()))
        said = self._parameters
        facts["types"] = None if said is None else tuple(name for name, _, _ in said)
        return facts

    def __repr__(self) -> str:
        return f"<hamr.pygpu.Function {self.name}>"

    def __reduce__(self) -> Any:
        raise TypeError("a hamr.pygpu.Function cannot be pickled: make its Module where it is read")


class Module:
    """Code with kernels: ``Module(code).function(name)`` is a kernel.

    ``code`` is PTX, as str or bytes, a cubin or a fatbin, as bytes, or the path of a file of these;
    with HIP a code object. A str is a path unless it has several lines. The code is loaded into a
    device when a kernel is first used there. Errors of the driver's compiler are then in a
    DeviceError. A module is unloaded when nobody has it or its functions any more and all launches
    are over. It is never unloaded if a launch went into a graph.

    BackendUnavailable without a device; ForkError in a child whose parent made the module.
    """

    __slots__ = ("__weakref__", "_code", "_functions", "_log", "_name", "_parameters")

    def __init__(self, code: Any) -> None:
        self._name, image = _read(code)
        self._log = ""
        self._code = _native.KernelCode(runtime(), image)
        self._functions: dict[str, Function] = {}
        text = runtime() == "cuda" and is_ptx(image)
        self._parameters = parameters_of(image) if text else {}

    @property
    def log(self) -> str:
        """The compiler's output, for a module of ``compile``."""
        return self._log

    def function(self, name: str) -> Function:
        """The kernel of that name.

        If the module does not have it, its first use, or ``attributes()``, is a ValueError. C++
        gives functions longer names, unless they are ``extern "C"``.
        """
        if not isinstance(name, str):
            raise TypeError(f"name is {name!r}: accepted is a str")
        if not name or "\0" in name:
            raise ValueError(f"name is {name!r}: accepted is the name of a kernel")
        found = self._functions.get(name)
        if found is None:
            made = Function(self._code, name, self._parameters.get(name))
            found = self._functions.setdefault(name, made)
        return found

    def __repr__(self) -> str:
        return f"<hamr.pygpu.Module of {self._name}>"

    def __reduce__(self) -> Any:
        raise TypeError("a hamr.pygpu.Module cannot be pickled: make it where the pickle is read")


def _read(code: Any) -> tuple[str, bytes]:
    """A name for a module, and its code."""
    if isinstance(code, str) and "\n" in code:
        return f"{len(code)} characters", code.encode()
    if isinstance(code, (str, os.PathLike)):
        path = os.fspath(code)
        with open(path, "rb") as file:
            return repr(path), file.read()
    if isinstance(code, (bytes, bytearray, memoryview)):
        return f"{memoryview(code).nbytes} bytes", bytes(code)
    raise TypeError(f"code is {code!r}: accepted are PTX or a binary, or the path of a file")


def module_of(image: bytes, log: str, name: str, text: bytes) -> Module:
    """A module of a compiler's output, perhaps with the PTX that it was made of."""
    module = Module(image)
    module._name, module._log = repr(name), log
    if text:
        module._parameters = parameters_of(text)
    return module


Function.__module__ = Module.__module__ = "hamr.pygpu"  # where users find them
