// Memory pools, and allocation in the order of a stream.
#include "emulator.h"

#include <stdlib.h>
#include <unistd.h>

enum { PINNED_ALLOCATION = 1, DEVICE_LOCATION = 1, BY_DESCRIPTOR = 1, NO_ACCESS = 0, READ_WRITE_ACCESS = 3 };

enum {
  RELEASE_THRESHOLD = 4,
  RESERVED_CURRENT = 5,
  RESERVED_HIGH = 6,
  USED_CURRENT = 7,
  USED_HIGH = 8
};

struct location {
  int type, id;
};

// As callers lay it out; what follows is not used.
struct pool_properties {
  int allocation, handles;
  struct location location;
};

struct access {
  struct location location;
  int flags;
};

struct pool *pools;

struct pool *new_pool(int device) {
  struct pool *p = calloc(1, sizeof *p);
  p->handle = new_handle();
  p->device = device;
  p->access = 1u << device;
  p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
  p->file = -1;
  p->next = pools;
  pools = p;
  return p;
}

CUresult find_pool(CUmemoryPool handle, struct pool **pool) {
  struct pool *p = pools;
  while (p && (p->handle != handle || p->destroyed))
    p = p->next;
  *pool = p;
  if (p)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_VALUE, "unknown pool %#lx", (unsigned long)handle);
}

int count_pools(void) {
  int count = 0;
  for (struct pool *p = pools; p; p = p->next)
    count += !p->is_default && !p->destroyed;
  return count;
}

// Bytes that the device gives a pool at a time.
static uint64_t unit(void) {
  static long bytes;
  if (!bytes)
    bytes = environment_number("HAMR_EMULATOR_POOL_UNIT", 32L << 20);
  return (uint64_t)bytes;
}

static uint64_t in_units(uint64_t size) { return (size + unit() - 1) / unit() * unit(); }

static void keep(struct pool *pool, uint64_t size) {
  devices[pool->device].used -= pool->kept;
  devices[pool->device].used += size;
  pool->kept = size;
}

// Gives what is kept beyond the units that hold the most of what is used and size bytes back.
static void keep_at_most(struct pool *pool, uint64_t size) {
  uint64_t least = in_units(pool->used > size ? pool->used : size);
  if (pool->used + pool->kept > least)
    keep(pool, least - pool->used);
}

static void note_high(struct pool *pool) {
  uint64_t reserved = pool->used + pool->kept;
  pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
  pool->reserved_high = reserved > pool->reserved_high ? reserved : pool->reserved_high;
}

// A device with less room than a unit gives what is asked for.
void pool_took(struct pool *pool, size_t size) {
  uint64_t reserved = pool->used + pool->kept;
  pool->used += size;
  keep(pool, reserved > pool->used ? reserved - pool->used : 0);
  uint64_t rest = in_units(pool->used) - pool->used;
  if (reserved < pool->used && rest <= device_memory - devices[pool->device].used)
    keep(pool, rest);
  note_high(pool);
}

// A destroyed pool lasts until its last block is back.
void end_pool_if_unused(struct pool *pool) {
  if (!pool->destroyed || pool->used > 0)
    return;
  struct pool **at = &pools;
  while (*at != pool)
    at = &(*at)->next;
  *at = pool->next;
  if (pool->file >= 0)
    close(pool->file);
  free(pool);
}

void pool_gave_back(struct pool *pool, size_t size) {
  pool->used -= size;
  keep(pool, pool->kept + size);
  keep_at_most(pool, pool->destroyed ? 0 : pool->threshold);
  end_pool_if_unused(pool);
}

