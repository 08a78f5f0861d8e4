// Memory, what is known of addresses, copies and fills.
#include "stand_in.h"

EXPORT int hipMalloc(void **at, size_t size) { return IN_CONTEXT(cuMemAlloc_v2, at, size); }

EXPORT int hipFree(void *at) { return IN_CONTEXT(cuMemFree_v2, at); }

EXPORT int hipMallocManaged(void **at, size_t size, unsigned flags) {
  return IN_CONTEXT(cuMemAllocManaged, at, size, flags);
}

EXPORT int hipHostMalloc(void **at, size_t size, unsigned flags) {
  return IN_CONTEXT(cuMemHostAlloc, at, size, flags);
}

EXPORT int hipHostFree(void *at) { return IN_CONTEXT(cuMemFreeHost, at); }

EXPORT int hipMemGetInfo(size_t *unused, size_t *total) {
  return IN_CONTEXT(cuMemGetInfo_v2, unused, total);
}

// hipPointerAttribute_t
struct attributes {
  int kind, device;
  void *on_device, *on_host;
  int managed;
  unsigned flags;
};

EXPORT int hipPointerGetAttributes(struct attributes *found, void *address) {
  enum { HOST = 1 };
  int asked[] = {2, 9, 8};
  struct {
    int kind, device, managed;
  } answers = {0, 0, 0};
  void *targets[] = {&answers.kind, &answers.device, &answers.managed};
  int code = IN_CONTEXT(cuPointerGetAttributes, 3u, asked, targets, address);
  if (code)
    return code;
  int before_six = runtime_version() < 60000000;
  if (!answers.kind && before_six)
    return failed(INVALID_VALUE);
  if (!answers.kind)
    *found = (struct attributes){.kind = 0, .device = -2};
  else
    *found = (struct attributes){
        .kind = answers.managed && !before_six ? 3 : (answers.kind == HOST ? 0 : 1) + !before_six,
        .device = answers.device, .on_device = address,
        .on_host = answers.kind == HOST ? address : 0, .managed = answers.managed};
  return SUCCESS;
}

EXPORT int hipMemGetAddressRange(void **start, size_t *size, void *address) {
  int asked[] = {11, 12};
  void *targets[] = {start, size};
  int code = IN_CONTEXT(cuPointerGetAttributes, 2u, asked, targets, address);
  return code || *start ? code : failed(NOT_FOUND);
}

EXPORT int hipMemPoolCreate(void **pool, void *properties) {
  return IN_CONTEXT(cuMemPoolCreate, pool, properties);
}

EXPORT int hipMemPoolDestroy(void *pool) { return IN_CONTEXT(cuMemPoolDestroy, pool); }

EXPORT int hipMemPoolSetAttribute(void *pool, int attribute, void *value) {
  return IN_CONTEXT(cuMemPoolSetAttribute, pool, attribute, value);
}

EXPORT int hipMemPoolGetAttribute(void *pool, int attribute, void *value) {
  return IN_CONTEXT(cuMemPoolGetAttribute, pool, attribute, value);
}

EXPORT int hipMemPoolSetAccess(void *pool, void *accesses, size_t count) {
  return IN_CONTEXT(cuMemPoolSetAccess, pool, accesses, count);
}

EXPORT int hipMemPoolTrimTo(void *pool, size_t keep) {
  return IN_CONTEXT(cuMemPoolTrimTo, pool, keep);
}

EXPORT int hipMallocFromPoolAsync(void **at, size_t size, void *pool, uintptr_t stream) {
  ON_STREAM(stream, cuMemAllocFromPoolAsync, at, size, pool, handle);
}

EXPORT int hipFreeAsync(void *at, uintptr_t stream) {
  ON_STREAM(stream, cuMemFreeAsync, at, handle);
}

EXPORT int hipMemcpyAsync(void *to, void *from, size_t size, int kind, uintptr_t stream) {
  if (kind < 0 || kind > 4)
    return failed(INVALID_DIRECTION);
  ON_STREAM(stream, cuMemcpyAsync, to, from, size, handle);
}

EXPORT int hipMemcpyDtoH(void *to, void *from, size_t size) {
  return IN_CONTEXT(cuMemcpyDtoH_v2, to, from, size);
}

EXPORT int hipMemcpyDtoHAsync(void *to, void *from, size_t size, uintptr_t stream) {
  ON_STREAM(stream, cuMemcpyDtoHAsync_v2, to, from, size, handle);
}

EXPORT int hipMemcpyHtoDAsync(void *to, void *from, size_t size, uintptr_t stream) {
  ON_STREAM(stream, cuMemcpyHtoDAsync_v2, to, from, size, handle);
}

EXPORT int hipMemcpyDtoDAsync(void *to, void *from, size_t size, uintptr_t stream) {
  ON_STREAM(stream, cuMemcpyDtoDAsync_v2, to, from, size, handle);
}

EXPORT int hipMemcpyPeerAsync(void *to, int to_device, void *from, int from_device, size_t size,
                              uintptr_t stream) {
  void *target = context_of(to_device), *source = context_of(from_device);
  if (!target || !source)
    return failed(INVALID_DEVICE);
  ON_STREAM(stream, cuMemcpyPeerAsync, to, target, from, source, size, handle);
}

EXPORT int hipMemsetD8Async(void *to, unsigned char value, size_t count, uintptr_t stream) {
  ON_STREAM(stream, cuMemsetD8Async, to, value, count, handle);
}

EXPORT int hipMemsetD16Async(void *to, unsigned short value, size_t count, uintptr_t stream) {
  ON_STREAM(stream, cuMemsetD16Async, to, value, count, handle);
}

EXPORT int hipMemsetD32Async(void *to, int value, size_t count, uintptr_t stream) {
  ON_STREAM(stream, cuMemsetD32Async, to, value, count, handle);
}

EXPORT int hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                            uintptr_t stream) {
  ON_STREAM(stream, cuMemsetD2D8Async, to, pitch, value & 255, width, height, handle);
}
