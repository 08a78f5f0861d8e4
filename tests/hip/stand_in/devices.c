// Loading the driver, and what threads and devices are.
#include "stand_in.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_devices = 16 };

static pthread_once_t loading = PTHREAD_ONCE_INIT;
static pthread_mutex_t retaining = PTHREAD_MUTEX_INITIALIZER;
static void *driver;
static void *contexts[most_devices];
static int devices;

static __thread int device, last_error;

static int ask(const char *name, uintptr_t argument) {
  function *found = (function *)dlsym(driver, name);
  return found ? found(argument) : NOT_FOUND;
}

static void load(void) {
  const char *name = getenv("HAMR_HIP_STAND_IN_DRIVER");
  driver = dlopen(name && *name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver || ask("cuInit", 0) != 0 || ask("cuDeviceGetCount", (uintptr_t)&devices) != 0)
    devices = 0;
  if (devices > most_devices)
    devices = most_devices;
}

function *driver_function(const char *name) {
  pthread_once(&loading, load);
  function *found = driver ? (function *)dlsym(driver, name) : NULL;
  if (found)
    return found;
  fprintf(stderr, "the stand-in for HIP found no %s: %s\n", name, dlerror());
  abort();
}

int device_count(void) {
  pthread_once(&loading, load);
  return devices;
}

int runtime_version(void) {
  const char *text = getenv("HAMR_HIP_STAND_IN_VERSION");
  return text && *text ? atoi(text) : 60342134;
}

int failed(int code) {
  if (code)
    last_error = code;
  return code;
}

int last(void) { return last_error; }

int current_device(void) { return device; }

void *context_of(int number) {
  if (number < 0 || number >= device_count())
    return NULL;
  pthread_mutex_lock(&retaining);
  if (!contexts[number] && DRIVER(cuDevicePrimaryCtxRetain, &contexts[number], number) != 0)
    contexts[number] = NULL;
  pthread_mutex_unlock(&retaining);
  return contexts[number];
}

int enter(void) {
  void *context = context_of(device);
  return context ? failed(DRIVER(cuCtxPushCurrent_v2, context)) : failed(NO_DEVICE);
}

int done(int code) {
  void *context;
  DRIVER(cuCtxPopCurrent_v2, &context);
  return failed(code);
}

EXPORT int hipGetLastError(void) {
  int code = last_error;
  last_error = SUCCESS;
  return code;
}

EXPORT int hipPeekAtLastError(void) { return last_error; }

EXPORT const char *hipGetErrorName(int code) {
  static __thread char text[32];
  snprintf(text, sizeof text, "hipErrorOfStandIn%d", code);
  return text;
}

EXPORT const char *hipGetErrorString(int code) {
  static __thread char text[64];
  snprintf(text, sizeof text, "code %d of the stand-in", code);
  return text;
}

EXPORT int hipInit(unsigned flags) { return failed(flags ? INVALID_VALUE : SUCCESS); }

EXPORT int hipDriverGetVersion(int *version) {
  *version = runtime_version();
  return SUCCESS;
}

EXPORT int hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

EXPORT int hipGetDeviceCount(int *count) {
  *count = device_count();
  return *count ? SUCCESS : failed(NO_DEVICE);
}

EXPORT int hipGetDevice(int *number) {
  *number = device;
  return device_count() ? SUCCESS : failed(NO_DEVICE);
}

EXPORT int hipSetDevice(int number) {
  if (number < 0 || number >= device_count())
    return failed(INVALID_DEVICE);
  device = number;
  return SUCCESS;
}

EXPORT int hipDeviceGet(int *handle, int number) {
  return failed(DRIVER(cuDeviceGet, handle, number));
}

EXPORT int hipDeviceGetName(char *text, int size, int number) {
  return failed(DRIVER(cuDeviceGetName, text, size, number));
}

EXPORT int hipDeviceGetPCIBusId(char *text, int size, int number) {
  return failed(DRIVER(cuDeviceGetPCIBusId, text, size, number));
}

// AMD's are the digits of a number.
EXPORT int hipDeviceGetUuid(char *uuid, int number) {
  unsigned char bytes[16];
  char text[17];
  int code = DRIVER(cuDeviceGetUuid, bytes, number);
  for (int i = 0; i < 8; i++)
    snprintf(text + 2 * i, 3, "%02x", bytes[15 - i]);
  memcpy(uuid, text, 16);
  return failed(code);
}

EXPORT int hipDeviceTotalMem(size_t *bytes, int number) {
  return failed(DRIVER(cuDeviceTotalMem_v2, bytes, number));
}

EXPORT int hipDeviceGetAttribute(int *value, int attribute, int number) {
  static const struct {
    int hip, cuda;
  } numbers[] = {
      {0, 32}, {2, 40}, {3, 19}, {5, 13}, {6, 20}, {8, 31}, {9, 89}, {10, 95}, {16, 18},
      {18, 17}, {19, 38}, {23, 75}, {24, 83}, {25, 106}, {26, 2}, {27, 3}, {28, 4}, {29, 5},
      {30, 6}, {31, 7}, {56, 1}, {57, 39}, {58, 11}, {59, 37}, {60, 36}, {61, 76}, {63, 16},
      {65, 88}, {66, 100}, {71, 12}, {72, 82}, {73, 111}, {74, 8}, {75, 97}, {76, 81},
      {78, 78}, {81, 14}, {83, 9}, {85, 41}, {87, 10}, {88, 115},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].hip == attribute)
      return failed(DRIVER(cuDeviceGetAttribute, value, numbers[i].cuda, number));
  return failed(INVALID_VALUE);
}

EXPORT int hipDeviceCanAccessPeer(int *able, int from, int to) {
  return failed(DRIVER(cuDeviceCanAccessPeer, able, from, to));
}

EXPORT int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  void *context = context_of(peer);
  return context ? IN_CONTEXT(cuCtxEnablePeerAccess, context, flags) : failed(INVALID_DEVICE);
}

EXPORT int hipDeviceDisablePeerAccess(int peer) {
  void *context = context_of(peer);
  return context ? IN_CONTEXT(cuCtxDisablePeerAccess, context) : failed(INVALID_DEVICE);
}

EXPORT int hipDeviceSynchronize(void) { return IN_CONTEXT(cuCtxSynchronize); }
