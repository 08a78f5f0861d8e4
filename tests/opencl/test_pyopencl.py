"""PyOpenCL on hamr's memory, and hamr on PyOpenCL's: by the queue, whose context both use."""

import ctypes
from importlib import util

import numpy as np
import pytest

import hamr

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.skipif(util.find_spec("pyopencl") is None, reason="pyopencl is not installed"),
]
TWICE = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"


@pytest.fixture
def both(device):
    """A stream of hamr's, the same queue as PyOpenCL has it, and a kernel."""
    import pyopencl as cl

    stream = hamr.Stream(device=f"opencl:{device}")
    queue = cl.CommandQueue.from_int_ptr(stream.ptr, retain=True)
    return stream, queue, cl.Kernel(cl.Program(queue.context, TWICE).build(), "twice")


def of(b):
    return b.get(np.empty(b.shape, b.dtype)).tolist()


def test_its_kernels_on_our_memory(name, device, both):
    import pyopencl as cl

    stream, queue, twice = both
    b = hamr.Buffer(1000, "f4", name, fill=3, device=device, stream=stream, transfer="async")
    h = b.get_opencl_accessible(device)
    twice(queue, (1000,), None, cl.SVM((ctypes.c_char * 4000).from_address(h.ptr)))
    assert of(b) == [6] * 1000


def test_our_buffers_on_its_memory(device, both):
    import pyopencl as cl

    _, queue, twice = both
    svm = cl.SVMAllocation(queue.context, 4000, 0, cl.svm_mem_flags.READ_WRITE, queue=queue)
    b = hamr.Buffer.from_pointer(
        svm.svm_ptr, 1000, "f4", allocator="opencl_svm", device=device, owner=svm, stream=queue
    )
    b.fill(5)
    twice(queue, (1000,), None, svm)
    assert of(b) == [10] * 1000
    seen = np.asarray(b.get_host_accessible())
    assert seen.ctypes.data == svm.svm_ptr
    seen[0] = 1
    del seen
    twice(queue, (1000,), None, svm)
    assert of(b)[:2] == [2, 20]
    b.close()


def test_a_queue_out_of_order(name, device, both):
    import pyopencl as cl

    _, queue, _ = both
    properties = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    theirs = cl.CommandQueue(queue.context, properties=properties)
    b = hamr.Buffer(1000, "f4", name, fill=3, device=device, stream=theirs, transfer="async")
    assert b.stream.ptr == theirs.int_ptr
    for value in range(20):
        b.fill(value)
        c = b.copy()
    b.fill(-1)
    assert of(c) == [19] * 1000


def test_a_queue_of_another_context_is_refused(name, device, both):
    import pyopencl as cl

    _, queue, _ = both
    other = cl.CommandQueue(cl.Context([queue.device]))
    with pytest.raises(hamr.DeviceError, match=r"another context.*CL_INVALID|CL_INVALID_CONTEXT"):
        hamr.Buffer(10, "f4", name, fill=3, device=device, stream=other)
