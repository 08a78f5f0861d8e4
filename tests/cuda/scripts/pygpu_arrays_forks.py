"""What is left of hamr.pygpu's arrays, streams and events in a forked child, which it prints."""

import os
import warnings

import numpy as np

import hamr
from hamr import pygpu

warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork, from 3.12 on
array = pygpu.to_gpu(np.arange(3.0))
low = pygpu.DeviceArray_float64(np.arange(3.0))
low.allocate()
stream, event = pygpu.cudaStream_t(), pygpu.cudaEvent_t()
child = os.fork()
if not child:
    try:
        low.to_device()
        array.to_host()
        print(low.last_status(), array.last_status)
        print(pygpu.cudaGetDeviceCount(), pygpu.cudaGetDevice(), pygpu.cudaDeviceSynchronize())
        print(pygpu.cudaEventRecord(event), pygpu.cudaEventSynchronize(event))
        print(pygpu.cudaStreamSynchronize(stream), pygpu.cudaStream_t().last_status())
        try:
            array.get()
        except hamr.ForkError:
            print("ForkError")
        host = pygpu.HostAllocator((3,), "float32")
        host.get()[:] = 1
        print(host.get(), np.asarray(low), flush=True)
    finally:
        os._exit(0)
os.waitpid(child, 0)
print(array.get(), flush=True)
