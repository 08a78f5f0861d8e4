// Kernels as host code: how they reach device memory, and one that stands in for
// those of other libraries.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { page = 4096 };

// The kernel that runs at the moment; the mutex is held meanwhile.
static struct context *running_in;
static CUresult running_error;

// Bad accesses go somewhere harmless, so that the test goes on and reports them.
static void *scratch_of(size_t size) {
  static char *scratch;
  static size_t room;
  if (size <= room)
    return scratch;
  free(scratch);
  scratch = calloc(size / page + 1, page);
  room = scratch ? (size / page + 1) * page : 0;
  return scratch;
}

static void *illegal(const char *why, CUdeviceptr address, size_t size) {
  violate("a kernel on device %d: %s at %#llx", running_in->device, why, address);
  running_error = CUDA_ERROR_ILLEGAL_ADDRESS;
  return scratch_of(size);
}

// What kernels are lent of memory that they may only read: copies, as nothing tells what they do there.
// One that was changed was written to; the memory itself may have been, at other addresses.
enum { most_lent = 64 };
static struct lent {
  char *copy; // and behind it another one, to compare it with
  CUdeviceptr address;
  size_t size, room;
} lent[most_lent];
static unsigned next_lent;

static void end_lent(struct lent *l) {
  if (l->size && memcmp(l->copy, l->copy + l->size, l->size) != 0)
    illegal("a write to memory that is read-only", l->address, l->size);
  l->size = 0;
}

static void *lend(const char *memory, CUdeviceptr address, size_t size) {
  struct lent *l = &lent[next_lent++ % most_lent];
  end_lent(l);
  if (size > l->room) {
    free(l->copy);
    l->copy = malloc(2 * size);
    l->room = size;
  }
  l->address = address;
  l->size = size;
  memcpy(l->copy + size, memory, size);
  return memcpy(l->copy, memory, size);
}

// What the kernel used last and may use whole: looking for it for each word would take most of the time.
enum { most_used = 4 };
static struct used {
  CUdeviceptr address;
  size_t size;
  char *data;
} used[most_used];
static unsigned next_used;

static void note_used(const struct block *b) {
  if (b->kind != VIRTUAL_MEMORY && b->kind != REGISTERED_MEMORY)
    used[next_used++ % most_used] = (struct used){b->address, b->size, b->data};
}

EXPORT void *hamr_device_pointer(unsigned long long address, unsigned long long size) {
  for (int i = 0; i < most_used; i++) {
    unsigned long long offset = address - used[i].address;
    if (offset < used[i].size && size <= used[i].size - offset)
      return used[i].data + offset;
  }
  const struct block *b = find_block(address);
  if (!b)
    return illegal("unknown memory", address, size);
  if (b->freed)
    return illegal("use after free", address, size);
  if (b->kind == VIRTUAL_MEMORY && !is_mapped(b, address, size, 0))
    return illegal("memory that is not mapped", address, size);
  if (address < b->address || address - b->address > b->size ||
      size > b->size - (address - b->address))
    return illegal("out of bounds", address, size);
  if (!may_reach(running_in, b, address, size))
    return illegal("memory of another device, without access,", address, size);
  if (b->birth && !b->birth->done)
    violate("a kernel touches %#llx before the stream of its allocation came to it", address);
  if (!may_write(running_in, b, address, size))
    return lend(b->data + (address - b->address), address, size);
  note_used(b);
  return b->data + (address - b->address);
}

CUresult run_on_device(struct context *context, void (*kernel)(void *), void *argument) {
  running_in = context;
  running_error = CUDA_SUCCESS;
  memset(used, 0, sizeof used);
  kernel(argument);
  for (int i = 0; i < most_lent; i++)
    end_lent(&lent[i]);
  return running_error;
}

struct scaling {
  CUdeviceptr target, source;
  size_t count;
  float scale, offset;
};

static void scale(void *argument) {
  const struct scaling *s = argument;
  size_t size = s->count * sizeof(float);
  char *to = hamr_device_pointer(s->target, size);
  const char *from = s->source && !running_error ? hamr_device_pointer(s->source, size) : NULL;
  for (size_t i = 0; i < s->count && !running_error; i++) {
    float value = 0;
    if (from)
      memcpy(&value, from + i * sizeof value, sizeof value);
    value = value * s->scale + s->offset;
    memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

static CUresult run_scaling(struct item *item) {
  return run_on_device(item->stream->context, scale, item->work);
}

// Whether the memory is right is found when the kernel runs.
static void note_touched(struct span *span, CUdeviceptr address, size_t count) {
  struct block *b = find_block(address);
  *span = (struct span){address, count * sizeof(float), b, b ? b->number : 0};
}

static CUresult launch_scaling(CUstream stream, struct scaling scaling) {
  struct context *context;
  struct stream *s;
  RETURN_IF_FAILED(current_context(&context));
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  struct scaling *work = malloc(sizeof *work);
  *work = scaling;
  struct item *item = new_item(run_scaling, work);
  note_touched(&item->target, scaling.target, scaling.count);
  note_touched(&item->source, scaling.source, scaling.count);
  return enqueue(s, item);
}

// Queues target[i] = source[i] * scale + offset in the current context, as another
// library might; without a source, target[i] = offset.
EXPORT int emulator_kernel(unsigned long long stream, unsigned long long target,
                           unsigned long long source, unsigned long count, float scale,
                           float offset) {
  INSPECTION;
  if (!call.locked)
    return call.result;
  return launch_scaling(stream, (struct scaling){target, source, count, scale, offset});
}
