"""NVIDIA's management library: what devices do, without a context on any of them.

The first call loads libnvidia-ml.so.1, or the library that HAMR_NVML_LIBRARY names.

There are two kinds of names. Those of PybindGPU, ``nvmlInit``, ``nvmlShutdown`` and the four
methods of ``nvmlDevice``, never raise for an error of the library. They return an ``nvmlReturn_t``,
or zeros and keep it for ``last_status()``. As in the library itself, ``nvmlInit()`` comes first.
All others initialise the library themselves, and raise: ``hamr.BackendUnavailable`` without the
library, ``hamr.DeviceError`` with its ``name`` and ``code`` if a call fails, for example
NVML_ERROR_NOT_SUPPORTED (3) for a figure that a device does not have.

A forked child starts anew, and must call ``nvmlInit()`` itself. Its parent's objects work there.
"""

from __future__ import annotations

from typing import NamedTuple

import hamr._native as _native

from .._base.errors import BackendUnavailable, DeviceError, Error
from .._base.library import core
from .._base.place import device_and_backend
from .._base.size import int_of
from .pointers import OpaquePointer
from .properties import A_NUMBER
from .runtime import runtime
from .status import StatusCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SUCCESS, _INVALID_ARGUMENT, _LIBRARY_NOT_FOUND, _UNKNOWN = 0, 2, 12, 999


class nvmlReturn_t(StatusCode):  # noqa: N801
    """A status of NVIDIA's management library: ``nvmlReturn_t(0)`` is success.

    ``as_int()`` and ``int()`` give the code, ``name`` what nvml.h calls it. Statuses with the same
    code are equal, and equal to the code.
    """

    __slots__ = ()

    _kind = "an nvmlReturn_t"

    @property
    def name(self) -> str:
        """The name in nvml.h, such as NVML_ERROR_NOT_SUPPORTED."""
        return _said(self)[0]

    def __repr__(self) -> str:
        return f"<NvmlReturn: 'code={self._code}'>"


def _said(status: nvmlReturn_t) -> tuple[str, str]:
    code = status.as_int()
    if not -(2**31) <= code < 2**31:
        raise ValueError(f"the code is {code}: accepted is a number of 32 bits")
    [(name, meaning)] = _native.nvml_status(code)
    return name, meaning


def nvmlErrorString(status: nvmlReturn_t | int) -> str:  # noqa: N802
    """What a status means, in the library's words if it is loaded."""
    return _said(nvmlReturn_t(int(status)))[1]


def _status_of(error: BaseException) -> nvmlReturn_t:
    if isinstance(error, BackendUnavailable):
        return nvmlReturn_t(_LIBRARY_NOT_FOUND)
    if isinstance(error, DeviceError) and error.api == "nvml":
        return nvmlReturn_t(error.code)
    return nvmlReturn_t(_UNKNOWN)


def nvmlInit() -> nvmlReturn_t:  # noqa: N802
    """Load the library, and initialise it until as many calls of ``nvmlShutdown``.

    The status is NVML_ERROR_LIBRARY_NOT_FOUND (12) without the library. If it does not start, it is
    the library's, such as NVML_ERROR_DRIVER_NOT_LOADED (9) or NVML_ERROR_LIB_RM_VERSION_MISMATCH
    (18).
    """
    try:
        core().NVMLInit()
    except Error as error:
        return _status_of(error)
    return nvmlReturn_t(_SUCCESS)


def nvmlShutdown() -> nvmlReturn_t:  # noqa: N802
    """End one ``nvmlInit``; NVML_ERROR_UNINITIALIZED (1) if there is none to end."""
    try:
        core().NVMLShutdown()
    except Error as error:
        return _status_of(error)
    return nvmlReturn_t(_SUCCESS)


class Utilization(NamedTuple):
    """The per cent of the last sample period in which a kernel ran, and memory was accessed."""

    gpu: int
    memory: int


class Memory(NamedTuple):
    """Bytes of a device's memory.

    ``used`` is what processes have, ``reserved`` what driver and firmware have. Libraries before
    510 do not tell them apart: then ``used`` is both and ``reserved`` None.
    """

    free: int
    total: int
    used: int
    reserved: int | None


