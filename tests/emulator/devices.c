// Initialisation, and what the devices say of themselves.
#include "emulator.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device devices[most_devices];
int device_count;
size_t device_memory;
int peers_possible;

enum { uuid_size = 16 };

long environment_number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text && *text ? strtol(text, NULL, 0) : otherwise;
}

CUresult check_device(CUdevice device) {
  return device >= 0 && device < device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuInit(unsigned flags) {
  struct call call __attribute__((cleanup(leave))) = enter_uninitialised(__func__);
  RETURN_IF_FAILED(call.result);
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  long count = environment_number("HAMR_EMULATOR_DEVICES", 1);
  if (count <= 0)
    return CUDA_ERROR_NO_DEVICE;
  if (!initialise_calls())
    return CUDA_SUCCESS;
  device_count = count < most_devices ? (int)count : most_devices;
  device_memory = (size_t)environment_number("HAMR_EMULATOR_MEMORY", 256L << 20);
  peers_possible = environment_number("HAMR_EMULATOR_PEERS", 1) != 0;
  for (int i = 0; i < device_count; i++) {
    devices[i].default_pool = new_pool(i);
    devices[i].default_pool->is_default = 1;
  }
  initialise_work();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
  struct call call __attribute__((cleanup(leave))) = enter_uninitialised(__func__);
  RETURN_IF_FAILED(call.result);
  *version = (int)environment_number("HAMR_EMULATOR_VERSION", 13000);
  return CUDA_SUCCESS;
}

// NVRTC asks a driver that is in the process for a table of functions, and takes it for granted that
// there is one, unless it is told that there is none.
EXPORT CUresult cuGetExportTable(const void **table, const void *identity) {
  struct call call __attribute__((cleanup(leave))) = enter_uninitialised(__func__);
  RETURN_IF_FAILED(call.result);
  (void)identity;
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  CALL;
  *count = device_count;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CALL;
  RETURN_IF_FAILED(check_device(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  if (length <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)length, "Emulated CUDA device %d", device);
  return CUDA_SUCCESS;
}

static CUresult write_uuid(char *uuid, CUdevice device) {
  RETURN_IF_FAILED(check_device(device));
  memcpy(uuid, "hamr-emulated-00", uuid_size);
  uuid[uuid_size - 2] = (char)('0' + device / 10);
  uuid[uuid_size - 1] = (char)('0' + device % 10);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(char *uuid, CUdevice device) {
  CALL;
  return write_uuid(uuid, device);
}

EXPORT CUresult cuDeviceGetUuid_v2(char *uuid, CUdevice device) {
  CALL;
  return write_uuid(uuid, device);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  *bytes = device_memory;
  return CUDA_SUCCESS;
}

int shares_by_descriptor(void) { return environment_number("HAMR_EMULATOR_SHARES", 1) != 0; }

static int attribute_of(int attribute) {
  switch (attribute) {
  case 1: // MAX_THREADS_PER_BLOCK
  case 2: // MAX_BLOCK_DIM_X
  case 3: // MAX_BLOCK_DIM_Y
    return 1024;
  case 4: // MAX_BLOCK_DIM_Z
    return 64;
  case 5: // MAX_GRID_DIM_X
    return 0x7FFFFFFF;
  case 6: // MAX_GRID_DIM_Y
    return 65535;
  case 7: // MAX_GRID_DIM_Z
    return 65534;
  case 8: // MAX_SHARED_MEMORY_PER_BLOCK
    return default_shared;
  case 9: // TOTAL_CONSTANT_MEMORY
    return 65536;
  case 10: // WARP_SIZE
    return 32;
  case 11: // MAX_PITCH
    return 0x7FFFFFFE;
  case 12: // MAX_REGISTERS_PER_BLOCK
    return 65537;
  case 13: // CLOCK_RATE, kHz
    return 1000000;
  case 14: // TEXTURE_ALIGNMENT
    return 512;
  case 16: // MULTIPROCESSOR_COUNT
    return 8;
  case 36: // MEMORY_CLOCK_RATE, kHz
    return 5001000;
  case 37: // GLOBAL_MEMORY_BUS_WIDTH, bits
    return 256;
  case 38: // L2_CACHE_SIZE
    return 4194304;
  case 39: // MAX_THREADS_PER_MULTIPROCESSOR
    return 2048;
  case 40: // ASYNC_ENGINE_COUNT
    return 3;
  case 81: // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    return 102400;
  case 82: // MAX_REGISTERS_PER_MULTIPROCESSOR
    return 65538;
  case 97: // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    return most_shared;
  case 106: // MAX_BLOCKS_PER_MULTIPROCESSOR
    return 16;
  case 111: // RESERVED_SHARED_MEMORY_PER_BLOCK
    return 1025;
  case 75: // COMPUTE_CAPABILITY_MAJOR
    return 7;
  case 76: // COMPUTE_CAPABILITY_MINOR
    return 5;
  case 41:  // UNIFIED_ADDRESSING
  case 83:  // MANAGED_MEMORY
  case 89:  // CONCURRENT_MANAGED_ACCESS
  case 115: // MEMORY_POOLS_SUPPORTED
    return 1;
  case 102: // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    return environment_number("HAMR_EMULATOR_VMM", 1) != 0;
  case 103: // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
  case 119: // MEMPOOL_SUPPORTED_HANDLE_TYPES: one bit each
    return shares_by_descriptor();
  default:
    return 0;
  }
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  *value = attribute_of(attribute);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  if (length <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  snprintf(text, (size_t)length, "0000:%02X:00.0", device + 1);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *possible, CUdevice from, CUdevice to) {
  CALL;
  RETURN_IF_FAILED(check_device(from));
  RETURN_IF_FAILED(check_device(to));
  *possible = peers_possible && from != to;
  return CUDA_SUCCESS;
}

static void *procedure(const char *name) {
  Dl_info here;
  if (!dladdr((void *)(uintptr_t)cuInit, &here))
    return NULL;
  void *library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    return NULL;
  char latest[128];
  snprintf(latest, sizeof latest, "%s_v2", name);
  void *found = dlsym(library, latest);
  if (!found)
    found = dlsym(library, name);
  dlclose(library);
  return found;
}

// Callers ask by the name without a version and get the latest.
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                    uint64_t flags, int *status) {
  (void)version;
  (void)flags;
  *function = procedure(name);
  if (status)
    *status = *function ? 0 : 1;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
