# ruff: noqa: N815 - the methods have the names of the fields of CUDA's struct.
"""The properties of a device: CUDA's ``cudaDeviceProp``, also on HIP."""

from __future__ import annotations

import hamr._native as _native

from .._base.size import int_of
from .pointers import OpaquePointer
from .runtime import runtime
from .status import INVALID_DEVICE, call, cudaError_t, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: What is accepted for a device.
A_NUMBER = "an int, the number of a device"


def _number(name: str, meaning: str) -> Callable[[cudaDeviceProp], int]:
    def read(self: cudaDeviceProp) -> int:
        return self._numbers.get(name, 0)

    read.__doc__ = meaning
    return read


def _sides(
    names: tuple[str, str, str], meaning: str
) -> Callable[[cudaDeviceProp], tuple[int, ...]]:
    def read(self: cudaDeviceProp) -> tuple[int, ...]:
        return tuple(self._numbers.get(name, 0) for name in names)

    read.__doc__ = meaning
    return read


class cudaDeviceProp:  # noqa: N801
    """The properties of a device, read once: ``cudaDeviceProp(0).name()``.

    Each is a method with the name of the field of CUDA's struct. If there is no such device,
    ``last_status()`` says so, texts are empty and numbers 0. Properties that a runtime does not
    know are empty or 0, too.
    """

    __slots__ = ("_device", "_facts", "_numbers", "_status")

    def __init__(self, i: int) -> None:
        self._device = int_of("i", i, A_NUMBER)
        self._facts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        if not 0 <= self._device < 2**31:
            self._status = failed(INVALID_DEVICE)
            return
        backend = runtime()
        with call() as asked:
            try:
                facts = _native.describe(backend, self._device, True)
            except ValueError:  # there are fewer devices
                self._status = failed(INVALID_DEVICE)
                return
            self._numbers = dict(_native.device_properties(backend, self._device))
            self._facts = facts
        self._status = asked.status

    def last_status(self) -> cudaError_t:
        """The status of reading them: cudaErrorInvalidDevice (101) if there is no such device."""
        return self._status

    def get(self) -> OpaquePointer:
        """A pointer to a struct that begins as CUDA's ``cudaDeviceProp``. It keeps the struct.

        The struct has name, uuid, luid, its mask, and the fields from totalGlobalMem to
        maxGridSize, as CUDA 10 to 13 and HIP 6 have them, and then zeros. ``int()`` is its address.
        """
        from .property_struct import struct_of

        return struct_of(self)

    def name(self) -> str:
        """The vendor's name of it."""
        return self._facts.get("name", "")

    def uuid(self) -> str:
        """The 16 bytes of its unique id, as 32 hexadecimal digits.

        nvidia-smi's text is hamr.device_properties(i)["uuid"].
        """
        digits = self._facts.get("uuid", "").removeprefix("GPU-").replace("-", "")
        if len(digits) == 16:  # HIP's bytes are the text of a number
            digits = digits.encode().hex()
        return digits

    def pciBusID(self) -> int:  # noqa: N802
        """The number of the bus that it is on."""
        return self._on_bus()[1]

    def pciDeviceID(self) -> int:  # noqa: N802
        """Its number on the bus."""
        return self._on_bus()[2]

    def pciDomainID(self) -> int:  # noqa: N802
        """The number of the bus's domain."""
        return self._on_bus()[0]

    def _on_bus(self) -> tuple[int, int, int]:
        text = self._facts.get("pci_bus_id", "")  # domain:bus:device.function
        parts = text.partition(".")[0].split(":")
        if len(parts) != 3:
            return 0, 0, 0
        domain, bus, device = (int(part, 16) for part in parts)
        return domain, bus, device

    def totalGlobalMem(self) -> int:  # noqa: N802
        """Bytes of its memory."""
        return int(self._facts.get("memory", 0))

    major = _number("compute_capability_major", "The compute capability before the point.")
    minor = _number("compute_capability_minor", "The compute capability behind the point.")
    multiProcessorCount = _number("multiprocessor_count", "How many multiprocessors it has.")
    warpSize = _number("warp_size", "Threads that run as one.")
    maxThreadsPerBlock = _number("max_threads_per_block", "Threads of a block, at most.")
    maxThreadsPerMultiProcessor = _number(
        "max_threads_per_multiprocessor", "Threads that a multiprocessor has at a time, at most."
    )
    maxBlocksPerMultiProcessor = _number(
        "max_blocks_per_multiprocessor", "Blocks that a multiprocessor has at a time, at most."
    )
    maxThreadsDim = _sides(
        ("max_block_dim_x", "max_block_dim_y", "max_block_dim_z"),
        "The sides of a block in threads, at most: (x, y, z).",
    )
    maxGridSize = _sides(
        ("max_grid_dim_x", "max_grid_dim_y", "max_grid_dim_z"),
        "The sides of a grid in blocks, at most: (x, y, z).",
    )
    sharedMemPerBlock = _number(
        "max_shared_memory_per_block", "Bytes of shared memory that a block has without asking."
    )
    sharedMemPerBlockOptin = _number(
        "max_shared_memory_per_block_optin", "Bytes of shared memory that a block can ask for."
    )
    sharedMemPerMultiprocessor = _number(
        "max_shared_memory_per_multiprocessor", "Bytes of shared memory of a multiprocessor."
    )
    reservedSharedMemPerBlock = _number(
        "reserved_shared_memory_per_block", "Bytes of shared memory that the driver takes of each."
    )
    regsPerBlock = _number("max_registers_per_block", "Registers of 32 bits that a block can have.")
    regsPerMultiprocessor = _number(
        "max_registers_per_multiprocessor", "Registers of 32 bits of a multiprocessor."
    )
    totalConstMem = _number("total_constant_memory", "Bytes of constant memory.")
    l2CacheSize = _number("l2_cache_size", "Bytes of the second cache.")
    memPitch = _number("max_pitch", "Bytes between rows of a copy, at most.")
    textureAlignment = _number("texture_alignment", "Bytes that textures are aligned to.")
    clockRate = _number("clock_rate", "The fastest that the multiprocessors run, in kHz.")
    memoryClockRate = _number("memory_clock_rate", "The fastest that the memory runs, in kHz.")
    memoryBusWidth = _number("global_memory_bus_width", "Bits that go to memory at once.")
    asyncEngineCount = _number("async_engine_count", "Copies that go on at once beside kernels.")
    computeMode = _number("compute_mode", "0: any processes use it; 2: none; 3: one process.")
    concurrentKernels = _number("concurrent_kernels", "1 if kernels run at the same time.")
    concurrentManagedAccess = _number(
        "concurrent_managed_access", "1 if the host uses managed memory while kernels do."
    )
    cooperativeLaunch = _number("cooperative_launch", "1 if the blocks of a grid can wait for all.")
    canMapHostMemory = _number("can_map_host_memory", "1 if it reaches page-locked memory.")
    ECCEnabled = _number("ecc_enabled", "1 if its memory corrects errors.")
    integrated = _number("integrated", "1 if its memory is the host's.")
    kernelExecTimeoutEnabled = _number("kernel_exec_timeout", "1 if long kernels are ended.")
    managedMemory = _number("managed_memory", "1 if it has managed memory.")
    memoryPoolsSupported = _number("memory_pools_supported", "1 if the runtime keeps pools.")
    pageableMemoryAccess = _number("pageable_memory_access", "1 if it reaches the host's memory.")
    streamPrioritiesSupported = _number(
        "stream_priorities_supported", "1 if streams have priorities."
    )
    unifiedAddressing = _number("unified_addressing", "1 if addresses are the host's, too.")

    def __repr__(self) -> str:
        return f"<cudaDeviceProp of device {self._device}: {self.name() or self._status}>"
