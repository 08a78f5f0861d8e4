"""Upstream HAMR's spellings of Buffer's methods, including misspelt ones."""

from __future__ import annotations

import hamr._native as _native

from .._base.allocator import Allocator, Transfer, allocator_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._base.allocator import TransferName
    from .._base.place import Device
    from .._base.stream import Stream
    from .handle import Handle

    _Base = _native.Array
else:
    _Base = object


class UpstreamSpelling(_Base):
    """Methods under the names that upstream HAMR gives them."""

    __slots__ = ()

    if TYPE_CHECKING:  # what Buffer has

        @property
        def stream(self) -> Stream: ...
        def accessible(self, space: str) -> bool: ...
        def set_transfer(self, transfer: Transfer | int | TransferName) -> None: ...
        def get_host_accessible(self) -> Handle: ...
        def get_cuda_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_hip_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_openmp_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_opencl_accessible(self, device: Device | None = -1) -> Handle: ...
        def get_sycl_accessible(self, device: Device | None = -1) -> Handle: ...

    def host_accessible(self) -> bool:
        """Whether the host reaches the memory in place."""
        return self.accessible("host")

    def cpu_accessible(self) -> bool:
        """``host_accessible`` in the early guide's words."""
        return self.accessible("host")

    def cuda_accessible(self) -> bool:
        """Whether CUDA code reaches the memory in place."""
        return self.accessible("cuda")

    def hip_accessible(self) -> bool:
        """Whether HIP code reaches the memory in place."""
        return self.accessible("hip")

    def openmp_accessible(self) -> bool:
        """Whether OpenMP target code reaches the memory in place."""
        return self.accessible("openmp")

    def get_cpu_accessible(self) -> Handle:
        """``get_host_accessible`` in the early guide's words."""
        return self.get_host_accessible()

    def get_allocator(self) -> Allocator:
        """Where the memory came from."""
        return allocator_from(self._allocator)

    def get_owner(self) -> int:
        """The device that owns the memory; -1 is the host."""
        return self.device

    def get_stream(self) -> Stream:
        """The stream that movements are enqueued on."""
        return self.stream

    def get_transfer_mode(self) -> Transfer:
        """Which movements are waited for."""
        return Transfer(self._transfer)

    def set_transfer_asynchronous(self) -> None:
        """Wait for no movement."""
        self.set_transfer(Transfer.async_)

    def set_transfer_synchronous_host(self) -> None:
        """Wait for movements from a device to the host."""
        self.set_transfer(Transfer.sync_host)

    def set_transfer_synchronous(self) -> None:
        """Wait for every movement."""
        self.set_transfer(Transfer.sync)

    set_transfer_sycnhronous = set_transfer_synchronous
    set_transfer_sycnhronous_host = set_transfer_synchronous_host

    def data(self) -> int:
        """The address of element zero."""
        return self.ptr

    def pointer(self) -> Handle:
        """A handle that keeps the memory, where it is."""
        from .handle import Handle

        return self._snapshot(Handle)
