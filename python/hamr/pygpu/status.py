"""The status codes of the runtime API's calls, and the last one of each thread.

Functions and classes with PybindGPU's names do not raise for errors of a device: they return a
``cudaError_t`` or keep one for ``last_status()``. Codes and names are those of CUDA's runtime API
(``driver_types.h``). Since CUDA 10.1 they are the driver's, with few exceptions. HIP's are the
same if both have them.
"""

from __future__ import annotations

from _thread import _local

from .._base.errors import (
    BackendUnavailable,
    DeviceError,
    ForkError,
    FreedBuffer,
    InternalError,
    OutOfMemory,
)
from .._base.size import int_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

#: Code, name and meaning of the runtime API's errors that hamr's calls can cause.
_TABLE: dict[int, tuple[str, str]] = {
    0: ("cudaSuccess", "no error"),
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    3: ("cudaErrorInitializationError", "initialization error"),
    4: ("cudaErrorCudartUnloading", "driver shutting down"),
    17: ("cudaErrorInvalidDevicePointer", "invalid device pointer"),
    35: ("cudaErrorInsufficientDriver", "CUDA driver version is insufficient for the runtime"),
    46: ("cudaErrorDevicesUnavailable", "all devices are busy or unavailable"),
    98: ("cudaErrorInvalidDeviceFunction", "invalid device function"),
    100: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    200: ("cudaErrorInvalidKernelImage", "device kernel image is invalid"),
    201: ("cudaErrorDeviceUninitialized", "invalid device context"),
    205: ("cudaErrorMapBufferObjectFailed", "mapping of buffer object failed"),
    206: ("cudaErrorUnmapBufferObjectFailed", "unmapping of buffer object failed"),
    209: ("cudaErrorNoKernelImageForDevice", "no kernel image for this device"),
    214: ("cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"),
    217: ("cudaErrorPeerAccessUnsupported", "peer access is not supported between these devices"),
    218: ("cudaErrorInvalidPtx", "a PTX JIT compilation failed"),
    220: ("cudaErrorNvlinkUncorrectable", "uncorrectable NVLink error detected"),
    221: ("cudaErrorJitCompilerNotFound", "PTX JIT compiler library not found"),
    222: ("cudaErrorUnsupportedPtxVersion", "the PTX version is not supported"),
    300: ("cudaErrorInvalidSource", "device kernel image is invalid"),
    301: ("cudaErrorFileNotFound", "file not found"),
    302: ("cudaErrorSharedObjectSymbolNotFound", "shared object symbol not found"),
    304: ("cudaErrorOperatingSystem", "OS call failed or operation not supported"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    401: ("cudaErrorIllegalState", "the operation cannot be performed in the present state"),
    500: ("cudaErrorSymbolNotFound", "named symbol not found"),
    600: ("cudaErrorNotReady", "device not ready"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    701: ("cudaErrorLaunchOutOfResources", "too many resources requested for launch"),
    702: ("cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    705: ("cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"),
    709: ("cudaErrorContextIsDestroyed", "context is destroyed"),
    710: ("cudaErrorAssert", "device-side assert triggered"),
    712: ("cudaErrorHostMemoryAlreadyRegistered", "memory is already mapped"),
    713: ("cudaErrorHostMemoryNotRegistered", "memory has not been mapped"),
    716: ("cudaErrorMisalignedAddress", "misaligned address"),
    717: ("cudaErrorInvalidAddressSpace", "operation not supported in this address space"),
    718: ("cudaErrorInvalidPc", "invalid program counter"),
    719: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    720: ("cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"),
    800: ("cudaErrorNotPermitted", "operation not permitted"),
    801: ("cudaErrorNotSupported", "operation not supported"),
    802: ("cudaErrorSystemNotReady", "system not yet initialized"),
    803: ("cudaErrorSystemDriverMismatch", "unsupported display driver and driver combination"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
    901: ("cudaErrorStreamCaptureInvalidated", "operation failed due to an error during capture"),
    906: ("cudaErrorStreamCaptureImplicit", "operation would make the legacy stream depend on one"),
    908: ("cudaErrorStreamCaptureWrongThread", "attempt to end a capture of another thread"),
    999: ("cudaErrorUnknown", "unknown error"),
}

#: Codes of the driver API that have other numbers in the runtime API.
_OF_DRIVER = {
    34: 46,  # CUDA_ERROR_STUB_LIBRARY: nothing to run on
    808: 46,
    708: 3,  # CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
    202: 3,  # CUDA_ERROR_CONTEXT_ALREADY_CURRENT
}

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INITIALIZATION_ERROR = 0, 1, 2, 3
NO_DEVICE, INVALID_DEVICE, INVALID_HANDLE, NOT_READY = 100, 101, 400, 600
UNKNOWN = 999


class StatusCode:
    """The number that a library returns, as an object. Statuses of one kind compare by it."""

    __slots__ = ("_code",)

    _kind = "a status"

    def __init__(self, code: int) -> None:
        self._code = int_of("code", code, f"an int, the code of {self._kind}")

    def as_int(self) -> int:
        """The code."""
        return self._code

    def __int__(self) -> int:
        return self._code

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)):
            return self._code == other._code
        return isinstance(other, int) and self._code == other

    def __hash__(self) -> int:
        return hash(self._code)


class cudaError_t(StatusCode):  # noqa: N801
    """A status of CUDA's runtime API, or of HIP's: ``cudaError_t(0)`` is success.

    ``as_int()`` and ``int()`` give the code, ``name`` the API's name. Statuses with the same code
    are equal, and equal to the code. Calling a status returns it, so that both ``a.last_status``
    and ``a.last_status()`` are the status. As an object it is always true, also for success:
    compare the code with 0.
    """

    __slots__ = ()

    _kind = "a cudaError_t"

    @property
    def name(self) -> str:
        """What the runtime API calls it, as ``cudaErrorInvalidValue``."""
        return _TABLE[self._code][0] if self._code in _TABLE else "unrecognized error code"

    @property
    def value(self) -> int:
        """The code."""
        return self._code

    def __call__(self) -> Self:
        """The status itself: ``last_status`` is an attribute here and a method there."""
        return self

    def __repr__(self) -> str:
        return f"<CudaError: 'code={self._code}'>"


_NONE = cudaError_t(SUCCESS)


class _Last(_local):
    """The calling thread's last error, as the runtime keeps it."""

    status = _NONE


_last = _Last()


def code_of(error: BaseException) -> int:
    """The code that the runtime API has for one of hamr's exceptions; 999 if it has none."""
    if isinstance(error, OutOfMemory):
        return OUT_OF_MEMORY
    if isinstance(error, BackendUnavailable):
        return NO_DEVICE
    if isinstance(error, DeviceError):
        return _OF_DRIVER.get(error.code, error.code) if error.code > 0 else UNKNOWN
    if isinstance(error, ForkError):
        return INITIALIZATION_ERROR
    if isinstance(error, InternalError):
        return UNKNOWN
    if isinstance(error, (FreedBuffer, ValueError)):
        return INVALID_VALUE
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    return UNKNOWN


def failed(code: int) -> cudaError_t:
    """A status that is the calling thread's last error from now on."""
    status = cudaError_t(code)
    if code != SUCCESS:
        _last.status = status
    return status


class call:  # noqa: N801
    """A call of the runtime: ``with call() as c: …``, and then ``c.status``.

    An error of a device ends the block and becomes the status, which is also the calling thread's
    last error. An error of the caller stays an exception.
    """

    __slots__ = ("error", "status")

    def __init__(self) -> None:
        self.status = _NONE
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, _OF_DEVICES):
            return False
        self.error, self.status = error, failed(code_of(error))
        return True


#: The exceptions that become statuses.
_OF_DEVICES = (OutOfMemory, BackendUnavailable, DeviceError, ForkError, InternalError)


def cudaGetLastError() -> cudaError_t:  # noqa: N802
    """The calling thread's last status that was no success. It is then forgotten."""
    status = _last.status
    _last.status = _NONE
    return status


def cudaPeekAtLastError() -> cudaError_t:  # noqa: N802
    """The calling thread's last status that was no success. It is kept."""
    return _last.status


def cudaGetErrorName(error: cudaError_t | int) -> str:  # noqa: N802
    """The runtime API's name of a status, such as "cudaErrorInvalidValue"."""
    return cudaError_t(error if isinstance(error, int) else error.as_int()).name


def cudaGetErrorString(error: cudaError_t | int) -> str:  # noqa: N802
    """What a status means, in words."""
    code = int(error)
    return _TABLE[code][1] if code in _TABLE else "unrecognized error code"
