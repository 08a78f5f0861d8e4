"""A compiled library called by ctypes: pointers of both sides are ints, or go as they are."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import hamr.pygpu as PybindGPU

with tempfile.TemporaryDirectory() as folder:
    library = Path(folder, "libscale.so")
    source = Path(__file__).with_name("scale.c")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    scale = ctypes.CDLL(str(library))
scale.scale.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_double]
scale.scale.restype = None
scale.address_of.argtypes = [ctypes.c_void_p]
scale.address_of.restype = ctypes.c_int64

values = np.arange(4.0)
array = PybindGPU.GPUArray(values)

# The host's function takes the host's pointer, then the elements go to the device.
scale.scale(array.host_data.__int__(), array.size, 10.0)
array.to_device()
print("scaled on the host:", values, array.last_status)

# A function that launches kernels would take the device's: here it only looks at the address.
print("the device's pointer arrives:", scale.address_of(array.ptr) == int(array.device_data))
print("as an object, too:", scale.address_of(array.device_data) == array.ptr)