class Power(NamedTuple):
    """Milliwatts that a device draws, and may draw; None if the limit is not known."""

    usage: int
    limit: int | None


class Clocks(NamedTuple):
    """MHz of a device's clocks."""

    graphics: int
    sm: int
    memory: int


class PCI(NamedTuple):
    """Where a device is on the bus, and the same as a text."""

    domain: int
    bus: int
    device: int
    bus_id: str


class Process(NamedTuple):
    """A process that uses a device: ``kind`` is "compute" or "graphics".

    None stands for what the driver does not say: ``used``, in bytes, in some containers; the
    numbers of instances if the device is not divided by MIG.
    """

    pid: int
    kind: str
    used: int | None
    gpu_instance: int | None
    compute_instance: int | None


class Device:
    """A device, or a MIG instance of one; ``device`` and ``devices`` make it. All methods raise."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        self._key = key

    def _ask(self, what: str) -> Any:
        return _native.nvml_device(False, self._key, what)[0]

    def _fact(self, what: str) -> Any:
        return self._ask(what)[0]

    def name(self) -> str:
        """What the vendor calls it."""
        return str(self._fact("name"))

    def uuid(self) -> str:
        """As nvidia-smi shows it: "GPU-…", of an instance "MIG-…"."""
        return str(self._fact("uuid"))

    def serial(self) -> str:
        """The number on the board; few have one that can be read."""
        return str(self._fact("serial"))

    def index(self) -> int:
        """Its number in nvidia-smi; of an instance, that among its device's."""
        return int(self._fact("index"))

    def pci(self) -> PCI:
        """Where it is on the bus."""
        text, domain, bus, number = self._ask("pci")
        return PCI(domain, bus, number, text)

    def utilization(self) -> Utilization:
        """How busy it is, in per cent; an instance does not tell."""
        return Utilization(*self._ask("utilization"))

    def memory(self) -> Memory:
        """How full its memory is, in bytes; of an instance, its part."""
        return Memory(*self._ask("memory"))

    def temperature(self) -> int:
        """Degrees Celsius of the chip."""
        return int(self._fact("temperature"))

    def power(self) -> Power:
        """Milliwatts that it draws, and may draw."""
        usage = int(self._fact("power"))
        try:
            return Power(usage, int(self._fact("power_limit")))
        except DeviceError:
            return Power(usage, None)

    def clocks(self) -> Clocks:
        """MHz at which the clocks run now."""
        return Clocks(*self._ask("clocks"))

    def max_clocks(self) -> Clocks:
        """MHz at which the clocks can run."""
        return Clocks(*self._ask("max_clocks"))

    def processes(self) -> list[Process]:
        """The processes that compute on it, then those that draw."""
        rows = _native.nvml_device(False, self._key, "processes")
        return [
            Process(pid, "graphics" if draws else "compute", *(None if n < 0 else n for n in rest))
            for pid, draws, *rest in rows
        ]

    def persistence_mode(self) -> bool:
        """Whether the driver stays loaded while nobody uses the device."""
        return bool(self._fact("persistence"))

    def ecc_mode(self) -> tuple[bool, bool]:
        """Whether its memory corrects errors, and will after a reset."""
        now, later = self._ask("ecc")
        return now, later

    def mig_mode(self) -> tuple[bool, bool]:
        """Whether it is divided into MIG instances, and will be after a reset."""
        now, later = self._ask("mig")
        return now, later

    def is_mig_instance(self) -> bool:
        """Whether it is an instance, and no whole device."""
        return bool(self._fact("is_instance"))

    def mig_instances(self) -> list[Device]:
        """Its instances; none where it is not divided."""
        return [Device(f"uuid:{uuid}") for uuid in self._ask("instances")]

    def whole_device(self) -> Device:
        """The device that an instance is a part of."""
        return Device(f"uuid:{self._fact('whole')}")

    def instance_ids(self) -> tuple[int, int]:
        """An instance's numbers: of its GPU instance, and of its compute instance."""
        gpu, compute = self._ask("instance_ids")
        return gpu, compute

    def __repr__(self) -> str:
        return f"<hamr.pygpu.nvml.{type(self).__name__} {self._key}>"


