// A stand-in for NVIDIA's management library. It has two whole devices, which are those of the emulated
// driver in the other order, and one that is divided into two MIG instances.
//
// Settings, read from the environment: HAMR_NVML_STAND_IN_DRIVER (the driver's version), _PROCESSES (how
// many compute on each device, 2) and _FAIL ("call:code,..." which fail each time). Built with OLD it
// has the first version of each function alone.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef OLD
#define NEWEST(name, version) name
enum { old = 1 };
#else
#define NEWEST(name, version) name##version
enum { old = 0 };
#endif

enum {
  SUCCESS = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  INSUFFICIENT_SIZE = 7,
  ARGUMENT_VERSION_MISMATCH = 25,
  whole_devices = 3,
  divided = 2, // which of them is
  instances = 2,
  device_count = whole_devices + instances,
};

struct device {
  int number;
};

static struct device devices[device_count] = {{0}, {1}, {2}, {3}, {4}};
static int references;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *environment(const char *name, const char *otherwise) {
  const char *text = getenv(name);
  return text && *text ? text : otherwise;
}

// What a call was told to fail with.
static int injected(const char *call) {
  const char *at = environment("HAMR_NVML_STAND_IN_FAIL", "");
  size_t length = strlen(call);
  for (; *at; at += strcspn(at, ","), at += *at == ',')
    if (strncmp(at, call, length) == 0 && at[length] == ':')
      return atoi(at + length + 1);
  return SUCCESS;
}

#define RETURN_IF_FAILED(call)                                                                     \
  do {                                                                                             \
    int code_ = (call);                                                                            \
    if (code_ != SUCCESS)                                                                          \
      return code_;                                                                                \
  } while (0)

static int ready(const char *call) {
  RETURN_IF_FAILED(injected(call));
  return references > 0 ? SUCCESS : UNINITIALIZED;
}

static int known(const char *call, struct device *d) {
  RETURN_IF_FAILED(ready(call));
  return d >= devices && d < devices + device_count ? SUCCESS : INVALID_ARGUMENT;
}

#define READY RETURN_IF_FAILED(ready(__func__))
#define DEVICE RETURN_IF_FAILED(known(__func__, d))
#define WHOLE                                                                                      \
  DEVICE;                                                                                          \
  if (d->number >= whole_devices)                                                                  \
  return NOT_SUPPORTED

static int write_text(char *out, unsigned size, const char *text) {
  if (strlen(text) + 1 > size)
    return INSUFFICIENT_SIZE;
  strcpy(out, text);
  return SUCCESS;
}

EXPORT int nvml_stand_in_references(void) { return references; }

EXPORT int NEWEST(nvmlInit, _v2)(void) {
  RETURN_IF_FAILED(injected(__func__));
  pthread_mutex_lock(&lock);
  references++;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

EXPORT int nvmlShutdown(void) {
  READY;
  pthread_mutex_lock(&lock);
  references--;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

EXPORT const char *nvmlErrorString(int code) {
  return code == NOT_SUPPORTED ? "Not Supported" : code == SUCCESS ? "The operation was successful"
                                                                   : "An error of the stand-in";
}

EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size) {
  READY;
  return write_text(out, size, environment("HAMR_NVML_STAND_IN_DRIVER", "580.65.06"));
}

EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
  READY;
  return write_text(out, size, "13.580.65.06");
}

EXPORT int NEWEST(nvmlSystemGetCudaDriverVersion, _v2)(int *version) {
  READY;
  *version = 13000;
  return SUCCESS;
}

EXPORT int NEWEST(nvmlDeviceGetCount, _v2)(unsigned *count) {
  READY;
  *count = whole_devices;
  return SUCCESS;
}

EXPORT int NEWEST(nvmlDeviceGetHandleByIndex, _v2)(unsigned index, struct device **d) {
  READY;
  if (index >= whole_devices)
    return INVALID_ARGUMENT;
  *d = &devices[index];
  return SUCCESS;
}

// The emulated driver's device of that place.
static int on_bus(int number) { return number < divided ? divided - 1 - number : number; }

