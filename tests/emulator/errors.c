// Names and texts of the driver's error codes.
#include "emulator.h"

#define CODE(name, text) {CUDA_##name, "CUDA_" #name, text}

static const struct {
  CUresult code;
  const char *name, *text;
} codes[] = {
    CODE(SUCCESS, "no error"),
    CODE(ERROR_INVALID_VALUE, "invalid argument"),
    CODE(ERROR_OUT_OF_MEMORY, "out of memory"),
    CODE(ERROR_NOT_INITIALIZED, "initialization error"),
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    CODE(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    CODE(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    CODE(ERROR_INVALID_CONTEXT, "invalid device context"),
    CODE(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"),
    CODE(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    CODE(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    CODE(ERROR_INVALID_HANDLE, "invalid resource handle"),
    CODE(ERROR_NOT_FOUND, "named symbol not found"),
    CODE(ERROR_NOT_READY, "device not ready"),
    CODE(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    CODE(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    CODE(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    CODE(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    CODE(ERROR_NOT_PERMITTED, "operation not permitted"),
    CODE(ERROR_NOT_SUPPORTED, "operation not supported"),
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

enum { code_count = sizeof codes / sizeof codes[0] };

static int find_code(CUresult code) {
  int i = 0;
  while (i < code_count && codes[i].code != code)
    i++;
  return i;
}

EXPORT CUresult cuGetErrorName(CUresult code, const char **name) {
  int i = find_code(code);
  *name = i < code_count ? codes[i].name : NULL;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult code, const char **text) {
  int i = find_code(code);
  *text = i < code_count ? codes[i].text : NULL;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
