// Contexts, the stack of them that each thread has, and access to peers.
#include "emulator.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { deepest_stack = 64 };

static struct context *contexts; // never freed: stacks of other threads hold them

static _Thread_local struct context *stack[deepest_stack];
static _Thread_local int depth;

unsigned this_thread(void) {
  static atomic_uint last;
  static _Thread_local unsigned mine;
  if (mine == 0)
    mine = atomic_fetch_add(&last, 1) + 1;
  return mine;
}

CUresult current_context(struct context **context) {
  *context = depth > 0 ? stack[depth - 1] : NULL;
  if (!*context)
    return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->retained ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct context *find_context(CUcontext handle) {
  struct context *c = contexts;
  while (c && (c->handle != handle || c->retained == 0))
    c = c->next;
  return c;
}

static CUresult known_context(CUcontext handle, struct context **context) {
  *context = find_context(handle);
  if (*context)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_CONTEXT, "unknown context %#lx", (unsigned long)handle);
}

int count_contexts(void) {
  int count = 0;
  for (struct context *c = contexts; c; c = c->next)
    count += c->retained;
  return count;
}

static struct context *new_context(int device) {
  struct context *c = calloc(1, sizeof *c);
  c->handle = new_handle();
  c->device = device;
  c->next = contexts;
  contexts = c;
  return c;
}

static void open_context(struct context *c) {
  c->retained = 1;
  c->peers = 0;
  c->legacy = new_stream(c, 1);
}

static void close_context(struct context *c) {
  finish_context(c);
  free_blocks(c);
  destroy_events(c);
  destroy_streams(c);
  c->legacy = NULL;
  c->retained = 0;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  struct context *c = devices[device].primary;
  if (!c)
    c = devices[device].primary = new_context(device);
  if (c->retained)
    c->retained++;
  else
    open_context(c);
  *handle = c->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  struct context *c = devices[device].primary;
  if (!c || c->retained == 0)
    return invalid(CUDA_ERROR_INVALID_CONTEXT, "device %d is not retained", device);
  if (c->retained == 1)
    close_context(c);
  else
    c->retained--;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  *flags = 0;
  *active = devices[device].primary && devices[device].primary->retained;
  return CUDA_SUCCESS;
}

static CUresult push(struct context *c) {
  if (depth == deepest_stack)
    return invalid(CUDA_ERROR_INVALID_VALUE, "the stack of contexts overflows");
  stack[depth++] = c;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *handle, unsigned flags, CUdevice device) {
  CALL;
  (void)flags;
  RETURN_IF_FAILED(check_device(device));
  struct context *c = new_context(device);
  RETURN_IF_FAILED(push(c));
  open_context(c);
  *handle = c->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext handle) {
  CALL;
  struct context *c;
  RETURN_IF_FAILED(known_context(handle, &c));
  if (c == devices[c->device].primary)
    return invalid(CUDA_ERROR_INVALID_CONTEXT, "primary contexts are released instead");
  close_context(c);
  if (depth > 0 && stack[depth - 1] == c)
    depth--;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *handle) {
  CALL;
  *handle = depth > 0 && stack[depth - 1] ? stack[depth - 1]->handle : 0;
  return CUDA_SUCCESS;
}

// Like the driver's, it replaces the top of the stack, and zero removes it.
EXPORT CUresult cuCtxSetCurrent(CUcontext handle) {
  CALL;
  if (handle == 0) {
    depth -= depth > 0;
    return CUDA_SUCCESS;
  }
  struct context *c;
  RETURN_IF_FAILED(known_context(handle, &c));
  depth -= depth > 0;
  return push(c);
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  CALL;
  struct context *c;
  RETURN_IF_FAILED(known_context(handle, &c));
  return push(c);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *handle) {
  CALL;
  if (depth == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  if (handle)
    *handle = stack[depth]->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  CALL_IN_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

static CUresult find_peer(struct context *context, CUcontext handle, struct context **peer) {
  RETURN_IF_FAILED(known_context(handle, peer));
  return (*peer)->device == context->device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  CALL_IN_CONTEXT;
  struct context *peer;
  RETURN_IF_FAILED(find_peer(context, handle, &peer));
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!peers_possible)
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (context->peers & 1u << peer->device)
    return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  context->peers |= 1u << peer->device;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  CALL_IN_CONTEXT;
  struct context *peer;
  RETURN_IF_FAILED(find_peer(context, handle, &peer));
  if (!(context->peers & 1u << peer->device))
    return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  context->peers &= ~(1u << peer->device);
  return CUDA_SUCCESS;
}