static void identify(int number, char text[80]) {
  static const char digits[] = "68616d72-2d65-6d75-6c61-7465642d30"; // "hamr-emulated-0"
  const char *kind = number < whole_devices ? "GPU" : "MIG";
  snprintf(text, 80, "%s-%s%02x", kind, digits, '0' + on_bus(number));
}

EXPORT int nvmlDeviceGetUUID(struct device *d, char *out, unsigned size) {
  DEVICE;
  char text[80];
  identify(d->number, text);
  return write_text(out, size, text);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **d) {
  READY;
  for (int i = 0; i < device_count; i++) {
    char text[80];
    identify(i, text);
    if (strcmp(uuid, text) == 0) {
      *d = &devices[i];
      return SUCCESS;
    }
  }
  return NOT_FOUND;
}

EXPORT int NEWEST(nvmlDeviceGetHandleByPciBusId, _v2)(const char *id, struct device **d) {
  READY;
  unsigned domain, bus;
  if (sscanf(id, "%x:%x:", &domain, &bus) != 2)
    return INVALID_ARGUMENT;
  for (int i = 0; i < whole_devices; i++)
    if (domain == 0 && bus == (unsigned)on_bus(i) + 1) {
      *d = &devices[i];
      return SUCCESS;
    }
  return NOT_FOUND;
}

struct pci {
  char legacy[16];
  unsigned domain, bus, device, vendor, subsystem;
#ifndef OLD
  char id[32];
#endif
};

EXPORT int NEWEST(nvmlDeviceGetPciInfo, _v3)(struct device *d, struct pci *out) {
  WHOLE;
  *out = (struct pci){.bus = (unsigned)on_bus(d->number) + 1, .device = 4};
  snprintf(out->legacy, sizeof out->legacy, "0000:%02X:04.0", out->bus & 0xFF);
#ifndef OLD
  snprintf(out->id, sizeof out->id, "00000000:%02X:04.0", out->bus & 0xFF);
#endif
  return SUCCESS;
}

EXPORT int nvmlDeviceGetIndex(struct device *d, unsigned *index) {
  DEVICE;
  static const unsigned of[device_count] = {0, 1, 2, 1, 4}; // of instances, among their device's
  *index = of[d->number];
  return SUCCESS;
}

// Longer than any name that hamr has room for at first.
EXPORT int nvmlDeviceGetName(struct device *d, char *out, unsigned size) {
  DEVICE;
  char text[200];
  snprintf(text, sizeof text, "Device %d %0*d", d->number, d->number == divided ? 150 : 1, 0);
  return write_text(out, size, text);
}

