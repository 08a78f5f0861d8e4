"""Pointer wrappers, and what statuses say."""

import hamr.pygpu as PybindGPU

pointer = PybindGPU.ptr_wrapper_float32()
print("null:", int(pointer), pointer.is_safe())
pointer.create(4)
pointer.get()[:] = 1.5
print("host memory:", pointer.is_safe(), pointer.get())
pointer.destroy()
print("destroyed:", int(pointer), pointer.is_safe())

array = PybindGPU.DeviceArray_float32([2, 2])
array.to_device()
print("before allocate():", array.last_status(), int(array.device_data()))
array.allocate()
array.to_device()
print("after it:", array.last_status())
array.device_data().print_address()

count, status = PybindGPU.cudaGetDeviceCount()
print("devices:", count > 0, status)
device, status = PybindGPU.cudaGetDevice()
print("current:", device, status)
status = PybindGPU.cudaSetDevice(count)
print("no such device:", status.as_int(), PybindGPU.cudaGetErrorName(status))
print("kept for the thread:", PybindGPU.cudaGetErrorString(PybindGPU.cudaGetLastError()))
print("once:", PybindGPU.cudaGetLastError())
