// What the driver knows of an address.
#include "emulator.h"

#include <string.h>

enum {
  CONTEXT = 1,
  MEMORY_TYPE = 2,
  DEVICE_POINTER = 3,
  HOST_POINTER = 4,
  SYNC_MEMOPS = 6,
  BUFFER_ID = 7,
  IS_MANAGED = 8,
  DEVICE_ORDINAL = 9,
  RANGE_START = 11,
  RANGE_SIZE = 12,
  MAPPED = 13,
  POOL_HANDLE = 17
};

enum { HOST_TYPE = 1, DEVICE_TYPE = 2, NO_DEVICE = -2 };

static size_t width_of(int attribute) {
  switch (attribute) {
  case MEMORY_TYPE:
  case SYNC_MEMOPS:
  case IS_MANAGED:
  case DEVICE_ORDINAL:
  case MAPPED:
    return 4;
  case CONTEXT:
  case DEVICE_POINTER:
  case HOST_POINTER:
  case BUFFER_ID:
  case RANGE_START:
  case RANGE_SIZE:
  case POOL_HANDLE:
    return 8;
  default:
    return 0;
  }
}

// The block that address lies in, or null where the driver does not know any.
static struct block *known(CUdeviceptr address) {
  struct block *b = find_block(address);
  if (!b || b->freed || address < b->address || address - b->address >= b->size)
    return NULL;
  return b->kind != VIRTUAL_MEMORY || mapping_at(b, address) ? b : NULL;
}

// Whether kernels of the current context may reach the block at its own address.
static int locked_here(const struct block *b) {
  struct context *context;
  return b->kind != REGISTERED_MEMORY || b->portable ||
         (current_context(&context) == CUDA_SUCCESS && context == b->context);
}

static uint64_t value_of(int attribute, const struct block *b, CUdeviceptr address) {
  // Of addresses side by side, only what was mapped in one piece.
  const struct mapping *piece = b->kind == VIRTUAL_MEMORY ? mapping_at(b, address) : NULL;
  switch (attribute) {
  case CONTEXT:
    return b->context ? b->context->handle : 0;
  case MEMORY_TYPE:
    return b->kind >= PINNED_MEMORY ? HOST_TYPE : DEVICE_TYPE;
  case DEVICE_POINTER:
    return locked_here(b) ? address : 0;
  case HOST_POINTER:
    return b->kind <= POOL_MEMORY ? 0 : address;
  case BUFFER_ID:
    return b->number;
  case SYNC_MEMOPS:
    return 0;
  case IS_MANAGED:
    return b->kind == MANAGED_MEMORY;
  case DEVICE_ORDINAL:
    return (uint64_t)b->device;
  case RANGE_START:
    return piece ? piece->address : b->address;
  case RANGE_SIZE:
    return piece ? piece->size : b->size;
  case MAPPED:
    return 1;
  default:
    return b->pool ? b->pool->handle : 0;
  }
}

static uint64_t value_if_unknown(int attribute) {
  return attribute == DEVICE_ORDINAL ? (uint64_t)NO_DEVICE : 0;
}

EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
  CALL;
  const struct block *b = known(address);
  if (!b || width_of(attribute) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = value_of(attribute, b, address);
  if (attribute == HOST_POINTER && value == 0)
    return CUDA_ERROR_INVALID_VALUE;
  memcpy(data, &value, width_of(attribute));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttributes(unsigned count, const int *attributes, void **data,
                                       CUdeviceptr address) {
  CALL;
  const struct block *b = known(address);
  for (unsigned i = 0; i < count; i++) {
    if (width_of(attributes[i]) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    uint64_t value =
        b ? value_of(attributes[i], b, address) : value_if_unknown(attributes[i]);
    memcpy(data[i], &value, width_of(attributes[i]));
  }
  return CUDA_SUCCESS;
}
