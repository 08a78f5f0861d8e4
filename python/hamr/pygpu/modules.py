"""Kernels that users bring: a ``Module`` is code for devices, a ``Function`` of it is called."""

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
    """A kernel of a Module's: ``f(arguments, grid=, block=, stream=None, shared=0)`` launches it.

    ``grid`` and ``block`` are blocks and threads of each: an int, or up to three along x, y and z.
    ``stream`` is a hamr.Stream or whatever one is made of, by default that of the innermost ``with
    stream:`` block, else the default one. ``shared`` are bytes of shared memory of each block,
    besides those that the kernel names, up to what the device has for one block.

    Arguments are arrays of the device: hamr's buffers and handles, GPUArray, DeviceArray_<dtype>
    and whatever has ``__cuda_array_interface__`` or DLPack; and values: bool, NumPy's scalars and
    records, ctypes values, and int and float where it is known how large the parameter is: PTX
    says so, and of binaries the driver (CUDA 12.4 and later). Then number and sizes of the
    arguments are compared with the parameters; else they are believed.

    PTX says, too, whether a parameter is an integer or a float: an int is converted for a float,
    and OverflowError where that would change it; a float for an integer is TypeError, as is an
    array for a float. Of a binary nobody says it: there an int for 4 or 8 bytes is an integer, and
    a float a float, so that floats are to be written as 2.0.

    A kernel runs after all work on its arguments that hamr knows of, on any stream, and after the
    stream that another library's interface names; whoever uses or frees hamr's buffers later comes
    after the kernel. Other libraries' arrays have to be kept until it is over, and used on its
    stream or after it, as with their own kernels. The call does not wait for the kernel, save for
    what ``Out`` and ``InOut`` bring back.

    Every buffer may be written to, unless it is given as ``In(buffer)``: read-only ones are
    refused else, with ValueError, as is memory that the device does not use in place. Of the wrong
    type or size is TypeError, an int beyond the parameter OverflowError, more threads or shared
    memory than the kernel can have ValueError; what a device says DeviceError. Errors while the
    kernel runs come with a later call that waits.

    The kernel runs on its stream's device, else where the first of its arrays is, else on the
    current one; the module is loaded there at the first launch, which may take seconds.
    """

    __slots__ = ("_parameters",)

    _parameters: tuple[tuple[str, str, int], ...] | None

    def __init__(self, code: Any, name: str, parameters: Any = None) -> None:
        self._parameters = parameters

    def attributes(self, device: Any = None) -> dict[str, Any]:
        """What is known of the kernel on a device, by default the current one, as a dict.

        ``parameters`` are their bytes, or None where the driver does not say; ``types`` are what
        PTX calls their types, as "u32", "f32" and "b8[16]", or None of a binary; ``threads`` how
        many a block may have, ``registers`` how many each has, ``local`` the bytes of its own
        memory; ``shared`` the bytes of shared memory that the kernel names, ``most_shared`` those
        that a launch may ask for besides; ``constant`` bytes of constant memory; ``most_block`` and
        ``most_grid`` are threads and blocks along x, y and z.
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
    """Code with kernels: ``Module(code)``, of which ``function(name)`` is one.

    ``code`` is PTX, as str or bytes, a cubin or a fatbin, as bytes, or the path of a file of these;
    with HIP a code object. A str is a path unless it has several lines. The code is loaded into
    each device that a kernel is used on, when it first is: then what the driver's compiler has
    against it is in a DeviceError. A module is unloaded when nobody has it or its functions any
    more and what they have launched is over; not if a launch went into a graph.

    BackendUnavailable where there is no device; ForkError in a child whose parent made the module.
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
        """What the compiler has said, of a module of ``compile``'s."""
        return self._log

    def function(self, name: str) -> Function:
        """The kernel of that name.

        Whether the module has it is seen at its first use, or by ``attributes()``: ValueError if
        not.
        C++ gives functions longer names, unless they are ``extern "C"``.
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
    """What to call a module, and its code."""
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
    """A module of what a compiler has made, perhaps with the PTX that was on the way."""
    module = Module(image)
    module._name, module._log = repr(name), log
    if text:
        module._parameters = parameters_of(text)
    return module


Function.__module__ = Module.__module__ = "hamr.pygpu"  # where users find them
