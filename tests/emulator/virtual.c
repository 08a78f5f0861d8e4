// Addresses that memory is mapped to: reservations, and what is mapped where.
// Reservations side by side are one block, as work may go from one into the next. The
// emulator works on another mapping of the same memory, which is made anew when it moves.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_pieces = 512 };
enum { DEVICE_LOCATION = 1, NO_ACCESS = 0, READ_ACCESS = 1, READ_WRITE_ACCESS = 3 };

struct addresses {
  size_t reserved[most_pieces]; // bytes of each reservation
  int freed[most_pieces];
  int reservations;
  size_t spare; // bytes behind the last that nobody has yet
  struct mapping mapped[most_pieces]; // in the order of addresses
  int mappings;
};

struct location {
  int type, id;
};

struct access {
  struct location location;
  int flags;
};

static size_t extent(const struct addresses *a) {
  size_t size = 0;
  for (int i = 0; i < a->reservations; i++)
    size += a->reserved[i];
  return size;
}

const struct mapping *mapping_at(const struct block *b, CUdeviceptr address) {
  for (int i = 0; i < b->addresses->mappings; i++) {
    const struct mapping *m = &b->addresses->mapped[i];
    if (address >= m->address && address - m->address < m->size)
      return m;
  }
  return NULL;
}

// Whether all bytes are mapped, and each to one of the devices, or to any for 0.
int is_mapped(const struct block *b, CUdeviceptr address, size_t size, unsigned access) {
  CUdeviceptr end = address + (size ? size : 1);
  while (address < end) {
    const struct mapping *m = mapping_at(b, address);
    if (!m || !(access ? m->access & access : m->access))
      return 0;
    address = m->address + m->size;
  }
  return 1;
}

// Likewise, for writing.
int is_writable(const struct block *b, CUdeviceptr address, size_t size, unsigned access) {
  CUdeviceptr end = address + (size ? size : 1);
  while (address < end) {
    const struct mapping *m = mapping_at(b, address);
    if (!m || !(access ? m->writable & access : m->writable))
      return 0;
    address = m->address + m->size;
  }
  return 1;
}

static char *reserve(size_t size) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *at = mmap(NULL, size + granularity, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED)
    return NULL;
  size_t before = (granularity - (uintptr_t)at % granularity) % granularity;
  if (before)
    munmap(at, before);
  munmap(at + before + size, granularity - before);
  return at + before;
}

