"""The Go library: loaded at the first call that needs it, and anew after a fork.

A child that calls into the Go runtime of its parent hangs, since Go's threads do
not survive a fork. So the child forgets the parent's library. At its first call it
loads a second copy from a file of its own, which brings a fresh runtime.

A process has one library. Programs in C and other extensions use it through hamr.h, and may
have loaded it, or the child's copy, before.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock

import hamr._native as _native

from .allocator import ORDINARY
from .errors import KINDS, ForkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._facade import Facade

MODULE_NAME = "_pyhamr"
_SYCL_PACKAGE = "HAMR_SYCL_PACKAGE"
#: Settings that say where an NVIDIA toolkit is.
TOOLKITS = ("CUDA_HOME", "CUDA_PATH")
#: Settings that are not hamr's own.
_OTHERS = (*TOOLKITS, "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")

_lock = RLock()


def library_path() -> str:
    """The file that holds the Go library."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    suffix = os.path.basename(_native.__file__).removeprefix("_native")
    return os.path.join(package, "_gopy", MODULE_NAME + suffix)


def load() -> Facade:
    """The generated module of this process's copy of the library."""
    raw = _native.library()
    if raw is None:
        # A signal handler or finaliser may come here while its own thread loads the library:
        # the copy that is bound first counts.
        with _lock:
            raw = _native.library()
            if raw is None:
                from .address_space import room

                most = room()
                raw = _import_own(_native.begin_load())
                _configure(raw)
                if most is not None:
                    raw.Confine(*most)
                if _verbosity() > 0:
                    raw.SetVerbose(1)
                raw = _native.bind(raw, raw.Table())
    return raw


def core() -> Facade:
    """What gopy exports of this process's copy of the library. Loads it at the first call."""
    return _native.library() or load()


def _import(path: str) -> Facade:
    from importlib.machinery import ExtensionFileLoader, ModuleSpec

    name = "hamr._gopy." + MODULE_NAME
    loader = ExtensionFileLoader(name, path)
    module = loader.create_module(ModuleSpec(name, loader, origin=path))
    loader.exec_module(module)
    return module


def _import_own(inherited: bool) -> Facade:
    """The generated module in this process's library. C may have loaded that before."""
    path = library_path()
    try:
        own = _native.path_in_process(path)
        if own:
            return _import(own)
    except (OSError, ImportError) as error:
        raise _no_copy(error) from error
    return _import_copy() if inherited else _import(path)


def _no_copy(error: Exception) -> ForkError:
    return ForkError(f"hamr cannot load a copy of its library in this forked child: {error}")


def _import_copy() -> Facade:
    """The generated module in a fresh copy of a library that the parent was still loading.

    The loader treats files of the same name, or the same inode, as one library. The process
    number makes the name differ from that of a parent's copy. The descriptor stays open, so that
    the name stays taken.
    """
    descriptor = -1
    try:
        with open(library_path(), "rb") as file:
            image = memoryview(file.read())
        descriptor = os.memfd_create("hamr", os.MFD_CLOEXEC)
        while image:
            image = image[os.write(descriptor, image) :]
        return _import(f"/proc/{os.getpid()}/fd/{descriptor}")
    except (OSError, ImportError) as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise _no_copy(error) from error


def tell_settings(raw: Facade, *names: str) -> None:
    """Tell the library the environment's values: Go does not see what Python sets."""
    for name in names:
        value = os.environ.get(name, "")
        # A value that is not UTF-8 is left out: Go then uses the one that the process started with.
        if not any("\ud800" <= c <= "\udfff" for c in value):
            # An empty value counts as not set, except where it has a meaning.
            empty = "0" if name == "HAMR_TUNING" and name in os.environ else ""
            raw.Configure(name, value or empty)


def _configure(raw: Facade) -> None:
    tell_settings(raw, *(name for name in os.environ if name.startswith("HAMR_")), *_OTHERS)
    if not os.environ.get(_SYCL_PACKAGE):
        raw.Configure(_SYCL_PACKAGE, _folder_of_dpctl())


def _folder_of_dpctl() -> str:
    """The folder of dpctl, which has SYCL's C interface; "" without it. Nothing is imported."""
    for folder in sys.path:
        package = os.path.join(folder, "dpctl")
        if os.path.exists(os.path.join(package, "libDPCTLSyclInterface.so")):
            return package
    return ""


def _verbosity() -> int:
    text = os.environ.get("HAMR_VERBOSE", "0")
    try:
        return int(text or "0")
    except ValueError:
        print(f"hamr: HAMR_VERBOSE is {text!r}: accepted is an integer", file=sys.stderr)
        return 0


def _before_fork() -> None:
    raw = _native.library()
    if raw is not None:
        for allocator in ORDINARY:
            _native.before_fork(allocator, raw.FreeFunction(allocator))


def _after_fork_in_child() -> None:
    global _lock
    _lock = RLock()
    _native.after_fork()


def _relieve(
    device: int, nbytes: int, allocator: str, asked: int, limited: int
) -> tuple[int, str, str]:
    from .out_of_memory import relieve

    return relieve(device, nbytes, allocator, asked, limited)


_native.set_hooks(load, KINDS)
_native.set_relief(_relieve)
os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
