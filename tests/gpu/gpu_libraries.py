"""The array libraries, seen alike: make, read, write, share, wait."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.support.torch_limits import ends_at_negative_strides

NAMES = ("cupy", "torch", "numba", "jax")
DLPACK = ("cupy", "torch", "jax")

ALL = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class Library:
    """How one library does what the tests do with each."""

    name: str
    dtypes: tuple[str, ...] = ALL
    layouts: tuple[str, ...] = ("c", "fortran", "strided", "negative")  # that it can make
    reads: tuple[str, ...] = layouts  # that it takes without a copy
    #: What hamr.buffer() knows its arrays by.
    source = "__cuda_array_interface__"
    writable = True
    takes_read_only = True
    keeps_owner = True
    # The CUDA array interface has no word for "the memory's device" where there is no memory.
    takes_empty = True

    def make(self, values: np.ndarray, layout: str = "c") -> Any:
        """An array on the current device with these values."""
        raise NotImplementedError

    def consume(self, obj: Any) -> Any:
        """An array that shares what obj offers."""
        raise NotImplementedError

    #: What of hamr's it surely takes by DLPack without a copy; what else it may refuse.
    dlpack_reads: tuple[str, ...] = ()
    dlpack_takes_empty = True

    @functools.cached_property
    def takes_read_only_dlpack(self) -> bool:
        """Whether it asks for DLPack of version 1, which can say read-only."""
        x = self.make(np.zeros(1, "f4"))
        self.synchronize()
        seen = []

        class Watched:
            def __dlpack_device__(self) -> Any:
                return x.__dlpack_device__()

            def __dlpack__(self, **asked: Any) -> Any:
                seen.append(asked.get("max_version"))
                return x.__dlpack__(**asked)

        self.from_dlpack(Watched())
        return seen[0] is not None

    def survives(self, layout: str) -> bool:
        """Whether the process does, when it is given that by DLPack."""
        return True

    def from_dlpack(self, obj: Any) -> Any:
        """An array that shares what obj exports, for use on the current stream."""
        raise NotImplementedError

    def extended(self, name: str) -> Any:
        """An array of six elements of a type that NumPy does not have: 1, 2, ... 6."""
        raise NotImplementedError

    def bits(self, x: Any) -> np.ndarray:
        """The elements of a contiguous array as bytes."""
        raise NotImplementedError

    def values(self, x: Any) -> np.ndarray:
        raise NotImplementedError

    def set(self, x: Any, value: Any) -> None:
        """Write a value to every element."""
        raise NotImplementedError

    def synchronize(self) -> None:
        raise NotImplementedError

    def pointer(self, x: Any) -> int:
        return x.__cuda_array_interface__["data"][0]


class Cupy(Library):
    name = "cupy"

    def __init__(self) -> None:
        import cupy

        self.module = cupy
        cupy.zeros(1)  # raises without a device
        self.dlpack_reads = self.layouts

    def make(self, values: np.ndarray, layout: str = "c") -> Any:
        cp = self.module
        if layout in ("c", "fortran") or not values.ndim:
            return cp.array(values, order="F" if layout == "fortran" else "C")
        step = 2 if layout == "strided" else -1
        room = cp.zeros([n * abs(step) for n in values.shape], values.dtype)
        view = room[tuple(slice(None, None, step) for _ in values.shape)]
        view[...] = cp.asarray(values)
        return view

    def consume(self, obj: Any) -> Any:
        return self.module.asarray(obj)

    def from_dlpack(self, obj: Any) -> Any:
        return self.module.from_dlpack(obj)

    def values(self, x: Any) -> np.ndarray:
        return self.module.asnumpy(x)

    def set(self, x: Any, value: Any) -> None:
        x[...] = value
        self.synchronize()

    def synchronize(self) -> None:
        self.module.cuda.runtime.deviceSynchronize()


class Torch(Library):
    name = "torch"
    source = "__dlpack__"
    # torch has the wider unsigned integers for storage only.
    dtypes = tuple(name for name in ALL if name not in ("uint16", "uint32", "uint64"))
    layouts = ("c", "fortran", "strided")
    # It has no negative strides, and puts others in their place without a word.
    reads = layouts
    dlpack_reads = layouts
    takes_read_only = False

    def __init__(self) -> None:
        import torch

        self.module = torch
        torch.zeros(1, device="cuda")

    def make(self, values: np.ndarray, layout: str = "c") -> Any:
        torch = self.module
        if not values.flags.c_contiguous:
            values = values.copy()
        x = torch.tensor(values, device="cuda")
        if layout == "c" or not values.ndim:
            return x
        backwards = tuple(range(x.ndim))[::-1]
        if layout == "fortran":
            return x.permute(backwards).contiguous().permute(backwards)
        room = torch.zeros([2 * n for n in values.shape], dtype=x.dtype, device="cuda")
        view = room[tuple(slice(None, None, 2) for _ in values.shape)]
        view.copy_(x)
        return view

    def consume(self, obj: Any) -> Any:
        return self.module.as_tensor(obj, device="cuda")

    def from_dlpack(self, obj: Any) -> Any:
        return self.module.from_dlpack(obj)

    def survives(self, layout: str) -> bool:
        return layout != "negative" or not ends_at_negative_strides()

    def extended(self, name: str) -> Any:
        torch = self.module
        return torch.arange(1.0, 7.0, device="cuda").to(getattr(torch, name))

    def bits(self, x: Any) -> np.ndarray:
        return x.view(self.module.uint8).cpu().numpy()

    def values(self, x: Any) -> np.ndarray:
        return x.cpu().numpy()

    def set(self, x: Any, value: Any) -> None:
        x.fill_(value)
        self.synchronize()

    def synchronize(self) -> None:
        self.module.cuda.synchronize()

    def pointer(self, x: Any) -> int:
        return x.data_ptr()


class Numba(Library):
    name = "numba"
    layouts = ("c", "fortran", "strided")

    def __init__(self) -> None:
        from numba import cuda

        self.module = cuda
        cuda.to_device(np.zeros(1, "f4"))

    def make(self, values: np.ndarray, layout: str = "c") -> Any:
        cuda = self.module
        if layout == "strided" and values.ndim:
            room = np.zeros([2 * n for n in values.shape], values.dtype)
            room[tuple(slice(None, None, 2) for _ in values.shape)] = values
            whole = cuda.to_device(room)
            strides = tuple(2 * s for s in whole.strides)
            return cuda.as_cuda_array(_Described(whole, shape=values.shape, strides=strides))
        return cuda.to_device(np.array(values, order="F" if layout == "fortran" else "C"))

    def consume(self, obj: Any) -> Any:
        return self.module.as_cuda_array(obj)

    def values(self, x: Any) -> np.ndarray:
        if all(s >= 0 for s in x.strides):
            return x.copy_to_host()
        values = np.empty(x.shape, x.dtype)  # negative strides it does not copy
        for position, cell in self._cells(x):
            values[position] = cell.copy_to_host()[0]
        return values

    def set(self, x: Any, value: Any) -> None:
        # One element at a time: a kernel would be compiled for each type and layout.
        one = self.module.to_device(np.array([value], x.dtype))
        for _, cell in self._cells(x):
            cell.copy_to_device(one)
        self.synchronize()

    def _cells(self, x: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Each element's position, and an array of it alone."""
        start = self.pointer(x)
        for position in np.ndindex(x.shape):
            offset = sum(i * s for i, s in zip(position, x.strides, strict=True))
            cell = _Described(x, shape=(1,), strides=None, data=(start + offset, False))
            yield position, self.module.as_cuda_array(cell)

    def synchronize(self) -> None:
        self.module.synchronize()


