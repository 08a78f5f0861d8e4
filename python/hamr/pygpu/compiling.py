"""Kernels as text: ``compile`` makes a Module by the vendor's compiler, NVRTC or hipRTC."""

from __future__ import annotations

import hamr._native as _native

from .._base.errors import DeviceError
from .._base.library import TOOLKITS, core, tell_settings
from .._base.nvidia_packages import libraries_of_packages
from .arguments import device_for
from .modules import Module, module_of
from .runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Options that mean the same as ``arch``.
_ARCHITECTURE = ("--gpu-architecture", "-arch", "--offload-arch")


class CompileError(DeviceError):
    """A program did not compile; ``log`` is the compiler's output."""

    log: str = ""


def compile(  # noqa: A001
    source: str,
    name: str = "kernels.cu",
    options: Iterable[str] = (),
    arch: str | None = None,
    device: Any = None,
) -> Module:
    """Compile CUDA C++ (HIP C++ with HIP) for a device, by default the current one.

    ``name`` is the file's name in the compiler's messages. ``options`` are the compiler's, such as
    ``"--std=c++17"``, ``"-DN=3"``, ``"--use_fast_math"`` or ``"-I/usr/local/cuda/include"``:
    without that NVRTC finds only its own headers. ``arch`` is "sm_90" for code for such devices
    alone, "compute_80" for PTX that later devices accept as well, or with HIP "gfx90a". By default
    it is the device's own or, if the compiler is too old for that, PTX for the newest that it
    knows. Declare kernels ``extern "C" __global__``, so that they keep their names.

    NVRTC is loaded at the first call: the file that HAMR_NVRTC_LIBRARY names, and no other; else
    what the loader finds (libnvrtc.so, .so.13, .so.12, ...), what PyPI's packages nvidia-cuda-nvrtc
    have installed beside Python, and what is below CUDA_HOME and CUDA_PATH. Without any it raises
    BackendUnavailable, which says what was looked for. A program that does not compile raises
    CompileError with the compiler's ``log``; otherwise the log is ``Module.log``.
    """
    if not isinstance(source, str):
        raise TypeError(f"source is {source!r}: accepted is a str")
    given = _options(options)
    if arch is not None and (not isinstance(arch, str) or not arch):
        raise TypeError(f"arch is {arch!r}: accepted are None and a str, as 'sm_90'")
    backend = runtime()
    tell_settings(core(), *TOOLKITS)
    libraries = libraries_of_packages("libnvrtc.so.") if backend == "cuda" else ()
    try:
        image, log, text = _native.compile_kernels(
            backend, source, name, arch or "", given, libraries, device_for(device, backend)
        )
    except DeviceError as error:
        if error.api not in ("nvrtc", "hiprtc"):
            raise
        failed = CompileError(str(error))
        failed.api, failed.name, failed.code = error.api, error.name, error.code
        failed.log = _log_in(str(error))
        raise failed from None
    return module_of(image, log, name, text)


def _options(options: Iterable[str]) -> tuple[str, ...]:
    given = tuple(options)
    if isinstance(options, str) or not all(isinstance(each, str) for each in given):
        raise TypeError(f"options is {options!r}: accepted is a list of str")
    for each in given:
        if each.startswith(_ARCHITECTURE):
            raise ValueError(f"options has {each!r}: accepted is arch=, which says it")
    return given


def _log_in(message: str) -> str:
    """The text after the name and number of a code, in a message of the core."""
    return message.partition("): ")[2]


CompileError.__module__ = compile.__module__ = "hamr.pygpu"  # where users find them