void shrink_pools(int device) {
  for (struct pool *p = pools; p; p = p->next)
    if (p->device == device)
      keep_at_most(p, 0);
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *handle, const struct pool_properties *properties) {
  CALL;
  if (properties->allocation != PINNED_ALLOCATION ||
      properties->location.type != DEVICE_LOCATION)
    return CUDA_ERROR_INVALID_VALUE;
  int device = properties->location.id;
  RETURN_IF_FAILED(check_device(device));
  if (properties->handles && (properties->handles != BY_DESCRIPTOR || !shares_by_descriptor()))
    return CUDA_ERROR_NOT_SUPPORTED;
  int file = properties->handles ? new_file("pool", device) : -1;
  if (properties->handles && file < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  struct pool *p = new_pool(device);
  p->file = file;
  *handle = p->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  CALL;
  struct pool *p;
  RETURN_IF_FAILED(find_pool(handle, &p));
  if (p->is_default)
    return invalid(CUDA_ERROR_INVALID_VALUE, "default pools cannot be destroyed");
  p->destroyed = 1;
  if (p->imported)
    end_pool_if_unused(p);
  else
    pool_gave_back(p, 0);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *handle, CUdevice device) {
  CALL;
  RETURN_IF_FAILED(check_device(device));
  *handle = devices[device].default_pool->handle;
  return CUDA_SUCCESS;
}

static uint64_t *counter(struct pool *pool, int attribute) {
  switch (attribute) {
  case RELEASE_THRESHOLD:
    return &pool->threshold;
  case RESERVED_HIGH:
    return &pool->reserved_high;
  case USED_CURRENT:
    return &pool->used;
  case USED_HIGH:
    return &pool->used_high;
  default:
    return NULL;
  }
}

static CUresult set_counter(struct pool *pool, int attribute, uint64_t value) {
  uint64_t *place = counter(pool, attribute);
  if (!place || attribute == USED_CURRENT || (attribute != RELEASE_THRESHOLD && value != 0))
    return CUDA_ERROR_INVALID_VALUE;
  *place = value;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void *value) {
  CALL;
  struct pool *p;
  RETURN_IF_FAILED(find_pool(handle, &p));
  if (attribute >= RELEASE_THRESHOLD)
    return set_counter(p, attribute, *(uint64_t *)value);
  if (attribute < 1)
    return CUDA_ERROR_INVALID_VALUE;
  p->reuse[attribute - 1] = *(int *)value;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void *value) {
  CALL;
  struct pool *p;
  RETURN_IF_FAILED(find_pool(handle, &p));
  if (attribute >= 1 && attribute < RELEASE_THRESHOLD)
    *(int *)value = p->reuse[attribute - 1];
  else if (attribute == RESERVED_CURRENT)
    *(uint64_t *)value = p->used + p->kept;
  else if (counter(p, attribute))
    *(uint64_t *)value = *counter(p, attribute);
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t size) {
  CALL;
  struct pool *p;
  RETURN_IF_FAILED(find_pool(handle, &p));
  keep_at_most(p, size);
  return CUDA_SUCCESS;
}

static CUresult set_access(struct pool *pool, const struct access *access) {
  int device = access->location.id;
  if (access->location.type != DEVICE_LOCATION)
    return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_FAILED(check_device(device));
  if (access->flags != NO_ACCESS && access->flags != READ_WRITE_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  if (device == pool->device)
    return access->flags == NO_ACCESS ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
  if (!peers_possible)
    return CUDA_ERROR_INVALID_DEVICE;
  // A real driver lets copies fail, or write elsewhere, that go on meanwhile.
  if (pool->used)
    violate("the access of device %d to pool %#lx changes while its memory is in use", device,
            (unsigned long)pool->handle);
  pool->access &= ~(1u << device);
  if (access->flags != NO_ACCESS)
    pool->access |= 1u << device;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool handle, const struct access *list, size_t count) {
  CALL;
  struct pool *p;
  RETURN_IF_FAILED(find_pool(handle, &p));
  for (size_t i = 0; i < count; i++)
    RETURN_IF_FAILED(set_access(p, &list[i]));
  return CUDA_SUCCESS;
}

static CUresult take(struct pool *pool, size_t size, struct stream *stream, CUdeviceptr *at) {
  struct block *b;
  if (pool->imported)
    return invalid(CUDA_ERROR_INVALID_VALUE, "memory is taken from a pool that was imported");
  RETURN_IF_FAILED(new_block_of_pool(pool, size, &b));
  pool_took(pool, size);
  b->birth = hold_item(new_item(NULL, NULL));
  *at = b->address;
  return enqueue(stream, b->birth);
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool handle,
                                        CUstream stream) {
  CALL_IN_CONTEXT;
  struct pool *p;
  struct stream *s;
  RETURN_IF_FAILED(find_pool(handle, &p));
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  if (!s->capturing)
    RETURN_IF_FAILED(end_exclusive_captures());
  return take(p, size, s, address);
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  return take(devices[context->device].default_pool, size, s, address);
}

static CUresult run_free(struct item *item) {
  if (late_bytes(&item->target, "free"))
    release_block(find_numbered(item->target.address, item->target.number));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CALL_IN_CONTEXT;
  struct stream *s;
  struct block *b;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  if (!s->capturing)
    RETURN_IF_FAILED(end_exclusive_captures());
  RETURN_IF_FAILED(block_to_free(address, &b));
  if (b->kind != POOL_MEMORY)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is not memory of a pool", address);
  struct item *item = new_item(run_free, NULL);
  RETURN_IF_FAILED(make_span(&item->target, address, b->size));
  b->freeing = 1;
  item->frees_on = b->device + 1;
  return enqueue(s, item);
}
