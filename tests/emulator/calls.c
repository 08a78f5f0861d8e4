// What every entry point does first: it refuses work before cuInit, after a fork
// and inside host functions, counts the call, strikes with injected errors, and
// takes the mutex.
#include "emulator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static pthread_cond_t more_work = PTHREAD_COND_INITIALIZER;
static atomic_int initialised_by; // a process, or zero

_Thread_local int in_host_function;
_Thread_local const char *current_call = "emulator";

void lock(void) { pthread_mutex_lock(&mutex); }
void unlock(void) { pthread_mutex_unlock(&mutex); }

void wait_for_progress(void) { pthread_cond_wait(&progress, &mutex); }
void tell_progress(void) {
  pthread_cond_broadcast(&progress);
  pthread_cond_signal(&more_work);
}
void wait_for_work(void) { pthread_cond_wait(&more_work, &mutex); }

uintptr_t new_handle(void) {
  static uintptr_t last = 0xE0000000;
  return last += 0x10;
}

// A child may have inherited a locked mutex, so it must not touch it.
static int forked(void) {
  int by = atomic_load(&initialised_by);
  return by != 0 && by != getpid();
}

int initialise_calls(void) {
  int nobody = 0;
  return atomic_compare_exchange_strong(&initialised_by, &nobody, getpid());
}

struct call enter_uninitialised(const char *name) {
  if (strncmp(name, EMULATED, strlen(EMULATED)) == 0)
    name += strlen(EMULATED);
  if (forked())
    return (struct call){CUDA_ERROR_NOT_INITIALIZED, 0};
  lock();
  current_call = name;
  count_call(name);
  struct call call = {injected(name), 1};
  if (call.result == CUDA_SUCCESS && in_host_function) {
    violate("called by a host function");
    call.result = CUDA_ERROR_NOT_PERMITTED;
  }
  return call;
}

struct call enter(const char *name) {
  struct call call = enter_uninitialised(name);
  if (call.result == CUDA_SUCCESS && atomic_load(&initialised_by) == 0)
    call.result = CUDA_ERROR_NOT_INITIALIZED;
  return call;
}

// Inspection is for tests, which may do it at any time.
struct call inspect(void) {
  if (forked())
    return (struct call){CUDA_ERROR_NOT_INITIALIZED, 0};
  lock();
  return (struct call){CUDA_SUCCESS, 1};
}

void leave(struct call *call) {
  if (call->locked)
    unlock();
}
