// A HIP runtime that is a CUDA driver's functions under HIP's names: what hamr asks of HIP, and what a
// foreign HIP library asks in the tests. Numbers and layouts are HIP's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_DIRECTION = 21,
  INVALID_HANDLE = 400,
  ILLEGAL_STATE = 401,
  NOT_FOUND = 500
};

// The driver's function of that name, or the end of the process: everything needed is there.
typedef int function();
function *driver_function(const char *name);

// Calls the driver's function as it is.
#define DRIVER(name, ...) (driver_function(#name)(__VA_ARGS__))

// Calls it in the primary context of the thread's current device, and puts back what was current; keeps
// what went wrong for hipGetLastError.
#define IN_CONTEXT(name, ...) (enter() ? last() : done(DRIVER(name, __VA_ARGS__)))

int enter(void);         // the code, which last() has as well
int last(void);
int done(int code);      // leaves the context, and is failed()
int failed(int code);    // keeps the code as the thread's last error unless it is SUCCESS
void *context_of(int device); // NULL after an error
int current_device(void);
int device_count(void);
int runtime_version(void);

// The driver's handle of a HIP stream. HIP has one number for the null stream, zero, and not before
// version 6.2 another one.
int stream_of(uintptr_t stream, uintptr_t *handle);
#define ON_STREAM(stream, name, ...) \
  uintptr_t handle; \
  int wrong = stream_of(stream, &handle); \
  return wrong ? failed(wrong) : IN_CONTEXT(name, __VA_ARGS__)
