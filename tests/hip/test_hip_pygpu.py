"""hamr.pygpu on HIP, by the same names."""

from tests.support.processes import run_code

HIP = {"HAMR_PYGPU_RUNTIME": "hip"}


def test_arrays_and_streams_on_hip():
    printed = run_code(
        """
import gc
import numpy as np
from hamr import pygpu

print(pygpu.use_hip, pygpu.cuda_enabled, pygpu.cudaGetDevice())
values = np.arange(6.0).reshape(2, 3)
array = pygpu.to_gpu(values)
array.set_val(1, 9)
print(array.allocator, array.get().tolist(), array.last_status)
print(pygpu.GPUArray((2, 3), order="F").strides)
low = pygpu.DeviceArray_float64(values)
low.allocate()
low.to_device()
values[:] = 0
low.to_host()
print(values.tolist(), low.last_status())
stream, start, end = pygpu.cudaStream_t(), pygpu.cudaEvent_t(), pygpu.cudaEvent_t()
print(stream.last_status(), pygpu.cudaEventRecord(start, stream))
array.fill(3, stream=stream)
back = array.get(async_=True, stream=stream)
pygpu.cudaEventRecord(end, stream)
print(pygpu.cudaEventSynchronize(end), back.tolist())
milliseconds, status = pygpu.cudaEventElapsedTime(start, end)
print(milliseconds >= 0, status)
pinned = pygpu.PagelockedAllocator((2,), "float32")
pinned.get()[:] = 1
shared = pygpu.GPUArray(allocator=pygpu.Allocator(pinned))
shared.set_val(0, 5)
print(pinned.get().tolist(), pygpu.cudaSetDevice(99), pygpu.cudaDeviceSynchronize())
""",
        env=HIP,
    )
    ok = "<CudaError: 'code=0'>"
    assert printed.splitlines() == [
        f"True True (0, {ok})",
        f"hip [[0.0, 9.0, 2.0], [3.0, 4.0, 5.0]] {ok}",
        "(8, 16)",
        f"[[0.0, 9.0, 2.0], [3.0, 4.0, 5.0]] {ok}",
        f"{ok} {ok}",
        f"{ok} [[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]]",
        f"True {ok}",
        f"[5.0, 1.0] <CudaError: 'code=101'> {ok}",
    ]


def test_a_runtime_that_is_none():
    run_code(
        "from hamr import pygpu\n"
        "try: pygpu.cudaGetDeviceCount()\n"
        "except ValueError as error: assert 'accepted are cuda, hip' in str(error)\n"
        "else: raise AssertionError",
        env={"HAMR_PYGPU_RUNTIME": "vulkan"},
    )