EXPORT int nvmlDeviceGetSerial(struct device *d, char *out, unsigned size) {
  WHOLE;
  return d->number == 0 ? write_text(out, size, "1650522003820") : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetUtilizationRates(struct device *d, unsigned rates[2]) {
  WHOLE;
  rates[0] = 70 + (unsigned)d->number;
  rates[1] = 30 + (unsigned)d->number;
  return SUCCESS;
}

enum { total = 1000000, reserved = 1000, used = 50000 };

EXPORT int nvmlDeviceGetMemoryInfo(struct device *d, unsigned long long memory[3]) {
  DEVICE;
  memory[0] = total;
  memory[1] = total - reserved - used;
  memory[2] = reserved + used;
  return SUCCESS;
}

#ifndef OLD
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device *d, unsigned long long memory[5]) {
  DEVICE;
  if ((unsigned)memory[0] != 0x02000028)
    return ARGUMENT_VERSION_MISMATCH;
  memory[1] = total;
  memory[2] = reserved;
  memory[3] = total - reserved - used;
  memory[4] = used;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperatureV(struct device *d, int reading[3]) {
  WHOLE;
  if (reading[0] != 0x0100000C)
    return ARGUMENT_VERSION_MISMATCH;
  reading[2] = 40 + d->number;
  return reading[1] == 0 ? SUCCESS : INVALID_ARGUMENT;
}
#endif

EXPORT int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *degrees) {
  WHOLE;
  *degrees = 40 + (unsigned)d->number;
  return sensor == 0 ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetPowerUsage(struct device *d, unsigned *milliwatts) {
  WHOLE;
  *milliwatts = 123456 + (unsigned)d->number;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(struct device *d, unsigned *milliwatts) {
  WHOLE;
  *milliwatts = 700000;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetClockInfo(struct device *d, int clock, unsigned *megahertz) {
  WHOLE;
  *megahertz = 1000 + 100 * (unsigned)clock;
  return clock >= 0 && clock < 4 ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetMaxClockInfo(struct device *d, int clock, unsigned *megahertz) {
  WHOLE;
  *megahertz = 2000 + 100 * (unsigned)clock;
  return clock >= 0 && clock < 4 ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetPersistenceMode(struct device *d, unsigned *on) {
  WHOLE;
  *on = 1;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetEccMode(struct device *d, unsigned *current, unsigned *pending) {
  WHOLE;
  *current = 1;
  *pending = 0;
  return SUCCESS;
}

static const char *driver(void) { return environment("HAMR_NVML_STAND_IN_DRIVER", ""); }

// Writes records of the size of the driver's version, each byte behind the numbers 0xEE.
static int list_processes(struct device *d, unsigned *count, unsigned char *records, int first, int n) {
  unsigned room = *count;
  *count = (unsigned)n;
  if (room < *count)
    return INSUFFICIENT_SIZE;
  size_t size = old ? 16 : strncmp(driver(), "530.", 4) == 0 ? 32 : 24;
  memset(records, 0xEE, size * (size_t)n);
  for (int i = 0; i < n; i++, records += size) {
    unsigned pid = (unsigned)(first + i), instance = d->number < divided ? ~0U : 3, part = instance == 3 ? 1 : ~0U;
    unsigned long long bytes = i == 1 ? ~0ULL : 4096ULL * pid;
    memcpy(records, &pid, 4);
    memcpy(records + 8, &bytes, 8);
    if (!old) {
      memcpy(records + 16, &instance, 4);
      memcpy(records + 20, &part, 4);
    }
  }
  return SUCCESS;
}

EXPORT int NEWEST(nvmlDeviceGetComputeRunningProcesses, _v3)(struct device *d, unsigned *count,
                                                            unsigned char *records) {
  DEVICE;
  return list_processes(d, count, records, 100, atoi(environment("HAMR_NVML_STAND_IN_PROCESSES", "2")));
}

EXPORT int NEWEST(nvmlDeviceGetGraphicsRunningProcesses, _v3)(struct device *d, unsigned *count,
                                                             unsigned char *records) {
  WHOLE;
  return list_processes(d, count, records, 7, 1);
}

#ifndef OLD
EXPORT int nvmlDeviceIsMigDeviceHandle(struct device *d, unsigned *is) {
  DEVICE;
  *is = d->number >= whole_devices;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetMigMode(struct device *d, unsigned *current, unsigned *pending) {
  WHOLE;
  if (d->number != divided)
    return NOT_SUPPORTED;
  *current = *pending = 1;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned *count) {
  DEVICE;
  *count = d->number == divided ? 7 : 0;
  return SUCCESS;
}

// The instances are the second and the fifth of seven that there could be.
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned index, struct device **out) {
  WHOLE;
  if (d->number != divided || index >= 7)
    return INVALID_ARGUMENT;
  if (index != 1 && index != 4)
    return NOT_FOUND;
  *out = &devices[whole_devices + (index == 4)];
  return SUCCESS;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct device *d, struct device **whole) {
  DEVICE;
  if (d->number < whole_devices)
    return INVALID_ARGUMENT;
  *whole = &devices[divided];
  return SUCCESS;
}

EXPORT int nvmlDeviceGetGpuInstanceId(struct device *d, unsigned *id) {
  DEVICE;
  if (d->number < whole_devices)
    return NOT_SUPPORTED;
  *id = 3 + (unsigned)(d->number - whole_devices);
  return SUCCESS;
}

EXPORT int nvmlDeviceGetComputeInstanceId(struct device *d, unsigned *id) {
  DEVICE;
  if (d->number < whole_devices)
    return NOT_SUPPORTED;
  *id = 0;
  return SUCCESS;
}
#endif