class Jax(Library):
    name = "jax"
    source = "__dlpack__"
    layouts = ("c",)
    reads = ("c",)
    dlpack_reads = ("c",)
    dlpack_takes_empty = False
    writable = False
    takes_empty = False  # it asks the driver whose address 0 is
    keeps_owner = False

    def __init__(self) -> None:
        import jax

        self.kept: collections.deque[Any] = collections.deque(maxlen=4)

        if jax.default_backend() != "gpu":
            raise RuntimeError(f"JAX runs on {jax.default_backend()}")
        jax.config.update("jax_enable_x64", True)
        import jax.numpy

        self.module = jax.numpy
        if not hasattr(self.make(np.zeros(2, "f4")), "__cuda_array_interface__"):
            raise RuntimeError("this JAX's arrays have no __cuda_array_interface__")

    def make(self, values: np.ndarray, layout: str = "c") -> Any:
        return self.module.array(values).block_until_ready()

    def consume(self, obj: Any) -> Any:
        self.kept.append(obj)  # JAX itself keeps no reference to whose memory it shares
        return self.module.asarray(obj)

    def from_dlpack(self, obj: Any) -> Any:
        return self.module.from_dlpack(obj)

    def extended(self, name: str) -> Any:
        jnp = self.module
        return jnp.arange(1.0, 7.0).astype(getattr(jnp, name)).block_until_ready()

    def bits(self, x: Any) -> np.ndarray:
        return np.array(self.module.array(x, copy=True)).view("u1")

    def values(self, x: Any) -> np.ndarray:
        # A copy: NumPy's view of a JAX array is kept, and later changes would not show.
        return np.array(self.module.array(x, copy=True))

    def synchronize(self) -> None:
        (self.module.zeros(1) + 1).block_until_ready()

    def pointer(self, x: Any) -> int:
        return x.unsafe_buffer_pointer()


class _Described:
    """Part of an array, by entries of its own."""

    def __init__(self, owner: Any, **entries: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {**owner.__cuda_array_interface__, **entries}


_KINDS = {"cupy": Cupy, "torch": Torch, "numba": Numba, "jax": Jax}
_found: dict[str, tuple[Library | None, str]] = {}


def get(name: str) -> tuple[Library | None, str]:
    """A library, or None and why it cannot be used."""
    if name not in _found:
        try:
            _found[name] = _KINDS[name](), ""
        except Exception as error:
            _found[name] = None, f"{name} cannot be used: {type(error).__name__}: {error}"[:300]
    return _found[name]


@functools.cache
def numba_cannot_compile() -> str:
    """Why Numba compiles no kernel here, not even an empty one; "" if it does."""
    from numba import cuda

    @cuda.jit
    def nothing():
        pass

    try:
        nothing[1, 1]()
        cuda.synchronize()
    except Exception as error:
        return f"Numba compiles no kernels here: {type(error).__name__}: {error}"[:200]
    return ""


def sample(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a type, no two alike as far as it has them."""
    count = int(np.prod(shape))
    plain = np.arange(1, count + 1)
    if dtype == "bool":
        plain = plain % 3 == 0
    elif dtype.startswith("complex"):
        plain = plain - 0.5j * plain
    elif dtype.startswith("uint"):
        plain = plain % 251
    else:
        plain = plain % 127 - 63
    return plain.astype(dtype).reshape(shape)
