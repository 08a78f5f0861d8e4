"""What other libraries do on hamr's streams, late: bytes set, in each runtime that has streams."""

import ctypes
import threading
import time

import hamr
from hamr._base.library import core
from tests.cuda import driver

DELAY = 0.002
_threads = []


def stream(space, device, number):
    """A stream of hamr's or, where others' keep no order, of somebody else's."""
    made = hamr.Stream(device=f"{space}:{device}")
    if number == 2 and space == "opencl":
        return _out_of_order(made)
    if number == 2 and space == "sycl":
        import dpctl

        return dpctl.SyclQueue(made.sycl_queue.sycl_context, made.sycl_queue.sycl_device)
    return made


def write(space, device, handle, at, value, size):
    """Sets bytes, some time after all that the stream holds."""
    if not handle and space in ("opencl", "sycl"):
        handle = core().ResolveStream(space, device, 0)
    globals()[f"_{space}"](device, handle, at, value, size)


def ready(space, device, handle):
    """The stream that others use a handle's elements on, after what CUDA's interface names."""
    own = handle._stream
    if space != "cuda" or handle.allocator.name not in (
        "cuda",
        "cuda_async",
        "cuda_uva",
        "cuda_vmm",
    ):
        return own
    named = handle.__cuda_array_interface__["stream"]
    if handle.device != device:
        own = 0  # of another one
    if named not in (None, own or driver.LEGACY):
        with driver.on(device):
            event = driver.get("cuEventCreate", 2)
            driver.do("cuEventRecord", event, named)
            driver.do("cuStreamWaitEvent", own or driver.LEGACY, event, 0)
            driver.do("cuEventDestroy_v2", event)
    return own


def finish():
    for thread in _threads:
        thread.join()


def _cuda(device, handle, at, value, size):
    with driver.on(device):
        driver.do("cuMemsetD8Async", at, value, size, handle or driver.LEGACY)


def _hip(device, handle, at, value, size):
    from tests.hip import runtime

    runtime.do("hipSetDevice", device)
    runtime.fill_late(at, value, size, handle)
    runtime.do("hipSetDevice", 0)


def _sycl(device, handle, at, value, size):
    library = ctypes.CDLL("libDPCTLSyclInterface.so")
    for name in ("DPCTLQueue_SubmitBarrier", "DPCTLQueue_Memset"):
        getattr(library, name).restype = ctypes.c_void_p
    queue = ctypes.c_void_p(handle)
    library.DPCTLQueue_SubmitBarrier(queue)  # events are lost, as this is a test
    assert library.DPCTLQueue_Memset(
        queue, ctypes.c_void_p(at), ctypes.c_uint8(value), ctypes.c_size_t(size)
    )
    library.DPCTLQueue_SubmitBarrier(queue)


def _opencl(device, handle, at, value, size):
    """Behind an event that is set later."""
    cl = _library()
    context = ctypes.c_void_p()
    _do(
        cl.clGetCommandQueueInfo(
            ctypes.c_void_p(handle), 0x1090, ctypes.c_size_t(8), ctypes.byref(context), None
        )
    )
    code = ctypes.c_int()
    gate = ctypes.c_void_p(cl.clCreateUserEvent(context, ctypes.byref(code)))
    _do(code.value)
    queue = ctypes.c_void_p(handle)
    _do(cl.clEnqueueBarrierWithWaitList(queue, 0, None, None))
    _do(cl.clEnqueueBarrierWithWaitList(queue, 1, ctypes.byref(gate), None))
    pattern = ctypes.c_uint8(value)
    usm = _has_usm(device)
    if usm:
        fill = cl.clGetExtensionFunctionAddressForPlatform(
            _platform(queue), b"clEnqueueMemFillINTEL"
        )
        function = ctypes.CFUNCTYPE(
            ctypes.c_int,
            *[ctypes.c_void_p] * 3,
            *[ctypes.c_size_t] * 2,
            ctypes.c_uint,
            *[ctypes.c_void_p] * 2,
        )(fill)
        _do(function(queue, at, ctypes.addressof(pattern), 1, size, 0, None, None))
    else:
        _do(
            cl.clEnqueueSVMMemFill(
                queue,
                ctypes.c_void_p(at),
                ctypes.byref(pattern),
                ctypes.c_size_t(1),
                ctypes.c_size_t(size),
                0,
                None,
                None,
            )
        )
    _do(cl.clEnqueueBarrierWithWaitList(queue, 0, None, None))
    _do(cl.clFlush(queue))

    def later():
        time.sleep(DELAY)
        cl.clSetUserEventStatus(gate, 0)
        cl.clReleaseEvent(gate)

    _threads[:] = [t for t in _threads if t.is_alive()]
    _threads.append(threading.Thread(target=later))
    _threads[-1].start()


def _has_usm(device):
    return hamr.backends()["opencl"]["devices"][device]["shared_memory"] == "usm"


def _library():
    cl = ctypes.CDLL("libOpenCL.so.1")
    cl.clCreateUserEvent.restype = ctypes.c_void_p
    cl.clGetExtensionFunctionAddressForPlatform.restype = ctypes.c_void_p
    cl.clCreateCommandQueue.restype = ctypes.c_void_p
    return cl


def _do(code):
    assert code == 0, code


def _about(queue, what):
    found = ctypes.c_void_p()
    _do(
        _library().clGetCommandQueueInfo(queue, what, ctypes.c_size_t(8), ctypes.byref(found), None)
    )
    return found


def _platform(queue):
    found = ctypes.c_void_p()
    _do(
        _library().clGetDeviceInfo(
            _about(queue, 0x1091), 0x1031, ctypes.c_size_t(8), ctypes.byref(found), None
        )
    )
    return found


def _out_of_order(ours):
    queue, code = ctypes.c_void_p(ours.ptr), ctypes.c_int()
    made = _library().clCreateCommandQueue(
        _about(queue, 0x1090), _about(queue, 0x1091), ctypes.c_ulong(1), ctypes.byref(code)
    )
    _do(code.value)
    return hamr.Stream(made, device=f"opencl:{ours.device}")  # never released
