// Blocks of memory. Device memory has addresses that the host cannot touch: they
// are reserved without access, and the emulator works on another mapping. Every
// block ends before a page without access, and freed ones stay without access
// until many more were freed.
#include "emulator.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { alignment = 256, page = 4096, garbage = 0xDB, most_freed = 4096, most_blocks = 12000 };

static struct block **blocks; // by address
static int block_count, room_for_blocks;
static unsigned long last_number;

// The freed blocks, oldest first, as a ring.
static struct block *freed[most_freed];
static int freed_count, oldest;

unsigned long next_number(void) { return ++last_number; }

static size_t rounded(size_t size, size_t to) { return (size + to - 1) / to * to; }

static char *map(size_t size, int protection) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (protection == PROT_NONE ? MAP_NORESERVE : 0);
  void *at = mmap(NULL, size, protection, flags, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

// The index of the first block that starts after address.
static int index_after(CUdeviceptr address) {
  int low = 0, high = block_count;
  while (low < high) {
    int middle = (low + high) / 2;
    if ((uintptr_t)blocks[middle]->reserved <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void insert_block(struct block *block) {
  if (block_count == room_for_blocks) {
    room_for_blocks = 2 * room_for_blocks + 64;
    blocks = realloc(blocks, (size_t)room_for_blocks * sizeof(struct block *));
  }
  int i = index_after((uintptr_t)block->reserved);
  memmove(blocks + i + 1, blocks + i, (size_t)(block_count - i) * sizeof(struct block *));
  blocks[i] = block;
  block_count++;
}

static void drop(struct block *block) {
  int i = index_after((uintptr_t)block->reserved);
  memmove(blocks + i - 1, blocks + i, (size_t)(block_count - i) * sizeof(struct block *));
  block_count--;
  if (block->kind != REGISTERED_MEMORY)
    munmap(block->reserved, block->reserved_size);
  free(block->addresses);
  free(block);
}

// The block that address is in, freed ones and guard pages included, or null.
struct block *find_block(CUdeviceptr address) {
  int i = index_after(address);
  if (i == 0 || address >= (uintptr_t)blocks[i - 1]->reserved + blocks[i - 1]->reserved_size)
    return NULL;
  return blocks[i - 1];
}

struct block *find_numbered(CUdeviceptr address, unsigned long number) {
  struct block *b = find_block(address);
  return b && b->number == number ? b : NULL;
}

static int on_device(const struct block *b) { return b->kind <= POOL_MEMORY; }

static char *map_file(const struct block *b) {
  int file = b->opened ? b->opened - 1 : b->pool->file;
  void *at = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)b->offset);
  return at == MAP_FAILED ? NULL : at;
}

static int in_file(const struct block *b) { return b->opened || (b->pool && b->pool->file >= 0); }

static int imported(const struct block *b) { return b->opened || (b->pool && b->pool->imported); }

struct block *next_block(int *i) { return *i < block_count ? blocks[(*i)++] : NULL; }

static CUresult map_block(struct block *b) {
  b->mapped = rounded(b->size, page);
  b->reserved_size = b->mapped + page;
  b->reserved = map(b->reserved_size, PROT_NONE);
  if (!b->reserved)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (on_device(b))
    b->alias = in_file(b) ? map_file(b) : map(b->mapped, PROT_READ | PROT_WRITE);
  else if (mprotect(b->reserved, b->mapped, PROT_READ | PROT_WRITE) == 0)
    b->alias = b->reserved;
  if (!b->alias) {
    munmap(b->reserved, b->reserved_size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  size_t offset = b->mapped - rounded(b->size, alignment);
  b->data = b->alias + offset;
  b->address = (uintptr_t)b->reserved + offset;
  if (!imported(b))
    memset(b->alias, garbage, b->mapped);
  return CUDA_SUCCESS;
}

static size_t limit_of(enum kind kind) {
  if (kind == PINNED_MEMORY)
    return (size_t)sysconf(_SC_PHYS_PAGES) * page;
  return device_memory;
}

static int fits(enum kind kind, size_t size, int device) {
  size_t used = kind == PINNED_MEMORY ? 0 : devices[device].used;
  return used <= limit_of(kind) && size <= limit_of(kind) - used;
}

int make_room(enum kind kind, size_t size, int device) {
  if (size > limit_of(kind))
    return 0;
  if (fits(kind, size, device))
    return 1;
  finish_frees(device);
  if (!fits(kind, size, device))
    shrink_pools(device);
  return fits(kind, size, device);
}

static CUresult add_block(enum kind kind, size_t size, int device, struct pool *pool, uint64_t offset,
                          int opened, struct block **block) {
  if (block_count > most_blocks)
    finish_frees(device); // a process may have only so many mappings
  struct block *b = calloc(1, sizeof *b);
  b->kind = kind;
  b->size = size;
  b->device = device;
  b->number = next_number();
  b->pool = pool;
  b->offset = offset;
  b->opened = opened;
  if (map_block(b) != CUDA_SUCCESS) {
    free(b);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (kind != PINNED_MEMORY && !imported(b))
    devices[device].used += size;
  insert_block(b);
  *block = b;
  return CUDA_SUCCESS;
}

static CUresult check_room(enum kind kind, size_t size, int device) {
  if (size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return make_room(kind, size, device) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult new_block(enum kind kind, size_t size, int device, struct block **block) {
  RETURN_IF_FAILED(check_room(kind, size, device));
  return add_block(kind, size, device, NULL, 0, 0, block);
}

// In the pool's file, if it has one: each at a place of its own, which no other one has later.
CUresult new_block_of_pool(struct pool *pool, size_t size, struct block **block) {
  RETURN_IF_FAILED(check_room(POOL_MEMORY, size, pool->device));
  uint64_t offset = pool->end;
  if (pool->file >= 0) {
    pool->end += rounded(size, page);
    if (ftruncate(pool->file, (off_t)pool->end) != 0)
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return add_block(POOL_MEMORY, size, pool->device, pool, offset, 0, block);
}

// That of a place in an imported pool which nobody has freed yet, or null.
static struct block *imported_block(const struct pool *pool, uint64_t offset) {
  for (int i = 0; i < block_count; i++)
    if (!blocks[i]->freeing && blocks[i]->pool == pool && blocks[i]->offset == offset)
      return blocks[i];
  return NULL;
}

// What is imported already keeps its address, and is not counted: one free ends it.
CUresult import_block(struct pool *pool, uint64_t offset, size_t size, struct block **block) {
  if ((*block = imported_block(pool, offset)))
    return CUDA_SUCCESS;
  RETURN_IF_FAILED(add_block(POOL_MEMORY, size, pool->device, pool, offset, 0, block));
  use_part(pool->file, offset, size, 1);
  pool->used += size;
  return CUDA_SUCCESS;
}

// The file is the block's from now on, unless that fails.
CUresult open_block(int file, size_t size, int device, struct block **block) {
  return add_block(DEVICE_MEMORY, size, device, NULL, 0, file + 1, block);
}

static void leave_file(const struct block *b, int file) {
  if (others_use(file, b->offset, b->size))
    violate("%#llx is freed, which another process has imported", b->address);
}

static void close_files(struct block *b) {
  if (b->exported) {
    leave_file(b, b->exported - 1);
    close(b->exported - 1);
  }
  if (b->opened)
    close(b->opened - 1);
  b->exported = 0;
}

static void leave_pool(const struct block *b) {
  if (imported(b)) {
    if (!imported_block(b->pool, b->offset)) // again, while this one was being freed
      use_part(b->pool->file, b->offset, b->size, 0);
    b->pool->used -= b->size;
    end_pool_if_unused(b->pool);
    return;
  }
  devices[b->device].used -= b->size;
  if (in_file(b))
    leave_file(b, b->pool->file);
  if (in_file(b))
    fallocate(b->pool->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)b->offset, (off_t)b->mapped);
  pool_gave_back(b->pool, b->size);
}

// Memory of the program's own becomes a block where it is.
CUresult register_block(char *at, size_t size, int device, struct block **block) {
  if (size == 0 || !at)
    return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < block_count; i++)
    if (blocks[i]->reserved < at + size && at < blocks[i]->reserved + blocks[i]->reserved_size)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  struct block *b = calloc(1, sizeof *b);
  b->kind = REGISTERED_MEMORY;
  b->size = b->mapped = b->reserved_size = size;
  b->device = device;
  b->number = ++last_number;
  b->address = (uintptr_t)at;
  b->data = b->alias = b->reserved = at;
  insert_block(b);
  *block = b;
  return CUDA_SUCCESS;
}

// The driver forgets the memory at once: work that still uses it goes wrong.
CUresult unregister_block(CUdeviceptr address) {
  struct block *b = find_block(address);
  if (!b || b->kind != REGISTERED_MEMORY || b->address != address)
    return invalid(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "%#llx is not registered", address);
  drop(b);
  return CUDA_SUCCESS;
}

CUresult block_to_free(CUdeviceptr address, struct block **block) {
  struct block *b = *block = find_block(address);
  if (!b)
    return invalid(CUDA_ERROR_INVALID_VALUE, "free of unknown address %#llx", address);
  if (b->freeing)
    return invalid(CUDA_ERROR_INVALID_VALUE, "double free of %#llx", address);
  if (b->address != address)
    return invalid(CUDA_ERROR_INVALID_VALUE, "free of %#llx, inside the block at %#llx", address,
                   b->address);
  return CUDA_SUCCESS;
}

// The host can overrun a block by less than its alignment without a fault.
static void check_tail(const struct block *b) {
  for (size_t i = b->size; i < rounded(b->size, alignment); i++)
    if ((unsigned char)b->data[i] != garbage) {
      violate("the block at %#llx of %zu bytes was written at offset %zu", b->address, b->size, i);
      return;
    }
}

void remember_freed(struct block *b) {
  if (freed_count == most_freed)
    drop(freed[oldest]);
  else
    freed_count++;
  freed[oldest] = b;
  oldest = (oldest + 1) % most_freed;
}

// Takes the memory away.
void release_block(struct block *b) {
  if (b->kind == REGISTERED_MEMORY) {
    drop(b);
    return;
  }
  check_tail(b);
  b->freeing = b->freed = 1;
  if (on_device(b))
    munmap(b->alias, b->mapped);
  else
    mmap(b->reserved, b->mapped, PROT_NONE,
         MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b->pool)
    leave_pool(b);
  else if (b->kind != PINNED_MEMORY && !b->opened)
    devices[b->device].used -= b->size;
  close_files(b);
  release_item(b->birth);
  b->data = b->alias = NULL;
  b->birth = NULL;
  remember_freed(b);
}

static struct block *block_of(const struct context *context) {
  for (int i = 0; i < block_count; i++)
    if (blocks[i]->context == context && !blocks[i]->freed)
      return blocks[i];
  return NULL;
}

// A context takes its memory with it.
void free_blocks(struct context *context) {
  struct block *b;
  while ((b = block_of(context))) {
    violate("%zu bytes at %#llx were not freed before their context", b->size, b->address);
    release_block(b);
  }
}

void count_blocks(int *count, size_t *bytes) {
  count_physical(count, bytes);
  for (int i = 0; i < block_count; i++)
    if (!blocks[i]->freeing) {
      ++*count;
      *bytes += blocks[i]->kind == VIRTUAL_MEMORY ? 0 : blocks[i]->size;
    }
}
