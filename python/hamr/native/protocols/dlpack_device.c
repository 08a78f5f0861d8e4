#include "protocols/dlpack_device.h"

#include "base/python.h"
#include "plain/dlpack.h"

static const char *device_name(int32_t type) {
    switch (type) {
    case kDLCPU: return "CPU";
    case kDLCUDA: return "CUDA";
    case kDLCUDAHost: return "CUDAHost";
    case kDLOpenCL: return "OpenCL";
    case 7: return "Vulkan";
    case 8: return "Metal";
    case 9: return "VPI";
    case kDLROCM: return "ROCm";
    case kDLROCMHost: return "ROCmHost";
    case 12: return "an extension's device";
    case kDLCUDAManaged: return "CUDAManaged";
    case kDLOneAPI: return "oneAPI";
    case 15: return "WebGPU";
    case 16: return "Hexagon";
    case 17: return "MAIA";
    case 18: return "Trainium";
    default: return "no device that is known";
    }
}

int dlpack_check_device(int32_t type, int32_t number) {
    if (type != kDLCPU && type != kDLCUDAHost && type != kDLROCMHost && type != kDLROCM && !dlpack_is_cuda(type))
        return RAISE(PyExc_BufferError,
                     "device is (%d, %d), which is %s: accepted are CPU (1), CUDA (2), CUDAHost (3), ROCm (10), "
                     "ROCmHost (11) and CUDAManaged (13)", type, number, device_name(type));
    if (number < 0 && (type == kDLCUDA || type == kDLROCM))
        return RAISE(PyExc_ValueError, "device is (%d, %d): accepted as a device's number is 0 or more", type, number);
    return 0;
}
