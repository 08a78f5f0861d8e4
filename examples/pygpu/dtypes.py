"""The element types: by name, Python's class, NumPy's class or dtype, and the enumeration."""

import numpy as np

import hamr.pygpu as PybindGPU
from hamr.pygpu.gpuarray import SUPPORTED_DTYPES, GPUArray, UnsupportedDataType

for number, name in enumerate(SUPPORTED_DTYPES):
    values = np.arange(4).astype(name)
    made = [
        GPUArray((2, 2), dtype=name),
        GPUArray((2, 2), dtype=getattr(np, name)),
        GPUArray((2, 2), dtype=np.dtype(name)),
        GPUArray((2, 2), dtype=PybindGPU.dtype(number)),
    ]
    for array in made:
        array.set(values.reshape(2, 2))
        assert array.dtype == values.dtype
        assert (array.get() == values.reshape(2, 2)).all()
    print(f"{name}: {made[0].device_data.is_safe()=}, {made[0].nbytes} bytes")

print(PybindGPU.dtype.__size__.value, "types, of which", PybindGPU.dtype.double_alias, "is double")
try:
    GPUArray((2, 2), dtype="bfloat16")
except UnsupportedDataType as error:
    print("refused:", error)
