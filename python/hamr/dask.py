"""For Dask: the size of buffers, and device memory for transports that accept it.

Host memory needs nothing of this: ``distributed`` pickles with protocol 5, so that
buffers are sent and received without a copy.
"""

from __future__ import annotations

import hamr._native as _native

from ._base.allocator import is_of_a_device
from ._base.element import name_of
from ._buffer.buffers import Buffer, buffer
from ._buffer.handle import Handle
from ._buffer.pickling import once, raw, repeated, shaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def register_sizeof(sizeof: Any) -> None:
    """Tell ``dask.sizeof`` how much memory buffers and handles have: Dask's entry point."""
    sizeof.register((Buffer, Handle), memory_of)


def memory_of(array: _native.Array) -> int:
    """Bytes of different elements: axes that repeat the same ones do not count."""
    if array._closed:
        return 0
    count = 1
    for length, stride in zip(array.shape, array.strides, strict=True):
        count *= length if stride or not length else 1
    return count * array.itemsize


def register_cuda() -> None:
    """Let ``distributed`` send CUDA memory in place, if its transport can (UCX).

    Both sides must call it: the client by itself, workers by
    ``dask worker --preload hamr.dask``. Other transports, and programs without this call, send
    device memory through the host.
    """
    from importlib import import_module

    families = import_module("distributed.protocol.cuda")
    families.cuda_serialize.register(Buffer, to_frames)
    families.cuda_deserialize.register(Buffer, from_frames)


def dask_setup(server: Any) -> None:
    """What Dask calls in a process that preloads this module."""
    del server
    register_cuda()


def to_frames(source: Buffer) -> tuple[dict[str, Any], list[Buffer]]:
    """A header for msgpack, and a frame: the bytes of the elements, in place on the device.

    They are ready: the receiver of the frame need not wait for a stream. NotImplementedError
    for memory that is not a CUDA device's, and for a subclass, which has more than elements.
    Dask then uses pickle.
    """
    if type(source) is not Buffer:
        raise NotImplementedError(f"{type(source).__name__}, a subclass of Buffer, is pickled")
    if not is_of_a_device(source._allocator):
        raise NotImplementedError(f"{source.allocator.name} memory is pickled")
    source = source[...]
    shape = source.shape
    single = once(Buffer, source)
    source = source if single is None else single
    if not (source.is_contiguous or source.is_fortran_contiguous):
        source = source.copy()
    source.synchronize()
    header = {
        "shape": source.shape,
        "dtype": name_of(source._element),
        "fortran": not source.is_contiguous,
        "repeated": shape,
    }
    return header, [raw(Buffer, source, source._allocator, source.device)]


def from_frames(header: dict[str, Any], frames: list[Any]) -> Buffer:
    """The buffer of received bytes. It shares the frame's memory, wherever that is."""
    (frame,) = frames
    given = buffer(frame)
    shape = tuple(header["shape"])
    made = shaped(Buffer, given, shape, header["dtype"], header["fortran"], given._allocator)
    repeats = tuple(header["repeated"])
    return made if repeats == shape else repeated(Buffer, made, repeats)
