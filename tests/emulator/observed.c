// CUPTI, as far as hamr uses it: one subscriber is told of calls before and after they are made, on the thread that
// makes them. Numbers and structures are those of cupti_driver_cbid.h, generated_cuda_meta.h and cupti_callbacks.h.
#define HAMR_TESTS_OBSERVED_H // what is defined here has its own name
#include "emulator.h"

#include <string.h>
#include <unistd.h>

enum { DRIVER_API = 1, SYNCHRONIZE = 4, most_calls = 1024, MULTIPLE_SUBSCRIBERS = 39, INVALID_PARAMETER = 1 };
enum { STREAM_SYNCHRONIZED = 1, CONTEXT_SYNCHRONIZED = 2 };

typedef void callback(void *data, uint32_t domain, uint32_t call, const void *told);

struct told {
  uint32_t site;
  const char *function;
  const void *parameters;
  void *result;
  const char *symbol;
  CUcontext context;
  uint32_t context_number;
  uint64_t *shared;
  uint32_t number;
};

struct told_of_waiting {
  CUcontext context;
  CUstream stream;
};

static callback *subscribed;
static void *subscribers;
static int subscribed_by; // a process
static char enabled[most_calls], tells_of_waiting[3];

EXPORT int cuptiSubscribe(uintptr_t *subscriber, callback *to, void *data) {
  if (subscribed)
    return MULTIPLE_SUBSCRIBERS;
  *subscriber = 1;
  memset(enabled, 0, sizeof enabled);
  memset(tells_of_waiting, 0, sizeof tells_of_waiting);
  subscribers = data;
  subscribed_by = getpid();
  __atomic_store_n(&subscribed, to, __ATOMIC_RELEASE);
  return 0;
}

EXPORT int cuptiUnsubscribe(uintptr_t subscriber) {
  if (subscriber != 1)
    return INVALID_PARAMETER;
  __atomic_store_n(&subscribed, NULL, __ATOMIC_RELEASE);
  return 0;
}

EXPORT int cuptiEnableCallback(uint32_t on, uintptr_t subscriber, uint32_t domain, uint32_t call) {
  if (subscriber != 1)
    return INVALID_PARAMETER;
  if (domain == DRIVER_API && call < most_calls)
    enabled[call] = on != 0;
  else if (domain == SYNCHRONIZE && call < sizeof tells_of_waiting)
    tells_of_waiting[call] = on != 0;
  else
    return INVALID_PARAMETER;
  return 0;
}

struct observation {
  callback *to;
  uint32_t call;
  uint64_t shared;
  struct told told;
};

static CUcontext context_of_thread(void) {
  INSPECTION;
  struct context *context = NULL;
  if (call.locked)
    current_context(&context);
  return context ? context->handle : 0;
}

static const char *name_of(CUfunction handle) {
  INSPECTION;
  struct function *f = NULL;
  for (f = call.locked ? functions : NULL; f && f->handle != handle;)
    f = f->next;
  return !f ? "late_write" : f->user ? f->user->name : f->kernel ? f->kernel->name : NULL;
}

static void observe(struct observation *o, uint32_t call, const char *function, const void *parameters,
                    CUfunction launched) {
  o->to = __atomic_load_n(&subscribed, __ATOMIC_ACQUIRE);
  if (!o->to || !enabled[call] || subscribed_by != getpid() || in_host_function) {
    o->to = NULL;
    return;
  }
  o->call = call;
  o->shared = 0;
  o->told = (struct told){.function = function, .parameters = parameters, .symbol = launched ? name_of(launched) : NULL,
                          .context = context_of_thread(), .shared = &o->shared};
  o->to(subscribers, DRIVER_API, call, &o->told);
}

static CUresult observed(struct observation *o, CUresult result) {
  if (o->to && o->to == __atomic_load_n(&subscribed, __ATOMIC_ACQUIRE)) {
    o->told.site = 1;
    o->told.result = &result;
    o->to(subscribers, DRIVER_API, o->call, &o->told);
  }
  return result;
}

static void tell_of_waiting(struct observation *o, uint32_t what, CUstream stream, CUresult result) {
  struct told_of_waiting waited = {o->told.context, stream};
  if (o->to && !result && tells_of_waiting[what])
    o->to(subscribers, SYNCHRONIZE, what, &waited);
}

