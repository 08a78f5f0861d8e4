// Copies. As the real driver does, those out of pageable memory read their source
// at the call and those into it are complete at return; pinned memory is read and
// written late.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

struct copy {
  struct span target, source;
};

enum direction { ANY, TO_HOST, TO_DEVICE, WITHIN_DEVICES };

static CUresult run_copy(struct item *item) {
  char *to = late_bytes(&item->target, "copy");
  const char *staged = item->work;
  const char *from = staged ? staged : late_bytes(&item->source, "copy");
  if (to && from)
    memmove(to, from, item->target.size);
  return CUDA_SUCCESS;
}

static int on_host_only(const struct span *span) { return !span->block; }

static int on_device_only(const struct span *span) {
  return span->block && span->block->kind <= POOL_MEMORY;
}

static CUresult check_direction(enum direction direction, const struct copy *c) {
  if ((direction == TO_HOST || direction == WITHIN_DEVICES) && on_host_only(&c->source))
    return invalid(CUDA_ERROR_INVALID_VALUE, "unknown source %#llx", c->source.address);
  if ((direction == TO_DEVICE || direction == WITHIN_DEVICES) && on_host_only(&c->target))
    return invalid(CUDA_ERROR_INVALID_VALUE, "unknown target %#llx", c->target.address);
  if (direction == TO_HOST && on_device_only(&c->target))
    return invalid(CUDA_ERROR_INVALID_VALUE, "target %#llx is on a device", c->target.address);
  if (direction == TO_DEVICE && on_device_only(&c->source))
    return invalid(CUDA_ERROR_INVALID_VALUE, "source %#llx is on a device", c->source.address);
  return CUDA_SUCCESS;
}

static void check_overlap(const struct copy *c) {
  CUdeviceptr low = c->target.address, high = c->source.address;
  if (low > high) {
    low = c->source.address;
    high = c->target.address;
  }
  if (c->target.block && high - low < c->target.size)
    violate("%zu bytes at %#llx and %#llx overlap", c->target.size, low, high);
}

static CUresult finish_copy(struct item *item) {
  reach(item);
  CUresult error = take_error(item->stream);
  release_item(item);
  return error;
}

// What pageable memory held at the call.
static CUresult stage(struct item *item, const struct span *source) {
  if (!on_host_only(source))
    return CUDA_SUCCESS;
  item->work = malloc(source->size);
  if (!item->work)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(item->work, (const char *)(uintptr_t)source->address, source->size);
  return CUDA_SUCCESS;
}

static CUresult queue_copy(const struct copy *c, struct stream *stream, int wait) {
  struct item *item = new_item(run_copy, NULL);
  CUresult failure = stage(item, &c->source);
  if (failure) {
    release_item(item);
    return failure;
  }
  item->target = c->target;
  item->source = c->source;
  enqueue(stream, hold_item(item));
  if (wait || on_host_only(&c->target))
    return finish_copy(item);
  release_item(item);
  return CUDA_SUCCESS;
}

// Memory that was registered for another context is ordinary memory.
static void look_from(struct span *span, const struct context *context) {
  const struct block *b = span->block;
  if (b && b->kind == REGISTERED_MEMORY && !b->portable && b->context != context)
    *span = (struct span){span->address, span->size, NULL, 0};
}

static CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t size, struct stream *stream,
                     enum direction direction, int wait) {
  struct copy c;
  RETURN_IF_FAILED(make_span(&c.target, target, size));
  RETURN_IF_FAILED(make_span(&c.source, source, size));
  look_from(&c.target, stream->context);
  look_from(&c.source, stream->context);
  RETURN_IF_FAILED(check_direction(direction, &c));
  RETURN_IF_FAILED(check_writable(&c.target));
  if (size == 0)
    return CUDA_SUCCESS;
  check_overlap(&c);
  return queue_copy(&c, stream, wait);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size,
                              CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  return copy(target, source, size, s, ANY, 0);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t size,
                                     CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  return copy((uintptr_t)target, source, size, s, TO_HOST, 0);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t size,
                                     CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  return copy(target, (uintptr_t)source, size, s, TO_DEVICE, 0);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t size,
                                     CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  return copy(target, source, size, s, WITHIN_DEVICES, 0);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size) {
  CALL_IN_CONTEXT;
  return copy((uintptr_t)target, source, size, context->legacy, TO_HOST, 1);
}

// Out of pageable memory it may return once the source was read.
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size) {
  CALL_IN_CONTEXT;
  int pinned = find_block((uintptr_t)source) != NULL;
  return copy(target, (uintptr_t)source, size, context->legacy, TO_DEVICE, pinned);
}

// It does not wait for the host's sake.
EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t size) {
  CALL_IN_CONTEXT;
  return copy(target, source, size, context->legacy, WITHIN_DEVICES, 0);
}

static CUresult check_owner(CUdeviceptr address, CUcontext handle) {
  struct context *c = find_context(handle);
  const struct block *b = find_block(address);
  if (!c)
    return invalid(CUDA_ERROR_INVALID_CONTEXT, "unknown context %#lx", (unsigned long)handle);
  if (b && b->kind <= POOL_MEMORY && b->device != c->device)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is on device %d, not %d", address, b->device,
                   c->device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context,
                                  CUdeviceptr source, CUcontext source_context, size_t size,
                                  CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  RETURN_IF_FAILED(check_owner(target, target_context));
  RETURN_IF_FAILED(check_owner(source, source_context));
  return copy(target, source, size, s, WITHIN_DEVICES, 0);
}
