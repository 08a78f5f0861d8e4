// Allocation of memory that is not stream-ordered.
#include "emulator.h"

#include <stdlib.h>

static CUresult allocate(enum kind kind, size_t size, struct context *context,
                         CUdeviceptr *address) {
  struct block *b;
  RETURN_IF_FAILED(new_block(kind, size, context->device, &b));
  b->context = context;
  *address = b->address;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  CALL_IN_CONTEXT;
  return allocate(DEVICE_MEMORY, size, context, address);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) {
  CALL_IN_CONTEXT;
  if (flags != 1 && flags != 2)
    return CUDA_ERROR_INVALID_VALUE;
  return allocate(MANAGED_MEMORY, size, context, address);
}

EXPORT CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags) {
  CALL_IN_CONTEXT;
  if (flags > 7)
    return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr at;
  RETURN_IF_FAILED(allocate(PINNED_MEMORY, size, context, &at));
  *address = (void *)(uintptr_t)at;
  return CUDA_SUCCESS;
}

// Memory that several devices reach waits for all of them.
static void finish_users(const struct block *block) {
  if (block->kind >= MANAGED_MEMORY)
    finish_all();
  else
    finish_device(block->device);
}

static CUresult free_now(CUdeviceptr address, int pinned) {
  struct block *b;
  RETURN_IF_FAILED(block_to_free(address, &b));
  if (b->opened)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is to be closed, not freed", address);
  if (b->kind == VIRTUAL_MEMORY)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is to be unmapped, not freed", address);
  if ((b->kind == PINNED_MEMORY) != pinned || b->kind == REGISTERED_MEMORY)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is %s memory", address,
                   pinned ? "device" : "pinned");
  b->freeing = 1;
  finish_users(b);
  release_block(b);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  CALL_IN_CONTEXT;
  return address ? free_now(address, 0) : CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *address) {
  CALL_IN_CONTEXT;
  return free_now((uintptr_t)address, 1);
}

EXPORT CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned flags) {
  CALL_IN_CONTEXT;
  if (flags > 15)
    return CUDA_ERROR_INVALID_VALUE;
  struct block *b;
  RETURN_IF_FAILED(register_block(address, size, context->device, &b));
  b->context = context;
  b->portable = flags & 1;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *address) {
  CALL_IN_CONTEXT;
  return unregister_block((uintptr_t)address);
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  CALL_IN_CONTEXT;
  *available = device_memory - devices[context->device].used;
  *total = device_memory;
  return CUDA_SUCCESS;
}