// fields: of the structure that CUPTI has of the parameters.
#define OBSERVE(call, name, parameters, fields, ...)                                         \
  CUresult emulated_##name parameters;                                                       \
  EXPORT CUresult name parameters {                                                          \
    struct fields given = {__VA_ARGS__};                                                     \
    struct observation o;                                                                    \
    observe(&o, call, #name, &given, 0);                                                     \
    return observed(&o, emulated_##name(__VA_ARGS__));                                       \
  }

#define COPY(call, name, to, from)                                                           \
  OBSERVE(call, name, (to target, from source, size_t size), { to t; from s; size_t n; }, target, source, size)
#define LATE_COPY(call, name, to, from)                                                      \
  OBSERVE(call, name, (to target, from source, size_t size, CUstream stream),                \
          { to t; from s; size_t n; CUstream q; }, target, source, size, stream)

COPY(276, cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY(278, cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY(280, cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr)
LATE_COPY(277, cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
LATE_COPY(279, cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
LATE_COPY(281, cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)
LATE_COPY(306, cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
OBSERVE(319, cuMemcpyPeerAsync,
        (CUdeviceptr target, CUcontext of_target, CUdeviceptr source, CUcontext of_source, size_t size,
         CUstream stream),
        { CUdeviceptr t; CUcontext ct; CUdeviceptr s; CUcontext cs; size_t n; CUstream q; },
        target, of_target, source, of_source, size, stream)

struct attributes;
OBSERVE(776, cuMemcpyBatchAsync,
        (const CUdeviceptr *targets, const CUdeviceptr *sources, const size_t *sizes, size_t count,
         const struct attributes *attributes, const size_t *firsts, size_t attributes_count, size_t *failed,
         CUstream stream),
        { const CUdeviceptr *t; const CUdeviceptr *s; const size_t *z; size_t n; const void *a; const size_t *f;
          size_t c; size_t *e; CUstream q; },
        targets, sources, sizes, count, attributes, firsts, attributes_count, failed, stream)
OBSERVE(796, cuMemcpyBatchAsync_v2,
        (const CUdeviceptr *targets, const CUdeviceptr *sources, const size_t *sizes, size_t count,
         const struct attributes *attributes, const size_t *firsts, size_t attributes_count, CUstream stream),
        { const CUdeviceptr *t; const CUdeviceptr *s; const size_t *z; size_t n; const void *a; const size_t *f;
          size_t c; CUstream q; },
        targets, sources, sizes, count, attributes, firsts, attributes_count, stream)

#define FILL(call, name, type)                                                               \
  OBSERVE(call, name, (CUdeviceptr address, type value, size_t count, CUstream stream),      \
          { CUdeviceptr t; type v; size_t n; CUstream q; }, address, value, count, stream)
#define FILL_ROWS(call, name, type)                                                          \
  OBSERVE(call, name,                                                                        \
          (CUdeviceptr address, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
          { CUdeviceptr t; size_t p; type v; size_t w; size_t h; CUstream q; },                     \
          address, pitch, value, width, height, stream)

FILL(216, cuMemsetD8Async, unsigned char)
FILL(218, cuMemsetD16Async, unsigned short)
FILL(220, cuMemsetD32Async, unsigned)
FILL_ROWS(222, cuMemsetD2D8Async, unsigned char)
FILL_ROWS(224, cuMemsetD2D16Async, unsigned short)
FILL_ROWS(226, cuMemsetD2D32Async, unsigned)

OBSERVE(119, cuEventRecord, (CUevent event, CUstream stream), { CUevent e; CUstream q; }, event, stream)
OBSERVE(120, cuEventQuery, (CUevent event), { CUevent e; }, event)
OBSERVE(121, cuEventSynchronize, (CUevent event), { CUevent e; }, event)
OBSERVE(325, cuEventDestroy_v2, (CUevent event), { CUevent e; }, event)
OBSERVE(295, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
        { CUstream q; CUevent e; unsigned f; }, stream, event, flags)
OBSERVE(124, cuStreamCreate, (CUstream *stream, unsigned flags), { CUstream *q; unsigned f; }, stream, flags)
OBSERVE(367, cuStreamCreateWithPriority, (CUstream *stream, unsigned flags, int priority),
        { CUstream *q; unsigned f; int p; }, stream, flags, priority)
OBSERVE(326, cuStreamDestroy_v2, (CUstream stream), { CUstream q; }, stream)
OBSERVE(125, cuStreamQuery, (CUstream stream), { CUstream q; }, stream)
OBSERVE(539, cuStreamBeginCapture_v2, (CUstream stream, int mode), { CUstream q; int m; }, stream, mode)
OBSERVE(497, cuStreamEndCapture, (CUstream stream, uintptr_t *graph), { CUstream q; uintptr_t *g; }, stream, graph)
OBSERVE(245, cuMemFree_v2, (CUdeviceptr address), { CUdeviceptr a; }, address)
OBSERVE(38, cuMemFreeHost, (void *address), { void *a; }, address)
OBSERVE(302, cuMemHostUnregister, (void *address), { void *a; }, address)
OBSERVE(22, cuModuleUnload, (CUmodule module), { CUmodule m; }, module)

CUresult emulated_cuStreamSynchronize(CUstream stream);
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  struct observation o;
  observe(&o, 126, "cuStreamSynchronize", &stream, 0);
  CUresult result = emulated_cuStreamSynchronize(stream);
  tell_of_waiting(&o, STREAM_SYNCHRONIZED, stream, result);
  return observed(&o, result);
}

CUresult emulated_cuCtxSynchronize(void);
EXPORT CUresult cuCtxSynchronize(void) {
  struct observation o;
  observe(&o, 17, "cuCtxSynchronize", NULL, 0);
  CUresult result = emulated_cuCtxSynchronize();
  tell_of_waiting(&o, CONTEXT_SYNCHRONIZED, 0, result);
  return observed(&o, result);
}

struct launched {
  CUfunction function;
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  void **parameters, **extra;
};

CUresult emulated_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 CUstream stream, void **parameters, void **extra);
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **parameters, void **extra) {
  struct launched given = {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream,
                           parameters, extra};
  struct observation o;
  observe(&o, 307, "cuLaunchKernel", &given, function);
  return observed(&o, emulated_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                              stream, parameters, extra));
}

// Another library's kernel is told of as any launch.
CUresult emulated_emulator_kernel(unsigned long long stream, unsigned long long target, unsigned long long source,
                                  unsigned long count, float scale, float offset);
EXPORT CUresult emulator_kernel(unsigned long long stream, unsigned long long target, unsigned long long source,
                                unsigned long count, float scale, float offset) {
  void *parameters[] = {&target, &source, &count, &scale, &offset};
  struct launched given = {late_kernel, {1, 1, 1}, {1, 1, 1}, 0, stream, parameters, NULL};
  struct observation o;
  observe(&o, 307, "cuLaunchKernel", &given, late_kernel);
  return observed(&o, emulated_emulator_kernel(stream, target, source, count, scale, offset));
}