static CUresult show(struct block *b, const struct mapping *m) {
  char *to = b->data + (m->address - b->address);
  int flags = MAP_SHARED | MAP_FIXED;
  void *at = mmap(to, m->size, PROT_READ | PROT_WRITE, flags, m->memory->file, 0);
  return at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// Gives the emulator's own mapping room for all that is reserved.
static CUresult make_alias(struct block *b) {
  size_t size = extent(b->addresses);
  char *alias = reserve(size);
  if (!alias)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (b->alias)
    munmap(b->alias, b->mapped);
  b->alias = b->data = alias;
  b->mapped = size;
  for (int i = 0; i < b->addresses->mappings; i++)
    RETURN_IF_FAILED(show(b, &b->addresses->mapped[i]));
  return CUDA_SUCCESS;
}

// More addresses behind those of a block, if nobody has them. 0: they are somebody's.
static int extend(CUdeviceptr wanted, size_t size) {
  struct block *b = wanted ? find_block(wanted - 1) : NULL;
  struct addresses *a = b && !b->freed ? b->addresses : NULL;
  if (!a || b->address + extent(a) != wanted || a->spare < size || a->reservations == most_pieces)
    return 0;
  a->spare -= size;
  a->reserved[a->reservations++] = size;
  return make_alias(b) == CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment,
                                    CUdeviceptr wanted, unsigned long long flags) {
  CALL;
  if (size == 0 || size % granularity || alignment & (alignment - 1) || alignment > granularity)
    return invalid(CUDA_ERROR_INVALID_VALUE, "addresses for %zu bytes, aligned to %zu", size, alignment);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  *address = wanted;
  if (extend(wanted, size))
    return CUDA_SUCCESS;
  size_t spare = (size_t)environment_number("HAMR_EMULATOR_ADDRESSES", 64L << 20);
  struct block *b = calloc(1, sizeof *b);
  b->addresses = calloc(1, sizeof *b->addresses);
  b->kind = VIRTUAL_MEMORY;
  b->device = -1;
  b->number = next_number();
  b->addresses->reserved[b->addresses->reservations++] = size;
  b->addresses->spare = spare;
  b->reserved_size = size + spare;
  b->reserved = reserve(b->reserved_size);
  b->address = (uintptr_t)b->reserved;
  if (!b->reserved || make_alias(b) != CUDA_SUCCESS) {
    free(b->addresses);
    free(b);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  insert_block(b);
  *address = b->address;
  return CUDA_SUCCESS;
}

// The block of addresses that are reserved and not freed.
static CUresult find_addresses(CUdeviceptr address, struct block **block) {
  struct block *b = *block = find_block(address);
  if (!b || b->kind != VIRTUAL_MEMORY || b->freed)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is not reserved", address);
  return CUDA_SUCCESS;
}

// The reservation that address is in.
static int reservation_of(const struct block *b, CUdeviceptr address, CUdeviceptr *start) {
  *start = b->address;
  for (int i = 0; i < b->addresses->reservations; i++) {
    if (address - *start < b->addresses->reserved[i])
      return b->addresses->freed[i] ? -1 : i;
    *start += b->addresses->reserved[i];
  }
  return -1;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  CALL;
  struct block *b;
  RETURN_IF_FAILED(find_addresses(address, &b));
  struct addresses *a = b->addresses;
  CUdeviceptr start;
  int i = reservation_of(b, address, &start);
  if (i < 0 || start != address || a->reserved[i] != size)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%zu bytes at %#llx are no reservation", size, address);
  for (int j = 0; j < a->mappings; j++)
    if (a->mapped[j].address - address < size)
      return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is freed while memory is mapped there", address);
  a->freed[i] = 1;
  for (int j = 0; j < a->reservations; j++)
    if (!a->freed[j])
      return CUDA_SUCCESS;
  munmap(b->alias, b->mapped);
  b->data = b->alias = NULL;
  b->freeing = b->freed = 1;
  remember_freed(b);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  CALL;
  struct block *b;
  RETURN_IF_FAILED(find_addresses((uintptr_t)address, &b));
  const struct mapping *m = mapping_at(b, (uintptr_t)address);
  if (!m)
    return invalid(CUDA_ERROR_INVALID_VALUE, "nothing is mapped at %p", address);
  m->memory->handles++;
  *handle = m->memory->handle;
  return CUDA_SUCCESS;
}

static CUresult check_place(const struct block *b, CUdeviceptr address, size_t size) {
  CUdeviceptr start;
  int i = reservation_of(b, address, &start);
  if (i < 0 || size > b->addresses->reserved[i] - (size_t)(address - start))
    return invalid(CUDA_ERROR_INVALID_VALUE, "%zu bytes at %#llx are not in one reservation", size, address);
  for (int j = 0; j < b->addresses->mappings; j++) {
    const struct mapping *m = &b->addresses->mapped[j];
    if (m->address < address + size && address < m->address + m->size)
      return invalid(CUDA_ERROR_INVALID_VALUE, "%#llx is mapped already", address);
  }
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags) {
  CALL;
  struct block *b;
  struct physical *p;
  RETURN_IF_FAILED(find_addresses(address, &b));
  RETURN_IF_FAILED(find_memory(handle, &p));
  if (p->shared && size > p->size)
    return CUDA_ERROR_INVALID_VALUE; // who has imported it cannot ask how large it is
  if (address % granularity || size != p->size || offset || flags)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%zu bytes from %zu on at %#llx, of %zu", size, offset, address, p->size);
  RETURN_IF_FAILED(check_place(b, address, size));
  struct addresses *a = b->addresses;
  if (b->device >= 0 && a->mappings && b->device != p->device)
    return invalid(CUDA_ERROR_INVALID_VALUE, "memory of two devices side by side");
  if (a->mappings == most_pieces)
    return CUDA_ERROR_OUT_OF_MEMORY;
  struct mapping m = {.address = address, .size = size, .memory = p};
  RETURN_IF_FAILED(show(b, &m));
  int i = a->mappings++;
  for (; i > 0 && a->mapped[i - 1].address > address; i--)
    a->mapped[i] = a->mapped[i - 1];
  a->mapped[i] = m;
  p->mappings++;
  b->device = p->device;
  const struct mapping *last = &a->mapped[a->mappings - 1];
  b->size = (size_t)(last->address - b->address) + last->size;
  return CUDA_SUCCESS;
}

// The first of the mappings that a range consists of, and their number.
static CUresult find_mappings(struct block *b, CUdeviceptr address, size_t size, int *first, int *count) {
  struct addresses *a = b->addresses;
  *first = 0;
  while (*first < a->mappings && a->mapped[*first].address != address)
    ++*first;
  CUdeviceptr at = address;
  for (*count = 0; *first + *count < a->mappings && a->mapped[*first + *count].address == at && at < address + size;
       ++*count)
    at += a->mapped[*first + *count].size;
  if (*count == 0 || at != address + size)
    return invalid(CUDA_ERROR_INVALID_VALUE, "%zu bytes at %#llx are not what was mapped", size, address);
  return CUDA_SUCCESS;
}

// The driver promises no wait: nothing may use the memory any more.
EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  CALL;
  struct block *b;
  int first, count;
  RETURN_IF_FAILED(find_addresses(address, &b));
  RETURN_IF_FAILED(find_mappings(b, address, size, &first, &count));
  if (is_pending_on(address, size))
    violate("unmap of %zu bytes at %#llx, which work that is pending uses", size, address);
  struct addresses *a = b->addresses;
  mmap(b->data + (address - b->address), size, PROT_NONE,
       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int i = first; i < first + count; i++) {
    a->mapped[i].memory->mappings--;
    end_unused(a->mapped[i].memory);
  }
  memmove(a->mapped + first, a->mapped + first + count, (size_t)(a->mappings - first - count) * sizeof *a->mapped);
  a->mappings -= count;
  return CUDA_SUCCESS;
}

static CUresult check_access(const struct block *b, const struct access *access) {
  if (access->location.type != DEVICE_LOCATION)
    return CUDA_ERROR_INVALID_VALUE;
  RETURN_IF_FAILED(check_device(access->location.id));
  if (access->flags != NO_ACCESS && access->flags != READ_ACCESS && access->flags != READ_WRITE_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  return access->location.id == b->device || peers_possible ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const struct access *list, size_t count) {
  CALL;
  struct block *b;
  int first, pieces;
  RETURN_IF_FAILED(find_addresses(address, &b));
  RETURN_IF_FAILED(find_mappings(b, address, size, &first, &pieces));
  for (size_t i = 0; i < count; i++) {
    RETURN_IF_FAILED(check_access(b, &list[i]));
    unsigned device = 1u << list[i].location.id;
    for (int j = first; j < first + pieces; j++) {
      struct mapping *m = &b->addresses->mapped[j];
      m->access = list[i].flags == NO_ACCESS ? m->access & ~device : m->access | device;
      m->writable = list[i].flags == READ_WRITE_ACCESS ? m->writable | device : m->writable & ~device;
    }
  }
  return CUDA_SUCCESS;
}
