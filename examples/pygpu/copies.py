"""Copies: the sides of one array, streams, page-locked memory, and views of the same memory."""

import numpy as np

import hamr.pygpu as PybindGPU
from hamr.pygpu.gpuarray import GPUArray, arange, to_gpu, to_gpu_async

host = np.arange(8, dtype="float32")
shared = GPUArray(host)  # its host side is the array: nothing is sent yet
shared.to_device()
own = GPUArray(host, copy=True)  # a copy of it
own.to_device()
host[:] = 0
print("the copy:", own.get(), "shared, brought back:", shared.get())
print("host is what was brought back:", host)

# On a stream: over when the stream is.
stream = PybindGPU.cudaStream_t(1)
start, end = PybindGPU.cudaEvent_t(), PybindGPU.cudaEvent_t()
PybindGPU.cudaEventRecord(start, stream)
sent = to_gpu_async(host, stream=stream)
sent.fill(3, stream=stream)
back = sent.get(async_=True, stream=stream)  # page-locked memory
PybindGPU.cudaEventRecord(end, stream)
PybindGPU.cudaEventSynchronize(end)
milliseconds, status = PybindGPU.cudaEventElapsedTime(start, end)
print("on a stream:", back, status, milliseconds >= 0)

# Views share the device's memory.
numbers = arange(12, dtype="int32").reshape(3, 4)
numbers[1] = -1
numbers[:, ::2] = to_gpu(np.full((3, 2), 7, "int32"))
print(numbers.get())
print(numbers.T.copy().get()[0], numbers.view("uint32")[1, 1].get())
