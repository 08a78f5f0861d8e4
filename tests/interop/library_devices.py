"""torch, JAX and mpi4py with CUDA memory; what they share with the host is there."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

import hamr
from tests.interop import library_jax, library_mpi4py, library_torch
from tests.interop.interop_matrix import (
    ADDED,
    FROM,
    NO_READ_ONLY,
    NOT_COMPACT,
    SENT,
    TO,
    OnlyCudaInterface,
    OnlyDlpack,
    Way,
    contents,
    not_run,
    refused,
)
from tests.interop.library_cupy import NO_INTERFACE


class DeviceTorch(library_torch.Torch):
    device = "cuda"

    def synchronize(self) -> None:
        self.module.cuda.synchronize()


NO_NAME = refused(
    (TypeError, KeyError),
    "types without a typestr travel by DLPack",
    by="hamr, float8 torch",
    dtypes=ADDED,
)

TORCH = DeviceTorch(
    "torch",
    "torch",
    "torch",
    (
        # torch names no stream in its interface, and has DLPack, which tells it one.
        *(way for way in library_torch.WAYS if way.direction == FROM),
        Way(
            FROM,
            "__cuda_array_interface__",
            "hamr.buffer(of the interface alone)",
            lambda library, x: hamr.buffer(OnlyCudaInterface(x)),
            (*library_torch.NO_LAYOUTS, NO_NAME),
        ),
        Way(
            TO,
            "__dlpack__",
            "torch.from_dlpack(b)",
            lambda library, b: library.module.from_dlpack(OnlyDlpack(b)),
            library_torch.DLPACK_RULES,
        ),
        Way(
            TO,
            "__cuda_array_interface__",
            'torch.as_tensor(of the interface alone, device="cuda")',
            lambda library, b: library.module.as_tensor(OnlyCudaInterface(b), device="cuda"),
            (
                NO_INTERFACE,
                refused(
                    TypeError,
                    "torch has no read-only tensors",
                    by="torch",
                    match="read.only",
                    layouts=("read-only",),
                ),
                not_run(
                    "torch takes negative strides from this interface for others, without a word",
                    layouts=("negative",),
                ),
            ),
        ),
    ),
    allocator="cuda",
)


class DeviceJax(library_jax.Jax):
    platform = "gpu"

    made = None

    def make(self, values: np.ndarray, layout: Any) -> Any:
        x = super().make(values, layout)
        self.made = weakref.ref(x)
        return x

    def strides(self, x: Any) -> tuple[int, ...] | None:
        # Only the host shows JAX's strides; what it makes itself is in C order.
        ours = self.made is not None and self.made() is x
        return np.empty(x.shape, x.dtype).strides if ours else None

    def synchronize(self) -> None:
        (self.module.zeros(1) + 1).block_until_ready()


JAX = DeviceJax(
    "JAX",
    "jax",
    "jax.numpy",
    (
        Way(
            FROM,
            "__dlpack__",
            "hamr.buffer(x)",
            lambda library, x: hamr.buffer(x),
            (library_jax.ONE_ORDER,),
        ),
        Way(
            FROM,
            "__dlpack__",
            "hamr.from_dlpack(x)",
            lambda library, x: hamr.from_dlpack(x),
            (library_jax.ONE_ORDER,),
        ),
        Way(
            FROM,
            "__cuda_array_interface__",
            "hamr.buffer(of the interface alone)",
            lambda library, x: hamr.buffer(OnlyCudaInterface(x)),
            (
                library_jax.ONE_ORDER,
                refused(
                    (AttributeError, TypeError, RuntimeError),
                    "JAX has no interface for types without a typestr",
                    by="JAX",
                    dtypes=ADDED,
                ),
            ),
        ),
        Way(
            TO,
            "__dlpack__",
            "jax.dlpack.from_dlpack(b)",
            lambda library, b: library.dlpack.from_dlpack(OnlyDlpack(b)),
            (library_jax.COMPACT_ONLY, NO_READ_ONLY),
        ),
        Way(
            TO,
            "__cuda_array_interface__",
            "jnp.asarray(of the interface alone)",
            lambda library, b: library.module.asarray(OnlyCudaInterface(b)),
            (
                NO_INTERFACE,
                refused(
                    (RuntimeError, ValueError, NotImplementedError),
                    "JAX takes elements without gaps from this interface",
                    by="JAX",
                    layouts=NOT_COMPACT,
                ),
            ),
            # It does not keep the owner of what it takes by this interface.
            keeps=False,
        ),
    ),
    allocator="cuda",
    immutable=True,
)


def same_memory(library: library_mpi4py.Mpi, offered: Any, b: hamr.Buffer) -> None:
    memory = library.module.buffer(offered)
    assert memory.nbytes == b.nbytes
    assert memory.address == b.ptr or not b.nbytes
    assert memory.readonly is b.readonly


def by_the_host(library: library_mpi4py.Mpi, b: hamr.Buffer, other: np.ndarray) -> None:
    """A message by way of host memory, which every MPI sends."""
    library_mpi4py.send(library, hamr.buffer(b.get_host_accessible()), other)
    if not b.readonly:
        received = hamr.Buffer(b.shape, b.dtype)
        library_mpi4py.receive(library, received, other)
        b[...] = received
        b.synchronize()
        np.testing.assert_array_equal(contents(b), other)


def has_no_float16(library: library_mpi4py.Mpi) -> bool:
    """Whether MPI was built by a compiler without the type: mpi4py then knows no other name."""
    array = np.zeros(1, "float16")
    try:
        library.module.COMM_SELF.Sendrecv(array, 0, 0, array.copy(), 0, 0)
    except library.module.Exception:
        return True
    return False


NO_FLOAT16 = refused(
    RuntimeError,
    "this MPI has no float16",
    by="MPI",
    match="MPI_ERR_TYPE",
    dtypes=("float16",),
    when=has_no_float16,
)


class DeviceMpi(library_mpi4py.Mpi):
    def load(self) -> None:
        super().load()
        found = hamr.backends()["cuda"]
        if not found["available"]:
            raise RuntimeError(found["reason"])


MPI = DeviceMpi(
    "mpi4py",
    "mpi4py",
    "mpi4py.MPI",
    (
        Way(
            TO,
            "__dlpack__",
            "MPI.buffer(b)",
            lambda library, b: None,
            (library_mpi4py.CONTIGUOUS, library_mpi4py.EMPTY_BY_DLPACK),
            check=lambda library, b, other: same_memory(library, b, b),
        ),
        Way(
            TO,
            "__dlpack__",
            "MPI.buffer(of DLPack alone)",
            lambda library, b: None,
            (library_mpi4py.CONTIGUOUS, library_mpi4py.EMPTY_BY_DLPACK),
            check=lambda library, b, other: same_memory(library, OnlyDlpack(b), b),
        ),
        Way(
            TO,
            "__cuda_array_interface__",
            "MPI.buffer(of the interface alone)",
            lambda library, b: None,
            (NO_INTERFACE, library_mpi4py.CONTIGUOUS),
            check=lambda library, b, other: same_memory(library, OnlyCudaInterface(b), b),
        ),
        Way(
            TO,
            "buffer",
            "comm.Send, comm.Recv(b.get_host_accessible())",
            lambda library, b: None,
            (library_mpi4py.EMPTY_ADDED, NO_FLOAT16),
            check=by_the_host,
            done=SENT,
        ),
    ),
    allocator="cuda",
)