class nvmlDevice(Device):  # noqa: N801
    """A device by its number in nvidia-smi, which is not CUDA's: see ``device`` for that.

    ``get``, ``utilization_rates`` and ``memory_info`` give statuses as PybindGPU's do, by
    ``last_status()``, and zeros after an error. The other methods raise.
    """

    __slots__ = ("_status",)

    def __init__(self, i: int) -> None:
        number = int_of("i", i, A_NUMBER)
        super().__init__(f"index:{number}")
        self._status = nvmlReturn_t(_SUCCESS)
        if 0 <= number < 2**31:
            self._counted("handle")
        else:
            self._status = nvmlReturn_t(_INVALID_ARGUMENT)

    def _counted(self, what: str) -> Any:
        """The library's answer, between nvmlInit and nvmlShutdown; None after an error."""
        try:
            [values] = _native.nvml_device(True, self._key, what)
        except (Error, ValueError) as error:
            self._status = _status_of(error)
            return None
        self._status = nvmlReturn_t(_SUCCESS)
        return values

    def get(self) -> OpaquePointer:
        """The library's handle, an nvmlDevice_t: ``int()`` is its value, 0 after an error."""
        return OpaquePointer((self._counted("handle") or (0,))[0])

    def utilization_rates(self) -> tuple[int, int]:
        """The per cent in which a kernel ran, and memory was in use."""
        gpu, memory = self._counted("utilization") or (0, 0)
        return gpu, memory

    def memory_info(self) -> tuple[int, int, int]:
        """Bytes: free, total, used. What driver and firmware have is used."""
        free, total, _, _ = self._counted("memory") or (0, 0, 0, 0)
        return free, total, total - free

    def last_status(self) -> nvmlReturn_t:
        """The status of this object's last call."""
        return self._status


def device(
    device: Any = None,
    *,
    index: int | None = None,
    uuid: str | None = None,
    pci_bus_id: str | None = None,
) -> Device:
    """A device as hamr numbers it, by default the current one: the same card, by its UUID.

    hamr's numbers are CUDA's, which follow CUDA_VISIBLE_DEVICES. ``index`` is the number in
    nvidia-smi. A ``uuid`` is "GPU-…" or, for a MIG instance, "MIG-…"; a ``pci_bus_id`` is
    "0000:3b:00.0". DeviceError if there is no such device; NVML_ERROR_NOT_FOUND for an AMD device.
    """
    named = [each is not None for each in (device, index, uuid, pci_bus_id)]
    if sum(named) > 1:
        raise TypeError("accepted is one of device, index, uuid and pci_bus_id")
    if uuid is not None or pci_bus_id is not None:
        kind, text = ("uuid", uuid) if uuid is not None else ("bus", pci_bus_id)
        if not isinstance(text, str):
            raise TypeError(f"{kind} is {text!r}: accepted is a str")
        if "\0" in text:
            raise ValueError(f"{kind} is {text!r}: accepted is a text without zeros")
        key = f"{kind}:{text}"
    elif index is not None:
        key = f"index:{int_of('index', index, A_NUMBER)}"
    else:
        number, backend = device_and_backend(device)
        if not isinstance(device, str):  # a number, or a library's object
            backend = runtime()
        key = f"{backend}:{number}"
    return Device(f"uuid:{Device(key).uuid()}")


def devices() -> list[Device]:
    """All devices of this machine, in the order of nvidia-smi. They have the MIG instances."""
    return [Device(f"uuid:{Device(f'index:{i}').uuid()}") for i in range(_system("count"))]


def _system(what: str) -> Any:
    return _native.nvml_system(what)[0][0]


def driver_version() -> str:
    """The version of NVIDIA's kernel driver, as "535.129.03"."""
    return str(_system("driver"))


def nvml_version() -> str:
    """The version of the library, as "12.535.129.03"."""
    return str(_system("nvml"))


def cuda_driver_version() -> int:
    """The version of CUDA that the driver supports: 12020 is 12.2."""
    return int(_system("cuda"))


def library() -> str:
    """The library's file."""
    return str(_system("library"))
